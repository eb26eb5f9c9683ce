"""Which pieces of a prompt a change in its tokens comes from.

Owns the pairing of two prompts' pieces. The contributions add up to the change exactly. Refuses to judge the change.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_agentlatency.analysis.tokens import Item, Ruler, Source, items, measure
from pytest_agentlatency.wire.message import Prompt


@dataclass(frozen=True, slots=True)
class Contribution:
    """Tokens that one piece of the live prompt has more than its counterpart in the recorded one."""

    source: Source
    name: str
    """The tool's name, where there is one."""
    path: str
    """In the live request; of a piece that is gone, in the recorded one."""
    change: int
    """Provider's tokens; negative when it became smaller."""
    kind: str
    """`added`, `removed` or `changed`."""


def contributions(recorded: Prompt, live: Prompt, ruler: Ruler) -> tuple[Contribution, ...]:
    """What made the live prompt bigger or smaller than the recorded one, the largest change first.

    They add up to what `Ruler.live_context` adds to the recorded count (as long as that stays above 0).
    """
    gone, new = _unmatched(items(recorded), items(live))
    counterparts: dict[tuple[Source, str], list[Item]] = defaultdict(list)
    for item in gone:
        counterparts[_place(item)].append(item)
    raw: list[Contribution] = []
    for item in new:
        before = counterparts[_place(item)].pop() if counterparts[_place(item)] else None
        change = measure(item, ruler.counter) - (measure(before, ruler.counter) if before else 0)
        raw.append(_contribution(item, change, "changed" if before else "added"))
    left = [item for each in counterparts.values() for item in each]
    raw += [_contribution(item, -measure(item, ruler.counter), "removed") for item in left]
    return _scaled(raw, ruler)


def _unmatched(before: Iterable[Item], after: Iterable[Item]) -> tuple[list[Item], list[Item]]:
    """Pieces of either that the other doesn't have, wherever it stands."""
    spare: dict[tuple[Source, str, int], list[Item]] = defaultdict(list)
    for item in before:
        spare[item.source, item.raw or item.text, item.fixed].append(item)
    new: list[Item] = []
    for item in after:
        same = spare.get((item.source, item.raw or item.text, item.fixed))
        if same:
            same.pop()
        else:
            new.append(item)
    return [item for left in spare.values() for item in left], new


def _place(item: Item) -> tuple[Source, str]:
    """What makes two pieces the same one, changed: a tool by its name, anything else by where it stands."""
    return item.source, item.name if item.source is Source.TOOL_DEFINITION else item.path


def _contribution(item: Item, change: int, kind: str) -> Contribution:
    return Contribution(item.source, item.name, item.path, change, kind)


def _scaled(raw: list[Contribution], ruler: Ruler) -> tuple[Contribution, ...]:
    total = ruler.scaled(sum(each.change for each in raw))
    scaled = [replace(each, change=ruler.scaled(each.change)) for each in raw]
    scaled.sort(key=lambda each: (-abs(each.change), each.path))
    if scaled:  # what rounding leaves goes to the largest, where it is least
        rest = total - sum(each.change for each in scaled)
        scaled[0] = replace(scaled[0], change=scaled[0].change + rest)
    return tuple(each for each in scaled if each.change)

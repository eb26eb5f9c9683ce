"""How far each request of a lane repeats the one before it, and where and why it stops to.

Owns the comparison, over what was sent, in the order in which providers cache: tools, system, messages. Key order
counts, because the model reads it; cache markers and the form of a plain text don't. Refuses to know what any cache
holds: a stable prefix is necessary for a hit, not sufficient.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple

from pytest_agentlatency.analysis.breaks import Break, Place, Reading, Reason, params, shared_bytes
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.inventory import Inventory
from pytest_agentlatency.analysis.wirebytes import Known, segments
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.wire.message import Prompt


class Sent(NamedTuple):
    """One request of a lane."""

    prompt: Prompt
    """The effective prompt."""
    body: bytes = b""
    """As sent. Without it key order is known for tool definitions only."""
    context: Tokens | None = None
    """Its tokens by the provider, when known."""


@dataclass(frozen=True, slots=True)
class TurnPrefix:
    """What one request shares with the lane's previous one."""

    turn: int
    shared: Tokens
    previous: Tokens
    """Tokens of the previous request."""
    broken: Break | None = None
    compaction: bool = False
    """The history was replaced by something much smaller."""

    @property
    def share(self) -> float:
        """Part (0-1) of the previous request that is repeated; 1 for a lane's first turn."""
        return self.shared / self.previous if self.previous else 1.0


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether a lane only ever extends its prefix."""

    breaks: tuple[Break, ...]
    """Those that nothing excuses."""
    excused: tuple[Break, ...]
    """In turns that were excepted, and compactions within the allowed number."""

    @property
    def stable(self) -> bool:
        """No break is left."""
        return not self.breaks

    @property
    def lost(self) -> Tokens:
        """Tokens that had to be read again."""
        return Tokens(sum(each.lost for each in self.breaks))

    @property
    def saved(self) -> int:
        """Tokens that the same changes took out of the requests, counted once a change."""
        return sum(each.saved for each in self.breaks)


def stable(turns: Iterable[TurnPrefix], except_: Collection[int] = (), compactions: int = 1) -> Stability:
    """Judge a lane: every break counts, but for excepted turns and the first few compactions.

    More compactions than allowed are a sliding rewrite, and none of them is excused.
    """
    broken = [turn for turn in turns if turn.broken]
    compacted = {turn.turn for turn in broken if turn.compaction and turn.turn not in except_}
    fine = {*except_, *(compacted if len(compacted) <= compactions else ())}
    breaks = [(turn.turn in fine, turn.broken) for turn in broken if turn.broken]
    return Stability(
        tuple(each for excused, each in breaks if not excused), tuple(each for excused, each in breaks if excused)
    )


def prefixes(lane: Iterable[Sent], counter: Counter, inventory: Inventory | None = None) -> tuple[TurnPrefix, ...]:
    """For each turn of a lane, what it shares with the turn before.

    `inventory`: one that may know the prompts already, with the same counter.
    """
    known: Known = {}
    shelf = inventory or Inventory(counter)
    return compared([reading(sent, shelf, None if sent.prompt.previous_id else known) for sent in lane])


def compared(lane: Sequence[Reading]) -> tuple[TurnPrefix, ...]:
    """`prefixes` of requests that were taken apart already."""
    first = [TurnPrefix(1, Tokens(0), Tokens(0))] if lane else []
    rest = (_compare(turn, before, after) for turn, (before, after) in enumerate(pairwise(lane), 2))
    return (*first, *rest)


def differences(first: Iterable[Sent], second: Iterable[Sent], counter: Counter) -> tuple[Break, ...]:
    """Where two runs of one agent send other bytes at the same turn: what makes its prefix depend on the day.

    Used for a second pass under a shifted clock and another hash seed. A turn that only one run has is left out.
    """
    found: list[Break] = []
    inventory = Inventory(counter)
    for turn, (one, other) in enumerate(zip(first, second, strict=False), 1):
        before, after = reading(one, inventory), reading(other, inventory)
        compared = _compare(turn, before, after).broken or _compare(turn, after, before).broken
        if compared:
            found.append(compared)
    return tuple(found)


def reading(sent: Sent, inventory: Inventory, known: Known | None = None) -> Reading:
    """A request, taken apart: its bytes piece by piece, with their tokens, which add up to the context when known."""
    parts = segments(sent.prompt, sent.body, known)
    return Reading(sent.prompt, parts, inventory.of(sent.prompt), sent.context)


_COMPACTED = 0.7
"""A rewritten history below this part of the last one is a compaction."""


def _compare(turn: int, before: Reading, after: Reading) -> TurnPrefix:
    pairs = zip(before.segments, after.segments, strict=False)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0].data == pair[1].data, pairs))
    total, whole = Tokens(before.tokens), equal == len(before.segments)
    reason = _reason(before, after, equal)
    if reason is None:
        return TurnPrefix(turn, total, total)
    if reason is Reason.MODEL_CHANGED:
        equal, whole = 0, True
    elif reason is Reason.PARAMS_CHANGED:
        equal, whole = before.messages_start, True
    place = Place(turn, reason, before, after, equal, 0 if whole else shared_bytes(before, after, equal))
    broken = place.described()
    shrunk = reason is Reason.MESSAGES_CHANGED and after.tokens < _COMPACTED * before.tokens
    return TurnPrefix(turn, Tokens(total - broken.lost), total, broken, compaction=shrunk)


def _reason(before: Reading, after: Reading, equal: int) -> Reason | None:
    if before.prompt.model != after.prompt.model:
        return Reason.MODEL_CHANGED
    here = {reading.segments[equal].section for reading in (before, after) if equal < len(reading.segments)}
    section = next((each for each in _SECTIONS if each in here), "messages")
    if section != "messages":
        return _SECTIONS[section]
    if params(before.prompt) != params(after.prompt):
        return Reason.PARAMS_CHANGED
    return Reason.MESSAGES_CHANGED if equal < len(before.segments) else None


_SECTIONS = {
    "tools": Reason.TOOLS_CHANGED,
    "system": Reason.SYSTEM_CHANGED,
    "messages": Reason.MESSAGES_CHANGED,
}

"""What a live request changed, piece by piece: which message, which tool definition, how many tokens, since when.

Owns the pairing of pieces. Refuses to count tokens of its own: the pieces' differences add up to a total that the
caller anchored on the provider's usage.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.tokens import Item, Source, items, measure
from pytest_agentlatency.model.run import Change
from pytest_agentlatency.wire.message import Prompt

_WORDS = {
    Source.SYSTEM: "system prompt",
    Source.TOOL_DEFINITION: "definition of",
    Source.TOOL_CALL: "call of",
    Source.TOOL_RESULT: "result of",
    Source.USER: "user message",
    Source.ASSISTANT: "assistant message",
}


class Changes:
    """The changes of one lane, turn by turn; remembers since when each stands."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._since: dict[tuple[str, str], int] = {}

    def of(self, recorded: Prompt, live: Prompt, delta: int, turn: int) -> tuple[Change, ...]:
        """The pieces that differ, the largest first; their tokens add up to `delta`.

        Pieces that are new at several places in one request (a history that moved) are told one by one.
        """
        pieces = [(what, path, self._size(new) - self._size(old)) for what, path, old, new in _pairs(recorded, live)]
        sizes = _scaled([size for _, _, size in pieces], delta)
        found = [
            Change(what, path, size, self._since.setdefault((what, path), turn))
            for (what, path, _), size in zip(pieces, sizes, strict=True)
            if size
        ]
        return tuple(sorted(found, key=lambda each: -abs(each.tokens)))

    def _size(self, pieces: Sequence[Item]) -> int:
        return sum(measure(piece, self._counter) for piece in pieces)


def _scaled(sizes: Sequence[int], delta: int) -> list[int]:
    """The counter's differences in the provider's tokens: in proportion, the remainder with the largest."""
    total = sum(sizes)
    if not sizes:
        return []
    scaled = [round(size * delta / total) if total else size for size in sizes]
    largest = max(range(len(sizes)), key=lambda index: abs(scaled[index]))
    scaled[largest] += delta - sum(scaled)
    return scaled


_Pair = tuple[str, str, list[Item], list[Item]]


def _pairs(recorded: Prompt, live: Prompt) -> Iterator[_Pair]:
    """What, where, the recorded piece and the live one, of every piece that isn't in both requests."""
    old, new = items(recorded), items(live)
    gone, come = _without(old, new), _without(new, old)
    waiting: dict[tuple[Source, str, str], list[Item]] = {}
    for item in gone:
        waiting.setdefault((item.source, item.name, item.path), []).append(item)
    for item in come:
        before = waiting.pop((item.source, item.name, item.path), [])
        yield _named(item), item.path, before, [item]
    for left in waiting.values():
        yield _named(left[0]), left[0].path, left, []


def _without(items_: Iterable[Item], others: Iterable[Item]) -> list[Item]:
    """The items that the others don't hold as often."""
    spare = Tally(_identity(item) for item in others)
    left: list[Item] = []
    for item in items_:
        if spare[_identity(item)]:
            spare[_identity(item)] -= 1
        else:
            left.append(item)
    return left


def _identity(item: Item) -> tuple[Source, str, str]:
    return item.source, item.name, item.raw or item.text


def _named(item: Item) -> str:
    words = _WORDS.get(item.source, str(item.source).replace("_", " "))
    return f"{words} {item.name or 'a tool'}" if words.endswith(" of") else words

"""The account of a lane's context: who holds which tokens, since when, and what they cost again in each later turn.

Owns the apportioning. The provider's usage is the truth, and each turn's entries add up to it exactly; a counter only
says how a known sum is divided. Refuses to know prices, caches and time.
"""

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple, TypeVar

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.inventory import Inventory, Listing
from pytest_agentlatency.analysis.redundancy import Copy, Text, copies, unwrapped
from pytest_agentlatency.analysis.tokens import Item, Ruler, Source, doubts, hidden_tokens
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire.message import Prompt


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that was in the context for some turns."""

    source: Source
    name: str
    """The tool's name, for a definition, a call and a result."""
    path: str
    """Where it stood when it came."""
    tokens: Tokens
    """As the provider counts, within rounding."""
    since: int
    """The turn that brought it, from 1."""
    until: int
    """The last turn that carried it."""
    turns: int
    """How many turns carried it."""
    text: str = field(repr=False)

    @property
    def reread(self) -> Tokens:
        """Tokens that it cost again: its own, times the turns that carried it after the one that brought it."""
        return Tokens(self.tokens * (self.turns - 1))


@dataclass(frozen=True, slots=True)
class TurnAccount:
    """The context of one turn, divided. `hidden` and the pieces' tokens add up to `context`."""

    turn: int
    context: Tokens
    pieces: tuple[tuple[Piece, Tokens], ...]
    """In the provider's order, each with its tokens in this turn."""
    hidden: Tokens
    """What the provider added and the request doesn't show."""
    provenance: Provenance

    @property
    def by_source(self) -> Mapping[Source, Tokens]:
        """Tokens of each source that occurs; they add up to the context."""
        sums = dict.fromkeys((piece.source for piece, _ in self.pieces), 0)
        for piece, tokens in self.pieces:
            sums[piece.source] += tokens
        return {source: Tokens(total) for source, total in (sums | {Source.HIDDEN: self.hidden}).items()}

    @property
    def results_by_tool(self) -> Mapping[str, Tokens]:
        """Tokens of each tool's results."""
        return _summed((piece.name, tokens) for piece, tokens in self.pieces if piece.source is Source.TOOL_RESULT)

    @property
    def definitions(self) -> Mapping[str, Tokens]:
        """Tokens of each tool's definition."""
        return _summed((piece.name, tokens) for piece, tokens in self.pieces if piece.source is Source.TOOL_DEFINITION)

    @property
    def added(self) -> tuple[Piece, ...]:
        """The pieces that this turn brought."""
        return tuple(piece for piece, _ in self.pieces if piece.since == self.turn)


@dataclass(frozen=True)
class Ledger:
    """The account of a lane, turn by turn."""

    turns: tuple[TurnAccount, ...]
    pieces: tuple[Piece, ...]
    """Everything that was ever in the context, in the order in which it came."""
    called: frozenset[str]
    """Names of the tools that the model called."""
    counter: Counter
    ruler: Ruler
    doubts: tuple[str, ...] = ()
    """Reasons not to believe the recorded usage; one sentence each."""

    @property
    def reread(self) -> Tokens:
        """Tokens that were sent again over the lane's later turns."""
        return Tokens(sum(piece.reread for piece in self.pieces))

    @property
    def one_more_turn(self) -> Tokens:
        """Tokens that one more turn would send again before anything new: the last context."""
        return self.turns[-1].context if self.turns else Tokens(0)

    @cached_property
    def unused_tools(self) -> tuple[Piece, ...]:
        """Tool definitions that nobody called, the dearest first."""
        unused = (p for p in self.pieces if p.source is Source.TOOL_DEFINITION and p.name not in self.called)
        return tuple(sorted(unused, key=lambda piece: (-piece.tokens * piece.turns, piece.name)))

    @cached_property
    def wrapping(self) -> Mapping[str, Tokens]:
        """Tokens of each tool's results, by tool, that are only JSON around the values: keys, braces, escapes.

        An upper bound: some keys tell the model something.
        """
        results = (piece for piece in self.pieces if piece.source is Source.TOOL_RESULT)
        return {name: tokens for name, tokens in _summed(map(self._wrapper, results)).items() if tokens}

    def _wrapper(self, piece: Piece) -> tuple[str, Tokens]:
        extra = self.counter.count(piece.text) - self.counter.count(unwrapped(piece.text))
        return piece.name, Tokens(max(0, self.ruler.scaled(extra)))

    @cached_property
    def duplicates(self) -> tuple[tuple[Copy, Tokens], ...]:
        """Longer texts that stand in one context twice (a history nested in a message), the dearest first."""
        texts = (Text(p.path, p.since, p.until, p.text) for p in self.pieces if p.source in _PROSE)
        counted = ((copy, Tokens(self.ruler.scaled(self.counter.count(copy.text)))) for copy in copies(texts))
        return tuple(sorted(counted, key=lambda each: -each[1]))


_PROSE = frozenset({Source.SYSTEM, Source.USER, Source.ASSISTANT, Source.TOOL_RESULT, Source.DOCUMENT, Source.OTHER})


def ledger(
    turns: Iterable[tuple[Prompt, Usage]],
    counter: Counter,
    *,
    called: Iterable[str] = (),
    inventory: Inventory | None = None,
) -> Ledger:
    """The account of a lane, given its effective prompts with their usages, in order.

    `called`: names of tools that answers called and no later request shows (the last answer's). A turn without usage,
    or whose usage sums several passes, is estimated from its neighbours and marked so. `inventory`: one that may know
    the prompts already, with the same counter.
    """
    known = list(turns)
    listings = list(map((inventory or Inventory(counter)).of, (prompt for prompt, _ in known)))
    model = known[0][0].model if known else ""
    fits = [
        (sum(listing.sizes), usage.context)
        for listing, (_, usage) in zip(listings, known, strict=True)
        if usage.context is not None and not usage.multi_pass
    ]
    ruler = Ruler.fit(fits, counter, model)
    books = _Books(ruler)
    for (prompt, usage), listing in zip(known, listings, strict=True):
        books.enter(prompt, usage, listing)
    accounts, pieces = books.closed()
    names = {piece.name for piece in pieces if piece.source is Source.TOOL_CALL}
    return Ledger(accounts, pieces, frozenset(names | set(called)), counter, ruler, doubts(fits))


@dataclass(slots=True, eq=False)
class _Open:
    """A piece whose last turn isn't known yet."""

    item: Item
    since: int
    until: int = 0
    turns: int = 0
    tokens: int = 0

    def closed(self) -> Piece:
        item = self.item
        return Piece(
            item.source, item.name, item.path, Tokens(self.tokens), self.since, self.until, self.turns, item.text
        )


class _Entry(NamedTuple):
    """One turn's account under way."""

    context: Tokens
    pieces: list[tuple[_Open, Tokens]]
    provenance: Provenance


class _Books:
    """The account under way: what the previous turn held, and the entries so far."""

    def __init__(self, ruler: Ruler) -> None:
        self._ruler = ruler
        self._entries: list[_Entry] = []
        self._pieces: list[_Open] = []
        self._held: list[_Open] = []
        self._hidden = 0

    def enter(self, prompt: Prompt, usage: Usage, listing: Listing) -> None:
        """Take in the next turn."""
        self._held, fresh = self._carry(len(self._entries) + 1, listing.items)
        kept = sum(piece.tokens for piece in self._held)
        estimates = [max(1, self._ruler.scaled(listing.sizes[index])) for index in fresh]
        measured = usage.context is not None and not usage.multi_pass
        known = usage.context if measured else None
        context = Tokens(kept + sum(estimates) + self._hidden) if known is None else known
        for index, tokens in zip(fresh, self._divide(prompt, context - kept, estimates), strict=True):
            self._held[index].tokens = tokens
        self._pieces.extend(self._held[index] for index in fresh)
        self._cover(context)
        shares = [(piece, Tokens(piece.tokens)) for piece in self._held]
        self._entries.append(_Entry(context, shares, usage.provenance if measured else Provenance.ESTIMATED))

    def closed(self) -> tuple[tuple[TurnAccount, ...], tuple[Piece, ...]]:
        """The turns' accounts, and every piece."""
        done = {piece: piece.closed() for piece in self._pieces}
        accounts = (
            TurnAccount(
                turn,
                entry.context,
                tuple((done[piece], tokens) for piece, tokens in entry.pieces),
                Tokens(entry.context - sum(tokens for _, tokens in entry.pieces)),
                entry.provenance,
            )
            for turn, entry in enumerate(self._entries, 1)
        )
        return tuple(accounts), tuple(done.values())

    def _carry(self, turn: int, listed: Sequence[Item]) -> tuple[list[_Open], list[int]]:
        """Match this turn's items with the pieces that the last turn held; what has no match is fresh."""
        repeated = sum(1 for _ in takewhile(_same, zip(self._held, listed, strict=False)))
        held = self._held[:repeated]
        spare: dict[tuple[Source, str, str], list[_Open]] = defaultdict(list)
        for piece in reversed(self._held[repeated:]):
            spare[_key(piece.item)].append(piece)
        fresh: list[int] = []
        for index, item in enumerate(listed[repeated:], repeated):
            same = spare.get(_key(item))
            if not same:
                fresh.append(index)
            held.append(same.pop() if same else _Open(item, turn))
        for piece in held:
            piece.until, piece.turns = turn, piece.turns + 1
        return held, fresh

    def _divide(self, prompt: Prompt, rest: int, estimates: Sequence[int]) -> list[int]:
        """Tokens of the fresh pieces out of what the kept ones leave; what can't be theirs is hidden.

        A provider's tokens are believed to be within a factor of two of the ruler's.
        """
        expected = sum(estimates)
        hidden = self._hidden if self._entries else max(0, min(rest - expected, hidden_tokens(prompt)))
        share = min(2 * expected, max((expected + 1) // 2, rest - hidden))
        self._hidden = rest - share
        return apportion(share, estimates)

    def _cover(self, context: Tokens) -> None:
        """When the pieces hold more than there is, they share what there is."""
        if self._hidden < 0:
            self._hidden = 0
            for piece, tokens in zip(self._held, apportion(context, [each.tokens for each in self._held]), strict=True):
                piece.tokens = tokens


def _key(item: Item) -> tuple[Source, str, str]:
    return item.source, item.name, item.raw or item.text


def _same(pair: tuple[_Open, Item]) -> bool:
    piece, item = pair
    return piece.item is item or _key(piece.item) == _key(item)


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the weights that add up to the total exactly (largest remainders)."""
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    floors = [total * weight // whole for weight in weights]
    rests = [total * weight % whole for weight in weights]
    order = sorted(range(len(weights)), key=rests.__getitem__, reverse=True)  # of equal rests the first comes first
    for index in order[: total - sum(floors)]:
        floors[index] += 1
    return floors


_Key = TypeVar("_Key")


def _summed(pairs: Iterable[tuple[_Key, Tokens]]) -> Mapping[_Key, Tokens]:
    sums: Tally[_Key] = Tally()
    for key, tokens in pairs:
        sums[key] += tokens
    return {key: Tokens(total) for key, total in sums.items()}

"""The account of a lane's context as lines of plain text: who holds the tokens, what they cost again, what it says.

Owns which parts there are and in which order. Refuses to count and to judge.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from pytest_agentlatency.analysis.growth import Growth
from pytest_agentlatency.analysis.ledger import Ledger, Piece, TurnAccount
from pytest_agentlatency.analysis.prefix import TurnPrefix
from pytest_agentlatency.analysis.tokens import Source
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import weakest
from pytest_agentlatency.report import plot
from pytest_agentlatency.report.layout import Column, grid

_TOP = 10  # items of a list that are shown
_LEGEND = (
    "tokens; a row's sources add up to its context",
    "new: brought by this turn; repeats: how much of the last request this one begins with",
)
_NAMES = {Source.TOOL_DEFINITION: "tools", Source.TOOL_CALL: "calls", Source.TOOL_RESULT: "results"}


def turns(ledger: Ledger, prefixes: Sequence[TurnPrefix], kv: Sequence[str] = (), width: int = 80) -> list[str]:
    """A row a turn: context, what is new, each source that occurs, and how much of the last request is repeated.

    Within a row the sources add up to the context exactly. kv: a cell a turn, for a model whose memory is known.
    """
    accounts = ledger.turns
    if not accounts:
        return ["no turn of this lane could be read"]
    columns = [
        Column("context", tuple(units.tokens(each.context, each.provenance) for each in accounts)),
        Column("new", tuple(units.tokens(sum(piece.tokens for piece in each.added)) for each in accounts)),
        *_sources(accounts),
        Column("repeats", tuple(_repeats(each) for each in prefixes)),
    ]
    columns += [Column("kv cache", tuple(kv))] if kv else []
    lines = grid([Column("turn", tuple(str(each.turn) for each in accounts))], columns, width)
    return [*lines, "", *_legend(accounts, width)]


def _sources(accounts: Sequence[TurnAccount]) -> Iterator[Column]:
    by_source = [each.by_source for each in accounts]
    for source in Source:
        if any(each.get(source) for each in by_source):
            cells = (f"{each.get(source, 0):,}" for each in by_source)
            yield Column(_NAMES.get(source, str(source)), tuple(cells))


def _repeats(turn: TurnPrefix) -> str:
    """Rounded down: what is broken never shows as 100%."""
    if turn.turn == 1:
        return "-"
    return "100%" if turn.broken is None else f"{min(99, int(100 * turn.share))}%"


def _legend(accounts: Sequence[TurnAccount], width: int) -> Iterator[str]:
    marked = weakest(each.provenance for each in accounts)
    estimated = f"{marked.mark} estimated: no usage, or one that sums several passes" if marked.mark else ""
    yield from folded([*_LEGEND, estimated], width)


def costs(ledger: Ledger, width: int = 80) -> list[str]:
    """What was sent again, the dearest first; what one more turn costs; what could go."""
    if not ledger.turns:
        return []
    total, more = units.tokens(ledger.reread), units.tokens(ledger.one_more_turn)
    first = f"re-read cost: {total} tokens were sent again after the turn that brought them"
    last = f"one more turn sends {more} tokens again before anything new"
    return [*folded([first], width), *_dearest(ledger, width), *folded([last, *_savings(ledger)], width)]


def _dearest(ledger: Ledger, width: int) -> Iterator[str]:
    pieces = sorted(ledger.pieces, key=lambda piece: -piece.reread)
    shown = [piece for piece in pieces[:_TOP] if piece.reread]
    if shown:
        keys = [Column("re-read", tuple(units.tokens(piece.reread) for piece in shown))]
        columns = [
            Column("tokens", tuple(units.tokens(piece.tokens) for piece in shown)),
            Column("again", tuple(f"x{piece.turns - 1}" for piece in shown)),
            Column(
                "what", tuple(f"{described(piece)}, turn {piece.since}, {piece.path}" for piece in shown), left=True
            ),
        ]
        yield from (f"  {line}" for line in grid(keys, columns, width - 2))


def described(piece: Piece) -> str:
    """`result of search`, `definition of search`, `system`."""
    words = {
        Source.TOOL_RESULT: f"result of {piece.name}",
        Source.TOOL_DEFINITION: f"definition of {piece.name}",
        Source.TOOL_CALL: f"call of {piece.name}",
    }
    return words.get(piece.source, str(piece.source)) if piece.name else str(piece.source)


def _savings(ledger: Ledger) -> Iterator[str]:
    for piece in ledger.unused_tools:
        yield f"unused tool: {piece.name!r}, {piece.tokens:,} tokens in {piece.turns} turns, never called"
    for name, tokens in ledger.wrapping.items():
        yield f"wrapping: up to {tokens:,} tokens of the results of {name!r} are JSON around the values"
    for copy, tokens in ledger.duplicates[:_TOP]:
        yield f"duplicate: {tokens:,} tokens at {copy.path} (turn {copy.turn}) stand at {copy.original} already"
    if len(ledger.duplicates) > _TOP:
        yield f"and {len(ledger.duplicates) - _TOP} more duplicates"
    yield from ledger.doubts


def breaks(prefixes: Sequence[TurnPrefix], width: int = 80) -> list[str]:
    """Where each request stops to repeat the one before it, and why."""
    broken = [turn.broken for turn in prefixes if turn.broken]
    if not broken:
        return list(folded(["prefix: stable, every request begins with the whole one before it"], width))
    lost = sum(each.lost for each in broken)
    lines = [f"prefix: {len(broken)} of {len(prefixes) - 1} turns break it; {lost:,} tokens must be read again"]
    for each in broken[:_TOP]:
        place = f"{each.path}, byte {each.offset:,}" if each.path else f"byte {each.offset:,}"
        lines.append(f"  turn {each.turn}: {each.reason} at {place}: {each.detail}; {each.lost:,} tokens")
        lines.append(f"    {each.before!r} became {each.after!r}")
    lines += [f"  and {len(broken) - _TOP} more"] if len(broken) > _TOP else []
    return list(folded(lines, width))


def growth(laws: Mapping[str, Growth], contexts: Sequence[float | None], width: int = 80) -> list[str]:
    """The law of each series with what it rests on, and a plot of the context's."""
    lines: list[str] = []
    for name, found in laws.items():
        verdict = "" if found.reason.startswith(str(found.law)) else f"{found.law}: "
        lines += folded([f"{name} growth: {verdict}{found.reason}", *filter(None, [found.driver])], width)
    context = laws.get("context")
    if context is not None and context.exponent is not None:
        drawn = plot.fit(contexts, context.exponent, width)
        lines += ["", *folded([f"context over the turns; {plot.LEGEND}"], width), *drawn] if drawn else []
    return lines


def folded(lines: Iterable[str], width: int) -> Iterator[str]:
    """Lines no wider than `width`, what is carried over indented."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        yield from wrap(line, max(1, width), subsequent_indent=f"{indent}  ")


def note(counter: str, recorded: str) -> str:
    """Which counter divided the usage."""
    other = f"; recorded with {recorded}" if recorded and recorded != counter else ""
    return f"the provider's usage, divided among the pieces by the counter {counter}{other}"

"""Phrases to values: the parser, the check of units and scopes, and what is said of a phrase that has no meaning.

Owns everything lark; `phrase.parse` imports this module when the first budget is read, and nothing else does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Protocol, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from pytest_agentlatency.budgets.figure import Unit
from pytest_agentlatency.budgets.nearest import QUOTED, nearest
from pytest_agentlatency.budgets.phrase import (
    Bound,
    Comparison,
    GrowthBound,
    Limit,
    Phrase,
    PhraseError,
    Reach,
    Scope,
    StablePrefix,
)
from pytest_agentlatency.budgets.subjects import SERIES, Subject, registry

Node = Tree[Token]


class _Steps(Protocol):
    def exhaust_lexer(self) -> object: ...
    def accepts(self) -> set[str]: ...


class _Parser(Protocol):
    """What is used of lark's parser, whose own signatures are typed in part only."""

    def parse(self, text: str) -> Node: ...
    def parse_interactive(self, text: str) -> _Steps: ...


_MS, _KIB = 1_000_000, 1024
_UNITS: Mapping[str, tuple[Unit, Decimal]] = {
    "ms": (Unit.TIME, Decimal(_MS)),
    "s": (Unit.TIME, Decimal(1000 * _MS)),
    "seconds": (Unit.TIME, Decimal(1000 * _MS)),
    "min": (Unit.TIME, Decimal(60_000 * _MS)),
    "minutes": (Unit.TIME, Decimal(60_000 * _MS)),
    "%": (Unit.SHARE, Decimal("0.01")),
    "k": (Unit.TOKENS, Decimal(1000)),
    "m": (Unit.TOKENS, Decimal(1_000_000)),
    "tokens": (Unit.TOKENS, Decimal(1)),
    "k tokens": (Unit.TOKENS, Decimal(1000)),
    "m tokens": (Unit.TOKENS, Decimal(1_000_000)),
    "bytes": (Unit.BYTES, Decimal(1)),
    "kb": (Unit.BYTES, Decimal(1000)),
    "mb": (Unit.BYTES, Decimal(1000**2)),
    "gb": (Unit.BYTES, Decimal(1000**3)),
    "kib": (Unit.BYTES, Decimal(_KIB)),
    "mib": (Unit.BYTES, Decimal(_KIB**2)),
    "gib": (Unit.BYTES, Decimal(_KIB**3)),
}
_ALLOWED = {
    Unit.TIME: "a time in ms, s or min",
    Unit.SHARE: "a share in %, or a fraction from 0 to 1",
    Unit.TOKENS: "tokens, such as 800, 20k or 2k tokens",
    Unit.BYTES: "a size in bytes, KB, MB, GB or KiB, MiB, GiB",
    Unit.COUNT: "a whole number without a unit",
}
_COMPARISONS = {"at_most": Comparison.AT_MOST, "at_least": Comparison.AT_LEAST, "exactly": Comparison.IS}
_SPECIAL = {"NUMBER": "a number", "INT": "a turn number", "LANE": "a lane number", "QUOTED": QUOTED, "$END": "the end"}


def read(text: str) -> Phrase:
    """Give a phrase's meaning. Raises PhraseError."""
    try:
        return _meaning(text)
    except PhraseError as error:
        raise PhraseError(text, error.at, error.expected, nearest(error, _meaning)) from None


# --- grammar


@cache
def _parser() -> tuple[_Parser, Mapping[str, str]]:
    """The parser, and the word of each of its terminals that is a word."""
    source = files("pytest_agentlatency.budgets").joinpath("grammar.lark").read_text(encoding="utf-8")
    for slot, names in (
        ("subject", _subject_rules()),
        ("series", map(_quoted, SERIES)),
        ("unit", map(_quoted, _UNITS)),
    ):
        source = source.replace(f"%{slot}%", " | ".join(names))
    words: dict[str, str] = {}

    def terminal(match: re.Match[str]) -> str:
        name = "_W_" + match[1].upper().replace("-", "_")
        words[name] = match[1]
        return name

    head, _, body = source.partition("start:")
    body = re.sub(r'"([a-z][a-z0-9-]*)"', terminal, body)
    terminals = "".join(f"{name}.2: /{re.escape(word)}(?![\\w-])/i\n" for name, word in words.items())
    parser = Lark(f"{head}start:{body}\n{terminals}", parser="lalr", propagate_positions=True, maybe_placeholders=False)
    symbols = {each.name: each.pattern.value for each in parser.terminals if each.pattern.type == "str"}
    return cast("_Parser", parser), words | symbols


def _quoted(name: str) -> str:
    return " ".join(f'"{word}"' for word in name.split())


def _subject_rules() -> Iterator[str]:
    for name, subject in registry().items():
        rule = _quoted(name)
        yield rule.replace('"tool"', '"tool" QUOTED?', 1) if subject.takes_tool else rule


# --- meaning


def _meaning(text: str) -> Phrase:
    parser, words = _parser()
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        at = len(text.rstrip()) if _at_end(error) else error.pos_in_stream or 0
        at, names = _word_start(text, at), {words.get(name, name) for name in _accepted(parser, text)}
        raise PhraseError(text, at, _unit_of(text[:at]) if "kib" in names else _plain(names)) from None
    [node] = tree.find_pred(lambda each: each.data in {"bound", "growth", "prefix"})
    if node.data == "bound":
        return _bound(text, node)
    return _growth(text, node) if node.data == "growth" else StablePrefix(text, _turns(text, node), _lane(text, node))


def _bound(text: str, node: Node) -> Bound:
    name = _the(node, "subject")
    quoted = next((str(token) for token in name.children if isinstance(token, Token)), "")
    subject = registry()[_words(" ".join(_slice(text, name).split(quoted or None)))]
    [comparison] = [_COMPARISONS[each.data] for each in _rules(node) if each.data in _COMPARISONS]
    limit = _limit(text, node, subject)
    each = _child(node, "each")
    if each and not subject.takes_each:
        raise PhraseError(text, each.meta.start_pos, f"the end or a scope: {subject.name} has no single items")
    return Bound(
        text,
        subject.name,
        comparison,
        limit,
        _scope(text, node, subject, limit),
        quoted[1:-1],
        each=each is not None,
        lane=_lane(text, node),
        measured=_child(node, "measured") is not None,
    )


def _limit(text: str, node: Node, subject: Subject) -> Limit:
    limit = _the(node, "limit")
    number = Decimal(str(limit.children[0]).replace(",", "").replace("_", ""))
    written, context = _child(limit, "unit"), _child(limit, "of_context")
    if context and subject.of_context is None:
        raise PhraseError(
            text, context.meta.start_pos, f"the end or a scope: {subject.name} is not a part of the context"
        )
    unit = Unit.SHARE if context else subject.unit
    if written is None:
        kind, factor = unit if _plain_number(unit, number) else None, Decimal(1)
        at = limit.meta.start_pos
    else:
        kind, factor = _UNITS[_words(_slice(text, written))]
        at = written.meta.start_pos
    if kind is not unit:
        raise PhraseError(text, at, _limit_of(subject, unit))
    return Limit(float(number * factor), unit, of_context=context is not None)


def _limit_of(subject: Subject, unit: Unit) -> str:
    return f"{_ALLOWED[unit]}, as the limit of {subject.name!r}"


def _plain_number(unit: Unit, number: Decimal) -> bool:
    """Whether a number may stand without a unit."""
    if unit is Unit.SHARE:
        return number <= 1
    return unit is Unit.TOKENS or (unit is Unit.COUNT and number == int(number))


def _scope(text: str, node: Node, subject: Subject, limit: Limit) -> Scope:
    tree = next((each for each in _rules(node) if each.data in _SCOPES), None)
    total = subject.in_total and not limit.of_context
    if tree is None:
        return Scope(Reach.TOTAL if total else Reach.EVERY)
    scope = Scope(_SCOPES[tree.data], _turns(text, tree))
    if scope.reach is Reach.TOTAL and not total:
        raise PhraseError(text, tree.meta.start_pos, f"turns, such as 'at every turn': {subject.name} has no total")
    if scope.reach is not Reach.TOTAL and not subject.at_turn:
        raise PhraseError(text, tree.meta.start_pos, f"the end: {subject.name} is a figure of the whole run")
    return Scope(Reach.FROM, (scope.turns[0] + 1,)) if tree.data == "after" else scope


_SCOPES = {"at": Reach.AT, "every": Reach.EVERY, "after": Reach.FROM, "from": Reach.FROM, "total": Reach.TOTAL}


def _growth(text: str, node: Node) -> GrowthBound:
    series, law = (_words(_slice(text, _the(node, rule))) for rule in ("series", "law"))
    exactly, measured = (_child(node, rule) is not None for rule in ("exact", "measured"))
    return GrowthBound(text, series, law, exactly=exactly, lane=_lane(text, node), measured=measured)


def _turns(text: str, node: Node) -> tuple[int, ...]:
    return _numbers(text, node, "a turn number from 1")


def _lane(text: str, node: Node) -> int | None:
    """The lane that is named; None: none is."""
    lane = _child(node, "lane")
    return _numbers(text, lane, "a lane number from 1, as `agentlatency show` prints it")[0] if lane else None


def _numbers(text: str, node: Node, expected: str) -> tuple[int, ...]:
    tokens = [token for token in node.children if isinstance(token, Token)]
    for token in tokens:
        if int(token) == 0:
            raise PhraseError(text, token.start_pos or 0, expected)
    return tuple(int(token) for token in tokens)


def _rules(node: Node) -> Iterator[Node]:
    return (each for each in node.children if isinstance(each, Tree))


def _child(node: Node, rule: str) -> Node | None:
    return next((each for each in _rules(node) if each.data == rule), None)


def _the(node: Node, rule: str) -> Node:
    return next(each for each in _rules(node) if each.data == rule)


def _slice(text: str, node: Node) -> str:
    return text[node.meta.start_pos : node.meta.end_pos]


def _words(text: str) -> str:
    return " ".join(text.lower().split())


# --- complaints


def _at_end(error: UnexpectedInput) -> bool:
    token: object = getattr(error, "token", None)
    return isinstance(token, Token) and token.type == "$END"


def _accepted(parser: _Parser, text: str) -> set[str]:
    """The terminals that could stand where the text fails; the exception's own set holds other contexts' too."""
    steps = parser.parse_interactive(text)
    with suppress(UnexpectedInput):
        steps.exhaust_lexer()
    return steps.accepts()


def _word_start(text: str, at: int) -> int:
    """Move back to where the word begins: the lexer may have taken its first letters for a word of its own."""
    while 0 < at < len(text) and re.match(r"[\w-]", text[at]) and re.match(r"[A-Za-z_-]", text[at - 1]):
        at -= 1
    return at


def _unit_of(text: str) -> str:
    """What may stand behind the number with which the text ends."""
    try:
        phrase = _meaning(text.rstrip())
    except PhraseError as error:
        return error.expected
    bound = cast("Bound", phrase)  # nothing else ends in a number that a unit may follow
    return f"{_limit_of(registry()[bound.subject], bound.limit.unit)}, or a scope"


def _plain(terminals: Iterable[str]) -> str:
    names = {_SPECIAL.get(name, name) for name in terminals if name in _SPECIAL or not name.isupper()}
    if {"under", "over"} <= names:
        names = {"under", "at most", "over", "at least", "is"} | (names & {"growth", "tokens", "time", "share"})
    shown = sorted(names)
    if len(shown) > 12:  # noqa: PLR2004  a dozen words still are a line
        return "a figure: " + ", ".join(shown)
    return " or ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))

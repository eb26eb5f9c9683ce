"""Volatile spans: what differs between two runs of the same agent without meaning anything.

Owns the patterns and what stands in their place. A mask serves matching only: what is stored, sent, counted and
compared for prefixes is never masked, and a request that is equal only after masking is drifted, not identical. Its
span broke a prefix cache in real life.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.wire.jsonedge import mapping, sequence

_UUID = r"(?<![0-9A-Fa-f-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f-])"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_BUILT_IN = re.compile(
    rf"(?P<uuid>{_UUID})"
    rf"|(?P<time>(?<!\d)\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}{_ZONE})?(?!\d)|(?<![\d:]){_CLOCK}{_ZONE}(?![\d:]))"
    # 2017 to 2033, in seconds with or without a fraction, milli-, micro- or nanoseconds
    r"|(?P<epoch>(?<![\w.-])(?:1[5-9]|20)\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\w-]))"
    r"|(?P<temp_path>(?<![\w.])(?:/private)?(?:(?:/var)?/tmp|/var/folders)/[^\s\"'`<>|)\]},;:]+"
    r"|[A-Za-z]:\\(?:[^\\\s\"':]+\\){0,20}?(?:Temp|tmp)\\[^\s\"'`<>|)\]},;:]+)"
    r"|(?P<id>(?<![A-Za-z0-9_])(?:toolu|srvtoolu|mcptoolu|call|chatcmpl|chatcmpl-tool|msg|resp|fc|rs|req)"
    r"[_-](?=[A-Za-z_-]*\d)[A-Za-z0-9]{12,}(?![A-Za-z0-9]))"
)
_ID_KEYS = frozenset({"tool_use_id", "tool_call_id", "call_id"})
_CALL_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function", "function_call", "tool_call"})


@dataclass(frozen=True, slots=True)
class Span:
    """A masked piece of a request."""

    path: str
    """JSON path of the string that holds it."""
    kind: str
    """`uuid`, `time`, `epoch`, `temp_path`, `id`, or `declared`."""
    text: str


class Masks:
    """The masks in force: the built-in ones, after those that the user declared."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        """ValueError, naming the pattern, when one is no regular expression or matches an empty text."""
        self._declared = tuple(_compiled(pattern) for pattern in declared)
        # A history repeats in every later request: each of its strings is searched once.
        self._memo: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}

    def fresh(self) -> "Masks":
        """Return the same masks with no text remembered: a suite's masks would keep the prompts of every test."""
        other = Masks()
        other._declared = self._declared
        return other

    def text(self, text: str) -> str:
        """Return the text with every volatile span replaced by its kind."""
        return self._masked(text)[0]

    def value(self, value: Any) -> Any:
        """Return a JSON value with every string masked, and every number and id that is volatile as a whole."""
        match value:
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case int() | float():
                written = repr(value)
                masked = self.text(written)
                return value if masked == written else masked
            case list():
                return [self.value(each) for each in sequence(value)]
            case dict():
                entries = mapping(value)
                return {
                    key: _placed("id") if _is_id(key, each, entries) else self.value(each)
                    for key, each in entries.items()
                }
            case _:
                return value

    def spans(self, value: Any, path: str = "") -> Iterator[Span]:
        """Yield the volatile spans of a JSON value, in its order."""
        match value:
            case str():
                yield from (Span(path, kind, text) for kind, text in self._masked(value)[1])
            case bool() | None:
                return
            case int() | float():
                yield from (Span(path, kind, text) for kind, text in self._masked(repr(value))[1])
            case list():
                for index, each in enumerate(sequence(value)):
                    yield from self.spans(each, f"{path}[{index}]")
            case dict():
                entries = mapping(value)
                for key, each in entries.items():
                    below = f"{path}.{key}" if path else key
                    yield from (Span(below, "id", each),) if _is_id(key, each, entries) else self.spans(each, below)
            case _:
                return

    def _masked(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        found = self._memo.get(text)
        if found is None:
            found = self._memo[text] = self._search(text)
        return found

    def _search(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        spans: list[tuple[str, str]] = []

        def replace(match: re.Match[str], kind: str) -> str:
            spans.append((kind, match[0]))
            return _placed(kind)

        for pattern in self._declared:
            text = pattern.sub(lambda match: replace(match, "declared"), text)
        text = _BUILT_IN.sub(lambda match: replace(match, match.lastgroup or ""), text)
        return text, tuple(spans)


def differing(recorded: Iterable[Span], live: Iterable[Span]) -> tuple[tuple[Span, Span], ...]:
    """Pairs of spans, recorded and live, that stand at the same place of two requests and differ: prefix breakers."""
    return tuple((one, other) for one, other in zip(recorded, live, strict=False) if one.text != other.text)


def _placed(kind: str) -> str:
    return f"\N{MATHEMATICAL LEFT ANGLE BRACKET}{kind}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"


def _is_id(key: str, value: Any, entries: Mapping[str, Any]) -> bool:
    if not isinstance(value, str):
        return False
    return key in _ID_KEYS or (key == "id" and entries.get("type") in _CALL_TYPES)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        msg = f"mask {pattern!r} is no regular expression: {error}"
        raise ValueError(msg) from error
    if compiled.search("") is not None:
        msg = f"mask {pattern!r} matches an empty text, so it would mask every request: make it match something"
        raise ValueError(msg)
    return compiled

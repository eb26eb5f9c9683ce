"""The first place where two request bodies differ, named as a reader looks for it.

Owns the walk in the order in which providers read a request: tools, system, messages, then parameters. Refuses to judge
what a difference costs, and shows nothing that `hide` takes for a secret.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq as equal
from typing import Any, cast

from pytest_agentlatency.cassette.canonical import parsed
from pytest_agentlatency.cassette.secrets import hidden
from pytest_agentlatency.model.run import Difference
from pytest_agentlatency.wire.jsonedge import mapping, sequence

SNIPPET = 60
"""Characters of a snippet."""
NOTHING = "(nothing)"

_BEFORE = 20  # characters of a snippet before the difference
_CONTEXT = 4096  # characters around a difference that are searched for secrets: a snippet may start inside of one
_ORDER = (
    "tools", "system", "systemInstruction", "system_instruction", "instructions",
    "messages", "contents", "input", "prompt",
)  # fmt: skip
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MISSING = object()

Hide = Callable[[str], str]
"""Takes a text, gives it back with every character of a secret replaced: the length stays."""


def difference(recorded: bytes, live: bytes, hide: Hide = hidden) -> Difference | None:
    """First structural difference of two bodies; None when they are equal as JSON, whatever their key order."""
    if recorded == live:
        return None
    one, other = parsed(recorded), parsed(live)
    if one is None or other is None:
        return _bytes(recorded, live, hide)
    # Python calls 1, 1.0 and true equal, and compares ten times as fast as a walk: the walk comes second.
    try:
        return _values(one, other, "", _Look(hide, equal)) or _values(one, other, "", _Look(hide, _equal_scalars))
    except RecursionError:
        return _bytes(recorded, live, hide)


def characters(body: bytes) -> int:
    """Size of a body in characters."""
    return len(body.decode("utf-8", "replace"))


def _equal_scalars(one: object, other: object) -> bool:
    return not isinstance(one, dict | list) and repr(one) == repr(other)


@dataclass(frozen=True, slots=True)
class _Look:
    """What may be shown, and what is passed over as equal."""

    hide: Hide
    equal: Callable[[object, object], bool]


def _values(one: Any, other: Any, path: str, look: _Look) -> Difference | None:
    if type(one) is type(other):
        if look.equal(one, other):
            return None
        match one:
            case dict():
                return _first(_entries(mapping(one), mapping(other)), path, look)
            case list():
                return _first(_items(sequence(one), sequence(other)), path, look)
            case str():
                at = _common(one, other)
                return Difference(path, _window(one, at, look.hide), _window(other, at, look.hide))
            case _:
                pass
    return Difference(path or "(body)", _shown(one, look.hide), _shown(other, look.hide))


def _first(pairs: Iterable[tuple[str, Any, Any]], path: str, look: _Look) -> Difference | None:
    below = ((path + step if path else step.removeprefix("."), one, other) for step, one, other in pairs)
    return next((found for where, one, other in below if (found := _values(one, other, where, look))), None)


def _entries(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    keys = dict.fromkeys((*_ORDER, *one, *other))
    present = (key for key in keys if key in one or key in other)
    return ((_step(key), one.get(key, _MISSING), other.get(key, _MISSING)) for key in present)


def _items(one: Sequence[Any], other: Sequence[Any]) -> Iterable[tuple[str, Any, Any]]:
    for index in range(max(len(one), len(other))):
        yield (
            f"[{index}]",
            one[index] if index < len(one) else _MISSING,
            other[index] if index < len(other) else _MISSING,
        )


def _step(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key)}]"


def _bytes(recorded: bytes, live: bytes, hide: Hide) -> Difference:
    at = _common(recorded, live)
    one, other = recorded.decode("latin-1"), live.decode("latin-1")
    return Difference(f"byte {at}", _window(one, at, hide), _window(other, at, hide))


def _common(one: str | bytes, other: str | bytes) -> int:
    """Length of the common prefix, by halving: comparing slices is much faster than a loop."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _window(text: str, at: int, hide: Hide) -> str:
    """The text around a position, cut to a snippet."""
    if not text:
        return '""'
    start = max(0, at - _CONTEXT)
    safe = hide(text[start : at + _CONTEXT])
    begin = max(0, at - start - _BEFORE)
    return _cut(safe[begin:], before=start + begin > 0)


def _shown(value: Any, hide: Hide) -> str:
    if value is _MISSING:
        return NOTHING
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"({type(cast('object', value)).__name__})"
    return _cut(hide(text[:_CONTEXT]), before=False)


def _cut(text: str, *, before: bool) -> str:
    """One line of at most SNIPPET characters; an ellipsis stands where something was cut off."""
    line = "".join(each if each.isprintable() else " " for each in text[: 2 * SNIPPET])
    line = "…" + line if before else line
    return line if len(line) <= SNIPPET else line[: SNIPPET - 1] + "…"

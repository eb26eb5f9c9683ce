"""The JSON edge: bytes of unknown content in, values of a known shape out.

Owns decoding, canonical form and the checked reads of untyped values. Refuses to know any provider's field, and to
raise: what is not there, or not of the asked shape, reads as nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pytest_agentlatency.model.usage import Tokens

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_decode = json.JSONDecoder(strict=False).decode
_NOTHING: Mapping[str, Any] = {}


def loads(data: bytes | str) -> Any:
    """Value of a JSON text; None when it is not one (cut off, not UTF-8, nested too deeply)."""
    text = data.decode("utf-8-sig", "replace") if isinstance(data, bytes) else data
    try:
        value = _decode(text)
        # Clients that cut strings in the middle of an emoji send half a surrogate pair: no tokenizer or file takes it.
        if _SURROGATE.search(text):
            value = json.loads(_compact(value).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def arguments(text: str) -> Any:
    """Value of a tool call's arguments; the text as it is when it was cut off, an empty object when there is none."""
    value = loads(text or "{}")
    return text if value is None else value


def canonical(value: Any) -> str:
    """JSON text with sorted keys and no spaces; empty when the value is nested too deeply to be written."""
    try:
        return _canonical(value)
    except (ValueError, RecursionError):
        return ""


def compact(value: Any) -> str:
    """JSON text without spaces, key order kept; empty when the value is nested too deeply to be written."""
    try:
        return _compact(value)
    except (ValueError, RecursionError):
        return ""


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value when it is a JSON object, an empty one otherwise."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else _NOTHING


def sequence(value: Any) -> Sequence[Any]:
    """Return the value when it is a JSON array, an empty one otherwise."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def string(value: Any) -> str:
    """Return the value when it is a string, an empty one otherwise."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """Return the value when it is a finite, non-negative number, or a string that spells one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < float("inf") else None


def tokens(value: Any) -> Tokens | None:
    """Return the value when it is a count: a non-negative number, not a boolean, not a string."""
    found = None if isinstance(value, str) else number(value)
    return None if found is None else Tokens(int(found))

"""What providers' content blocks have in common: base64 media, cache markers, canonical forms.

Owns how much of an image is kept and what counts as a marker. Refuses to know which block kinds a provider has.
"""

import binascii
from collections.abc import Mapping
from typing import Any

from pytest_agentlatency.wire.jsonedge import canonical, compact, mapping, sequence, string

_NO_PART = {"cache_control", "prompt_cache_breakpoint"}  # Anthropic and those who pass it on; OpenAI from GPT-5.6
_JPEG = b"\xff\xd8"
_HEAD = 64  # PNG, GIF and WebP state their size within the first 32 bytes
_JPEG_HEAD = 64 * 1024  # a JPEG's stands behind its EXIF and colour profile


def media_head(base64: str) -> bytes:
    """Leading bytes of a base64 image or document, enough to read its dimensions; empty when it doesn't decode."""
    head = _decode(base64[: _HEAD * 4 // 3 & ~3])
    return _decode(base64[: _JPEG_HEAD * 4 // 3 & ~3]) if head.startswith(_JPEG) else head


def _decode(base64: str) -> bytes:
    try:
        return binascii.a2b_base64(base64)
    except ValueError:
        return b""


def data_url_head(url: str) -> bytes:
    """Leading bytes of the base64 data in a `data:` URL; empty for any other."""
    head, found, data = url.partition(";base64,")
    return media_head(data) if found and head.startswith("data:") else b""


def is_marked(value: Mapping[str, Any]) -> bool:
    """Whether an object carries a cache breakpoint of its own."""
    return bool(value.get("cache_control") or value.get("prompt_cache_breakpoint"))


def unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy an object without its own cache marker and without null members, which mean the same as missing ones."""
    return {key: each for key, each in value.items() if key not in _NO_PART and each is not None}


def as_sent(value: Mapping[str, Any]) -> str:
    """JSON of an object in its key order, without cache markers and nulls at any depth; empty when nested too deep."""
    try:
        return compact(_bare(value))
    except RecursionError:
        return ""


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(each) for each in sequence(value)]
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in unmarked(mapping(value)).items()}
    return value


def lifetime(value: Mapping[str, Any]) -> str:
    """How long the object's own breakpoint asks to be kept, as sent (`1h`); empty when it doesn't say."""
    return string(mapping(value.get("cache_control")).get("ttl"))


def params(body: Mapping[str, Any], taken: frozenset[str]) -> dict[str, str]:
    """Every top-level field of a request that is not among those taken, as canonical JSON."""
    return {key: canonical(value) for key, value in body.items() if key not in taken}

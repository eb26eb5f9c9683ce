"""Whatever an HTTP library hands over as a body or header value -> plain bytes and text, and what of it is compared.

Owns that a body of a kind we don't know is equal to no other. Refuses to know vcrpy.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count
from typing import cast

_UNKNOWN = count()
_BOUNDARY = re.compile(rb"\A--([^\r\n]{1,200})\r?\n")


def as_bytes(body: object) -> bytes | None:
    """The bytes of a body; a mapping becomes JSON; None stays None."""
    match body:
        case None:
            plain = None
        case str():
            plain = body.encode("utf-8", "surrogatepass")
        case bytes() | bytearray() | memoryview():
            plain = bytes(cast("bytes", body))
        case Mapping():
            plain = json.dumps(dict(cast("Mapping[str, object]", body)), sort_keys=True, default=str).encode("utf-8")
        case Iterable():
            plain = b"".join(as_bytes(part) or b"" for part in cast("Iterable[object]", body))
        case _:
            plain = f"<{type(body).__name__} {next(_UNKNOWN)}>".encode()
    return plain


def comparable(body: object) -> bytes:
    """What two bodies are compared by: JSON without order and white space, multipart without its boundary."""
    return _comparable(as_bytes(body) or b"")


@lru_cache(maxsize=4096)
def _comparable(body: bytes) -> bytes:
    if boundary := _BOUNDARY.match(body):
        return body.replace(boundary[1], b"")
    if body[:1] not in b"{[":
        return body
    try:
        return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError):
        return body


def header(value: object) -> str:
    """A header value as text."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)

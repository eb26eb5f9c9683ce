"""AWS event stream frames (`application/vnd.amazon.eventstream`), as Bedrock sends them.

Owns the binary framing: prelude and its checksum, headers, payload. Refuses to know what a payload means, and does no
I/O.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import unpack_from
from zlib import crc32

_PRELUDE, _CHECKSUM = 12, 4
_LARGEST = 24 * 1024 * 1024  # the protocol's own limit of a message
_STRING, _BYTES = 7, 6
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Length of a header's value by its type, for the types that have a fixed one."""


@dataclass(frozen=True, slots=True)
class BinaryFrame:
    """One message of an event stream."""

    chunk: int
    """Index of the chunk that completed it."""
    event: str
    """`:event-type`, or `:exception-type` of a message that reports one."""
    payload: bytes
    exception: bool = False


def looks_like_event_stream(head: bytes) -> bool:
    """Whether a body starts with a prelude whose checksum is right."""
    return len(head) >= _PRELUDE and _lengths(head) is not None


def binary_frames(chunks: Iterable[bytes]) -> Iterator[BinaryFrame]:
    """Messages of a stream in order; ends at the first byte that is not one's, and at a message that was cut off."""
    buffer = bytearray()
    for index, chunk in enumerate(chunks):
        buffer += chunk
        at = 0
        while len(buffer) - at >= _PRELUDE:
            lengths = _lengths(buffer, at)
            if lengths is None:
                return
            total, headers = lengths
            if len(buffer) - at < total:
                break
            yield _frame(index, bytes(buffer[at : at + total]), headers)
            at += total
        del buffer[:at]


def _lengths(data: bytes | bytearray, at: int = 0) -> tuple[int, int] | None:
    total, headers, checksum = unpack_from(">III", data, at)
    right = crc32(data[at : at + 8]) == checksum
    fits = _PRELUDE + headers + _CHECKSUM <= total <= _LARGEST
    return (total, headers) if right and fits else None


def _frame(chunk: int, message: bytes, headers_length: int) -> BinaryFrame:
    body = _PRELUDE + headers_length
    headers = _headers(message[_PRELUDE:body])
    failure = headers.get(":exception-type") or headers.get(":error-code")
    return BinaryFrame(chunk, failure or headers.get(":event-type", ""), message[body:-_CHECKSUM], bool(failure))


def _headers(data: bytes) -> dict[str, str]:
    """String headers by name; reading stops where a header doesn't fit, since nothing after it can be trusted."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        start = at + 1
        end = start + data[at]
        kind = data[end] if end < len(data) else -1
        value = end + 1
        if kind in {_STRING, _BYTES} and value + 2 <= len(data):
            length = unpack_from(">H", data, value)[0]
            value += 2
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            break
        if kind == _STRING:
            found[data[start:end].decode("utf-8", "replace")] = data[value : value + length].decode("utf-8", "replace")
        at = value + length
    return found

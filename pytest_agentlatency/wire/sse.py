"""Server-sent events from bytes, as https://html.spec.whatwg.org/multipage/server-sent-events.html reads them.

Owns lines, fields and the chunk that completed an event. Refuses to know what an event means, and does no I/O.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_OPENINGS = (b"data:", b"event:", b"id:", b"retry:", b":")


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event."""

    name: str
    """The `event` field; `message` when there was none."""
    data: str
    """The `data` lines, joined by newlines."""
    id: str = ""
    """The last `id` seen in the stream."""


class SSEParser:
    """Incremental parser: the events are the same however the bytes were cut into chunks."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; return the events that they completed."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF whose CR ended the line already
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        head, *rest = _LINE_END.split(chunk)
        self._line.append(head)
        if not rest:
            return []
        lines = [b"".join(self._line), *rest[:-1]]
        self._line = [rest[-1]]
        return [event for line in lines if (event := self._take(line))]

    def close(self) -> list[Event]:
        """Return the event that the end of the stream completes.

        The standard drops an event without its blank line; servers that forget the last one are common enough, and
        an event cut in the middle doesn't parse as what it should be anyway.
        """
        line = b"".join(self._line)
        self._line = []
        event = self._take(line) if line else None
        last = event or self._take(b"")
        return [last] if last else []

    def _take(self, line: bytes) -> Event | None:
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        self._set(field, value.removeprefix(b" ").decode("utf-8", "replace"))
        return None

    def _set(self, field: bytes, value: str) -> None:
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field == b"id" and "\0" not in value:
            self._id = value

    def _dispatch(self) -> Event | None:
        event = Event(self._name or "message", "\n".join(self._data), self._id) if self._data else None
        self._name, self._data = "", []
        return event


def events(chunks: Iterable[bytes]) -> Iterator[tuple[int, Event]]:
    """Each event of a stream with the index of the chunk that completed it."""
    parser = SSEParser()
    last = 0
    for last, chunk in enumerate(chunks):
        for event in parser.feed(chunk):
            yield last, event
    for event in parser.close():
        yield last, event


def looks_like_sse(head: bytes) -> bool:
    """Whether a body that starts with these bytes is an event stream; its content type is often missing or wrong."""
    return head.removeprefix(_BOM).lstrip().startswith(_OPENINGS)

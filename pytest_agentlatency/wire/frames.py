"""A response body as decoded messages, each with the chunk that completed it, whatever frames it came in.

Owns telling the framings apart: by the first bytes, because content types are redacted, wrong or left by a proxy.
Refuses to know what a message means.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.eventstream import binary_frames, looks_like_event_stream
from pytest_agentlatency.wire.jsonedge import loads
from pytest_agentlatency.wire.jsonstream import objects
from pytest_agentlatency.wire.sse import events, looks_like_sse

_ENOUGH = 64
_ERROR = 400
_STREAM_TYPES = ("event-stream", "eventstream", "ndjson", "jsonl", "stream+json")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a body."""

    value: Any
    """Its JSON value; None when it holds none."""
    chunk: int | None = None
    """Index of the chunk that completed it; None for a body that is one message."""
    name: str = ""
    """Event type, where the framing states one."""
    done: bool = False
    """It is OpenAI's `[DONE]`."""
    failed: bool = False
    """The framing itself says that it reports an error."""


@dataclass(frozen=True, slots=True)
class Body:
    """A response body, decoded."""

    streamed: bool
    frames: tuple[Frame, ...] = ()


def read(response: Response) -> Body:
    """Decode a body; a message that isn't JSON has the value None."""
    head = _head(response)
    if looks_like_event_stream(head):
        return Body(streamed=True, frames=tuple(_from_binary(response)))
    if looks_like_sse(head):
        return Body(streamed=True, frames=tuple(_from_events(response)))
    kind = (response.header("content-type") or "").lower()
    announced = any(each in kind for each in _STREAM_TYPES)
    if not head.strip():
        return Body(streamed=announced)
    value = loads(response.body)
    if isinstance(value, list) or value is None or announced:
        found = tuple(Frame(loads(each), chunk) for chunk, each in objects(response.chunks))
        if found:
            return Body(streamed=True, frames=found)
    return Body(streamed=False, frames=(Frame(value),))


def _from_binary(response: Response) -> Iterator[Frame]:
    for frame in binary_frames(response.chunks):
        yield Frame(loads(frame.payload), frame.chunk, frame.event, failed=frame.exception)


def _from_events(response: Response) -> Iterator[Frame]:
    for chunk, event in events(response.chunks):
        done = event.data.strip() == "[DONE]"
        yield Frame(None if done else loads(event.data), chunk, event.name, done)


def error_of_status(status: int) -> str:
    """Error type of a response that names none: `http_502`; empty below 400."""
    return f"http_{status}" if status >= _ERROR else ""


def _head(response: Response) -> bytes:
    """The first bytes that aren't blank: gateways keep a connection alive with spaces before a JSON body."""
    head = b""
    for chunk in response.chunks:
        head += (chunk if head else chunk.lstrip())[:_ENOUGH]
        if len(head) >= _ENOUGH:
            break
    return head

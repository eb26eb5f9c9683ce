"""A response body as decoded messages, each with the chunk that completed it, whatever frames it came in.

Owns telling the framings apart. Refuses to know what a message means.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.jsonedge import loads
from pytest_agentlatency.wire.sse import events, looks_like_sse

_ENOUGH = 64
_ERROR = 400


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a body."""

    value: Any
    """Its JSON value; None when it holds none."""
    chunk: int | None
    """Index of the chunk that completed it; None for a body that is one message."""
    name: str = ""
    """Event name, where the framing has one."""
    data: str = ""
    """The text as it was framed, for events."""


def is_stream(response: Response) -> bool:
    """Whether the body is a stream of messages: told by its first bytes, by its content type when there are none."""
    head = _head(response)
    if not head.strip():
        return "event-stream" in (response.header("content-type") or "").lower()
    return looks_like_sse(head)


def frames(response: Response) -> Iterator[Frame]:
    """Messages of the body in order; one that isn't JSON has the value None."""
    if is_stream(response):
        for chunk, event in events(response.chunks):
            yield Frame(loads(event.data), chunk, event.name, event.data)
    elif response.chunks:
        yield Frame(loads(response.body), None)


def error_of_status(status: int) -> str:
    """Error type of a response that names none: `http_502`; empty below 400."""
    return f"http_{status}" if status >= _ERROR else ""


def _head(response: Response) -> bytes:
    head = b""
    for chunk in response.chunks:
        head += chunk
        if len(head) >= _ENOUGH:
            break
    return head[:_ENOUGH]

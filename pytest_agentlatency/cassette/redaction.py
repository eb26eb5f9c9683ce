"""The redaction hooks of a user's `vcr_config`, run over model exchanges once, on their way into a cassette.

A live request of a replay passes them too, before it is compared: what they took out must not count as a difference.
What is loaded never does. Owns what a hook may do to an exchange, and where chunks end in a body that it changed.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, cast

from pytest_agentlatency.cassette import plainbody
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.headers import clean_url, keep_request, keep_response
from pytest_agentlatency.cassette.vcr import Filters
from pytest_agentlatency.model.recording import Attempt, Headers, Recording, Request, Response
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.message import Answer, Provider

_EVENT = re.compile(rb"(?:\r\n|\n|\r){2}")


class RedactionError(CassetteError):
    """A hook took away what a replay needs."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """The hooks of one test."""

    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the fixture `vcr_config` gave; see `vcr.HONOURED`."""

    def __bool__(self) -> bool:
        return bool(self.config)

    def recording(self, recording: Recording) -> Recording:
        """Every exchange as it may be stored. RedactionError when a hook drops one or makes it unusable."""
        if not self:
            return recording
        filters = Filters(self.config)
        return replace(recording, attempts=tuple(_attempt(filters, each) for each in recording.attempts))

    def request(self, request: Request, call: int) -> Request:
        """A live request of this call as the cassette would hold it. RedactionError as for a recording."""
        return _request(Filters(self.config), request, call) if self else request


def _attempt(filters: Filters, attempt: Attempt) -> Attempt:
    request = _request(filters, attempt.request, attempt.call)
    if attempt.response is None:
        return replace(attempt, request=request)
    response = _response(filters, attempt.response, attempt.call)
    provider = registry.recognise(request)
    if provider is not None and _needed(provider, response) != _needed(provider, attempt.response):
        msg = (
            f"a hook of vcr_config changes what the answer to model call {attempt.call} says of its end, its tokens or "
            "its tool calls, which a replay needs. Let the hook replace secrets and leave the rest."
        )
        raise RedactionError(msg)
    return replace(attempt, request=request, response=response)


def _needed(provider: Provider, response: Response) -> tuple[object, ...]:
    answer: Answer = provider.answer(response)
    return answer.finished, answer.usage, [(block.kind, block.id, block.name) for block in answer.blocks]


def _request(filters: Filters, request: Request, call: int) -> Request:
    headers = {name: value for name, value in request.headers}  # noqa: C416  # the last of equal names, as vcrpy has it
    kept = filters.request(request.method, request.url, headers, request.body)
    if kept is None:
        raise _dropped(call, part="request")
    found = replace(
        request,
        method=kept.method,
        url=clean_url(kept.uri),
        headers=keep_request(_fields(kept.headers)),
        body=plainbody.as_bytes(kept.body) or b"",
    )
    before, after = registry.recognise(request), registry.recognise(found)
    if before is not None and (after is None or after.name != before.name):
        msg = (
            f"a hook of vcr_config leaves of model call {call} what is none any more: {found.method} {found.url}. A "
            "replay couldn't tell it from other HTTP. Let the hook replace secrets and leave path and messages."
        )
        raise RedactionError(msg)
    return found


def _dropped(call: int, *, part: str) -> RedactionError:
    msg = (
        f"a hook of vcr_config drops the {part} of model call {call}: a run with a call missing can't be replayed. Let "
        "the hook replace what must not be stored, and return the rest."
    )
    return RedactionError(msg)


def _response(filters: Filters, response: Response, call: int) -> Response:
    grouped: dict[str, list[str]] = {}
    for name, value in response.headers:
        grouped.setdefault(name, []).append(value)
    status = {"code": response.status, "message": response.reason}
    kept = filters.response({"status": status, "headers": grouped, "body": {"string": response.body}})
    if kept is None:
        raise _dropped(call, part="response")
    body = plainbody.as_bytes(kept["body"].get("string")) or b""
    return replace(
        response,
        status=int(kept["status"]["code"]),
        reason=str(kept["status"]["message"]),
        headers=keep_response(_fields(kept["headers"])),
        chunks=response.chunks if body == response.body else rechunked(response.chunks, body),
    )


def _fields(headers: Mapping[str, Any]) -> Headers:
    return tuple((name, plainbody.header(each)) for name, value in headers.items() for each in _several(value))


def _several(value: Any) -> Iterable[Any]:
    return cast("Iterable[Any]", value) if isinstance(value, list | tuple) else (value,)


def rechunked(chunks: Sequence[bytes], body: bytes) -> tuple[bytes, ...]:
    """A changed body, cut into as many chunks as the old one, each boundary at the same place of the same event.

    Where the numbers of events differ, a boundary keeps its distance from the end of the body that is nearer in
    unchanged bytes, so that chunks away from the change stay what they were.
    """
    old = b"".join(chunks)
    ends = list(accumulate(map(len, chunks)))
    if len(old) == len(body):
        moved: Iterator[int] = iter(ends)
    elif len(olds := _starts(old)) == len(news := _starts(body)):
        moved = (_in_event(end, olds, news) for end in ends)
    else:
        head, tail = _common(old, body)
        moved = (min(end, head) if end <= len(old) - tail else len(body) - (len(old) - end) for end in ends)
    places = [0, *accumulate(moved, max)]
    places[-1] = len(body)
    return tuple(body[start:end] for start, end in pairwise(places))


def _starts(body: bytes) -> list[int]:
    """Where the events of a stream begin, and where the last ends."""
    return [0, *(found.end() for found in _EVENT.finditer(body) if found.end() < len(body)), len(body)]


def _in_event(place: int, old: Sequence[int], new: Sequence[int]) -> int:
    if place >= old[-1]:
        return new[-1]
    event = bisect_right(old, place) - 1
    return min(new[event] + place - old[event], new[event + 1])


def _common(old: bytes, new: bytes) -> tuple[int, int]:
    """Lengths of the leading and of the trailing part that two bodies share."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    return head, tail

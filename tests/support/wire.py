"""Bytes as providers put them on the wire, written by hand after their documentation and their SDKs' types."""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import httpx2

from pytest_agentlatency.model.recording import Request, Response

EVENT_STREAM = (("content-type", "text/event-stream; charset=utf-8"),)


def post(url: str, body: Any) -> Request:
    return Request("POST", url, (("content-type", "application/json"),), json.dumps(body).encode())


def whole(body: Any, status: int = 200, **headers: str) -> Response:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(status, (("content-type", "application/json"), *fields), (json.dumps(body).encode(),))


def typed(event: Mapping[str, Any]) -> bytes:
    """An event named after its `type`, as Anthropic and OpenAI Responses send it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def typed_stream(*events: Mapping[str, Any]) -> Response:
    return Response(200, EVENT_STREAM, tuple(map(typed, events)))


def data_stream(*values: Any, end: bytes = b"data: [DONE]\n\n") -> Response:
    """Unnamed events, as chat completions and Gemini send them; each is one chunk."""
    chunks = [b"data: " + json.dumps(value).encode() + b"\n\n" for value in values]
    return Response(200, EVENT_STREAM, (*chunks, end) if end else tuple(chunks))


def binary_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of an AWS event stream."""
    packed = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + packed + payload
    return message + struct.pack(">I", zlib.crc32(message))


def bedrock_stream(*events: tuple[str, Any]) -> Response:
    frames = (
        binary_frame({":message-type": "event", ":event-type": kind}, json.dumps(value).encode())
        for kind, value in events
    )
    return Response(200, (("content-type", "application/vnd.amazon.eventstream"),), tuple(frames))


class Wire:
    """An HTTP client for a real SDK that answers with prepared responses and keeps what was asked."""

    def __init__(self, responses: Iterable[Response], family: Any = httpx2) -> None:
        """`family`: the library that the SDK sends through."""
        self._family = family
        self._responses = iter(responses)
        self.requests: list[Request] = []
        self.client = family.Client(transport=family.MockTransport(self._answer))

    def _answer(self, request: Any) -> Any:
        headers = tuple(request.headers.items())
        self.requests.append(Request(request.method, str(request.url), headers, request.content))
        response = next(self._responses)
        return self._family.Response(response.status, headers=list(response.headers), content=iter(response.chunks))


def rechunked(response: Response, cuts: Iterable[int]) -> Response:
    """The same bytes, cut at other places."""
    return Response(response.status, response.headers, tuple(cut(response.body, cuts)))


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    """The body in chunks, cut at the places given (modulo its length)."""
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]

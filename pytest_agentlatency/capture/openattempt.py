"""One HTTP try of a model call while it runs: its bytes, and when they moved.

Owns the stamps of an attempt and the taking off of content codings. Knows no HTTP library; the clock is the recorder's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, Failure, Headers, Outcome, Request, Response, Stamps

if TYPE_CHECKING:
    from pytest_agentlatency.capture.recorder import Recorder

Decoder = Callable[[bytes], bytes]
"""Takes the next raw piece of a body, gives what it decodes to; stateful, one a body."""


@dataclass(slots=True)
class OpenAttempt:
    """One HTTP try while it runs. Its owner stamps it; `attempt()` reads it at any moment."""

    recorder: "Recorder"
    call: int
    request: Request
    start: Ns
    connect_start: Ns | None = None
    connect_end: Ns | None = None
    sent: Ns | None = None
    headers: Ns | None = None
    status: int | None = None
    reason: str = ""
    http_version: str = "HTTP/1.1"
    response_headers: Headers = ()
    coding: str = ""
    decoder: Callable[[], Decoder] | None = None
    chunks: list[bytes] = field(default_factory=list[bytes])
    asked: list[Ns] = field(default_factory=list[Ns])
    arrived: list[Ns] = field(default_factory=list[Ns])
    end: Ns | None = None
    outcome: Outcome = Outcome.CLOSED
    failure: Failure | None = None

    def traced(self, event: str) -> None:
        """Take a transport's trace event (`connection.connect_tcp.started`, `http11.send_request_body.complete`)."""
        if event in {"connection.connect_tcp.started", "connection.connect_unix_socket.started"}:
            self.connect_start = self.recorder.now()
        elif event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self.connect_end = self.recorder.now()
        elif event.endswith(".send_request_body.complete"):
            self.sent = self.recorder.now()

    def answered(
        self,
        status: int,
        headers: Headers,
        *,
        reason: str,
        http_version: str,
        coding: str,
        decoder: Callable[[], Decoder] | None,
    ) -> None:
        """The response's head is here."""
        self.headers = self.recorder.now()
        self.status, self.response_headers = status, headers
        self.reason, self.http_version = reason, http_version
        self.coding, self.decoder = coding, decoder

    def chunk(self, asked: Ns, arrived: Ns, data: bytes) -> None:
        """A chunk arrived; kept at its boundary, with its content coding removed later, off the agent's path."""
        self.chunks.append(data)
        self.asked.append(asked)
        self.arrived.append(arrived)

    def whole(self, data: bytes) -> None:
        """The body was there with the head."""
        if data:
            self.chunk(self.recorder.now(), self.recorder.now(), data)
        self.finish(Outcome.COMPLETE)

    def finish(self, outcome: Outcome, failure: Failure | None = None) -> None:
        """The attempt is over; the first word counts."""
        if self.end is None:
            self.end = self.recorder.now()
            self.outcome, self.failure = outcome, failure

    def attempt(self) -> Attempt:
        """What has been seen of it so far."""
        chunks, asked, arrived = _decoded(self)
        response = None
        if self.status is not None:
            response = Response(self.status, self.response_headers, chunks, self.reason, self.http_version, self.coding)
        stamps = Stamps(
            start=self.start,
            end=self.end if self.end is not None else max(self.recorder.now(), self.start),
            connect=_pair(self.connect_start, self.connect_end),
            sent=self.sent,
            headers=self.headers,
            asked=asked,
            arrived=arrived,
        )
        return Attempt(self.call, self.request, response, stamps, self.outcome, self.failure)


def _pair(start: Ns | None, end: Ns | None) -> tuple[Ns, Ns] | None:
    return None if start is None or end is None else (start, end)


def _decoded(attempt: OpenAttempt) -> tuple[tuple[bytes, ...], tuple[Ns, ...], tuple[Ns, ...]]:
    """Chunks without content coding. A received chunk that decodes to nothing yet has no place in the agent's view."""
    received = zip(tuple(attempt.chunks), attempt.asked, attempt.arrived, strict=False)
    decode = attempt.decoder() if attempt.decoder is not None else _as_it_is
    rows = [(data, asked, arrived) for raw, asked, arrived in received if (data := decode(raw))]
    return tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(row[2] for row in rows)


def _as_it_is(data: bytes) -> bytes:
    return data

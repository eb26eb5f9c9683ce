"""A planned response as a client would have observed it: bytes with stamps, without a socket or a second of waiting.

Owns that arithmetic. Refuses to know what is answered.
"""

from dataclasses import dataclass

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, Failure, Outcome, Request, Response, Stamps
from pytest_agentlatency.testing.plan import Plan

_CUT = Failure("RemoteProtocolError", "peer closed connection without sending complete message body")
_GONE = Failure("RemoteProtocolError", "Server disconnected without sending a response.")
_RESET = Failure("ReadError", "Connection reset by peer")


@dataclass(frozen=True, slots=True)
class Client:
    """How the client behaves. Times in nanoseconds."""

    connect: int = 0
    """Connection set-up before the request; 0: a connection was there."""
    consumer: int = 0
    """The consumer's own time with each chunk before it asks for the next."""
    close_after: int | None = None
    """The client closes the response after so many chunks."""


def observe(plan: Plan, request: Request, *, call: int, at: int, client: Client) -> Attempt:
    """One attempt, begun at a time on the run's clock."""
    sent = at + client.connect
    headers = None if plan.headers_at < 0 else sent + plan.headers_at
    asked, arrived, chunks = _chunks(plan, sent, client)
    end = max((headers or sent, *arrived))
    stamps = Stamps(
        start=Ns(at),
        end=Ns(end),
        connect=(Ns(at), Ns(sent)) if client.connect else None,
        sent=Ns(sent),
        headers=None if headers is None else Ns(headers),
        asked=asked,
        arrived=arrived,
    )
    response = None if headers is None else _response(plan, chunks)
    outcome, failure = _ending(plan, client)
    return Attempt(call, request, response, stamps, outcome, failure)


def _chunks(plan: Plan, sent: int, client: Client) -> tuple[tuple[Ns, ...], tuple[Ns, ...], tuple[bytes, ...]]:
    """For each chunk: when it was asked for, when it arrived (when asked for and there), and its bytes."""
    frames = [(frame.at, frame.data) for frame in plan.frames]
    if not plan.streamed:
        frames = [(max((at for at, _ in frames), default=0), b"".join(data for _, data in frames))]
    asked, arrived, clock = list[Ns](), list[Ns](), sent + plan.headers_at
    for at, _ in frames[: client.close_after]:
        asked.append(Ns(clock))
        arrived.append(Ns(max(clock, sent + at)))
        clock = arrived[-1] + client.consumer
    return tuple(asked), tuple(arrived), tuple(data for _, data in frames[: client.close_after])


def _response(plan: Plan, chunks: tuple[bytes, ...]) -> Response:
    length = ("transfer-encoding", "chunked") if plan.streamed else ("content-length", str(len(b"".join(chunks))))
    coding = (("content-encoding", plan.coding),) if plan.coding else ()
    return Response(plan.status, (*plan.headers.items(), *coding, length), chunks, coding=plan.coding)


def _ending(plan: Plan, client: Client) -> tuple[Outcome, Failure | None]:
    if client.close_after is not None and client.close_after < len(plan.frames):
        return Outcome.CLOSED, None
    if plan.ending == "complete":
        return Outcome.COMPLETE, None
    if plan.ending == "reset":
        return Outcome.ERROR, _RESET
    return Outcome.ERROR, _GONE if plan.headers_at < 0 else _CUT

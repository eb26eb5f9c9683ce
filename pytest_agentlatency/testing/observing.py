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
    came = [] if headers is None else _pieces(plan)
    read = came[: client.close_after]
    asked, arrived = _moments([at for at, _ in read], sent, headers or sent, client.consumer)
    stamps = Stamps(
        start=Ns(at),
        end=Ns(max((headers or sent, *arrived))),
        connect=(Ns(at), Ns(sent)) if client.connect else None,
        sent=Ns(sent),
        headers=None if headers is None else Ns(headers),
        asked=asked,
        arrived=arrived,
    )
    response = None if headers is None else _response(plan, tuple(data for _, data in read))
    outcome, failure = (Outcome.CLOSED, None) if len(read) < len(came) else _ending(plan)
    return Attempt(call, request, response, stamps, outcome, failure)


def _pieces(plan: Plan) -> list[tuple[int, bytes]]:
    """What comes in one piece, and when: each frame of a stream; of any other body all, or half when it is cut."""
    if plan.streamed:
        return [(frame.at, frame.data) for frame in plan.frames]
    body = _body(plan)
    kept = body if plan.ending == "complete" else body[: len(body) // 2]
    return [(max(frame.at for frame in plan.frames), kept)] if kept else []


def _moments(due: list[int], sent: int, headers: int, consumer: int) -> tuple[tuple[Ns, ...], tuple[Ns, ...]]:
    """For each chunk, when it was asked for, and when it arrived: it was there, and asked for."""
    asked, arrived, clock = list[Ns](), list[Ns](), headers
    for at in due:
        asked.append(Ns(clock))
        arrived.append(Ns(max(clock, sent + at)))
        clock = arrived[-1] + consumer
    return tuple(asked), tuple(arrived)


def _response(plan: Plan, chunks: tuple[bytes, ...]) -> Response:
    length = ("transfer-encoding", "chunked") if plan.streamed else ("content-length", str(len(_body(plan))))
    coding = (("content-encoding", plan.coding),) if plan.coding else ()
    return Response(plan.status, (*plan.headers.items(), *coding, length), chunks, coding=plan.coding)


def _body(plan: Plan) -> bytes:
    return b"".join(frame.data for frame in plan.frames)


def _ending(plan: Plan) -> tuple[Outcome, Failure | None]:
    if plan.ending == "complete":
        return Outcome.COMPLETE, None
    if plan.ending == "reset":
        return Outcome.ERROR, _RESET
    return Outcome.ERROR, _GONE if plan.headers_at < 0 else _CUT

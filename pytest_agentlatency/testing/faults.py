"""What can go wrong with an answer, each a pure change of its plan.

Owns the faults. Refuses to send anything. Times are nanoseconds, events are counted from 1; in a JSON answer the whole
body is one event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_agentlatency.testing.coding import encoder
from pytest_agentlatency.testing.messages_api import JSON_HEADERS, event, refusal
from pytest_agentlatency.testing.plan import Ending, Frame, Plan

_MS, _S = 1_000_000, 1_000_000_000


class Fault(Protocol):
    """A change of a planned response."""

    def change(self, plan: Plan) -> Plan:
        """The response with the fault in it."""
        ...


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error status instead of an answer: 429, 500, 529, ... The script's reply is kept for the next attempt."""

    status: int = 529
    retry_after: int | None = None
    """Sent as `retry-after` (whole seconds, rounded up) and `retry-after-ms`; without, the SDK chooses its backoff."""
    message: str = "the simulated model refuses"

    def change(self, plan: Plan) -> Plan:
        """Replace the answer."""
        refused = refusal(self.status, self.message)
        wait = self.retry_after
        headers = {} if wait is None else {"retry-after": str(-(-wait // _S)), "retry-after-ms": f"{wait / _MS:g}"}
        frames = tuple(replace(frame, at=plan.headers_at) for frame in refused.frames)
        return replace(refused, headers=JSON_HEADERS | headers, headers_at=plan.headers_at, frames=frames)


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends before any byte of the response."""

    reset: bool = False

    def change(self, plan: Plan) -> Plan:
        """Send nothing."""
        return replace(plan, headers_at=-1, frames=(), ending=_ending(reset=self.reset))


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends after so many events; a JSON answer ends in the middle of its body."""

    after: int
    reset: bool = False
    """With a TCP reset; otherwise closed in order, but before the body's stated end."""

    def change(self, plan: Plan) -> Plan:
        """Leave the rest out."""
        frames = plan.frames[: self.after] if plan.streamed else plan.frames
        return replace(plan, frames=frames, ending=_ending(reset=self.reset))


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes for a while before an event; all after it comes later by as much."""

    wait: int
    before: int = 1

    def change(self, plan: Plan) -> Plan:
        """Shift the rest."""
        return plan.delayed(self.wait, frame=self.before - 1)


@dataclass(frozen=True, slots=True)
class SlowHeaders:
    """The headers, and all after them, come later."""

    wait: int

    def change(self, plan: Plan) -> Plan:
        """Shift everything."""
        return replace(plan.delayed(self.wait), headers_at=plan.headers_at + self.wait)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A proxy holds events back and passes them on in bursts of so many; None: all in one write at the end."""

    events: int | None = None
    hold_headers: bool = False
    """The headers wait for the first burst, too."""

    def change(self, plan: Plan) -> Plan:
        """Join the events of each burst, due when its last one was."""
        size = self.events or max(1, len(plan.frames))
        bursts = [plan.frames[start : start + size] for start in range(0, len(plan.frames), size)]
        frames = tuple(
            Frame(burst[-1].at, b"".join(each.data for each in burst), any(each.generated for each in burst))
            for burst in bursts
        )
        headers_at = frames[0].at if frames and self.hold_headers else plan.headers_at
        return replace(plan, frames=frames, headers_at=headers_at)


@dataclass(frozen=True, slots=True)
class Insert:
    """Bytes of their own in the stream, before an event and due with it."""

    data: bytes
    before: int = 1

    def change(self, plan: Plan) -> Plan:
        """Add a frame; nothing changes in a JSON answer."""
        place = self.before - 1
        if not plan.streamed or not plan.frames:
            return plan
        at = plan.frames[min(place, len(plan.frames) - 1)].at
        return replace(plan, frames=(*plan.frames[:place], Frame(at, self.data), *plan.frames[place:]))


def ping(before: int = 1) -> Insert:
    """Anthropic's keep-alive event before another event."""
    return Insert(event("ping", {}), before)


def comment(before: int = 1, text: str = "keep-alive") -> Insert:
    """A server-sent comment before an event, as proxies send them."""
    return Insert(f": {text}\n\n".encode(), before)


def unknown_event(before: int = 1, kind: str = "simulated_novelty") -> Insert:
    """An event of a type that no client knows yet."""
    return Insert(event(kind, {"note": "new in a later version"}), before)


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error inside a 200 stream after so many events, which ends it."""

    after: int
    kind: str = "overloaded_error"
    message: str = "the simulated model is overloaded"

    def change(self, plan: Plan) -> Plan:
        """Replace the rest by the error; nothing changes in a JSON answer."""
        if not plan.streamed:
            return plan
        kept = plan.frames[: self.after]
        at = plan.frames[min(self.after, len(plan.frames) - 1)].at if plan.frames else plan.headers_at
        error = event("error", {"error": {"type": self.kind, "message": self.message}})
        return replace(plan, frames=(*kept, Frame(at, error)))


@dataclass(frozen=True, slots=True)
class Blank:
    """Status 200 and a body of no bytes."""

    def change(self, plan: Plan) -> Plan:
        """Drop every event."""
        return replace(plan, frames=())


@dataclass(frozen=True, slots=True)
class Coding:
    """A content coding: `gzip`, `deflate`, `br` (needs brotli), `zstd` (backports.zstd); flushed every event.

    ValueError for another name; ImportError where the package is missing.
    """

    name: str = "gzip"

    def __post_init__(self) -> None:
        encoder(self.name)

    def change(self, plan: Plan) -> Plan:
        """Encode while sending."""
        return replace(plan, coding=self.name)


@dataclass(frozen=True, slots=True)
class LineEnds:
    r"""Events framed with other line ends: `\r\n` or `\r`, which the SSE standard allows as well."""

    newline: bytes = b"\r\n"

    def change(self, plan: Plan) -> Plan:
        """Rewrite the framing; JSON escapes its own line ends, so that no data changes."""
        if not plan.streamed:
            return plan
        frames = (replace(frame, data=frame.data.replace(b"\n", self.newline)) for frame in plan.frames)
        return replace(plan, frames=tuple(frames))


def _ending(*, reset: bool) -> Ending:
    return "reset" if reset else "close"


def refuses(faults: Sequence[Fault]) -> bool:
    """Whether the model never gets to answer, so that its script keeps the reply."""
    return any(isinstance(fault, (Refuse, Drop)) for fault in faults)

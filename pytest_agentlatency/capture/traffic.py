"""What a model request meets on its way out, whatever library carries it: an observer or a player.

One sans-I/O core; `capture.transport` adapts it to httpx and httpx2, sync and async.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pytest_agentlatency.capture.eventstreams import OpenStreams
from pytest_agentlatency.capture.openattempt import OpenAttempt
from pytest_agentlatency.capture.origin import Origin
from pytest_agentlatency.capture.recorder import Recorder
from pytest_agentlatency.capture.virtual_time import Pace, VirtualTime
from pytest_agentlatency.cassette.matching import Match, Matcher, Unmatched
from pytest_agentlatency.cassette.redaction import Redaction, RedactionError
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.veil import Veil
from pytest_agentlatency.model.recording import Attempt, Outcome, Request
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.wire import registry

_PATIENCE_NS = 3_600_000_000_000  # virtual time passes at once, and the work between calls, real then, is left out


class RunFailedError(BaseException):
    """The run can't go on, or can't be trusted: the test fails with this message.

    Not an Exception: an SDK would retry it twice and then call it a connection error.
    """


@dataclass(slots=True)
class Observer:
    """Record and live: requests go out and are observed."""

    recorder: Recorder
    learned: Learned = field(default_factory=Learned)
    """Credentials that were sent: they may stand nowhere in a cassette."""
    origin: Origin = field(default_factory=Origin)
    strangers: list[str] = field(default_factory=list[str])
    """What is said of calls that were no part of the run."""
    event_streams: list[OpenAttempt] | None = None
    """Event streams of no model, as they are recorded; None: they are nobody's business."""

    def observe(self, request: Request) -> OpenAttempt:
        """Open an attempt of the call in progress; one that is filed nowhere for a call from elsewhere."""
        stranger = self.origin.stranger()
        if stranger:
            self.strangers.append(stranger)
            return OpenAttempt(self.recorder, 0, request, self.recorder.now())
        return self.recorder.open_attempt(self.recorder.open_call(), request)


@dataclass(frozen=True, slots=True)
class Played:
    """One live request and the recorded attempt that answered it."""

    live_call: int
    request: Request
    match: Match


@dataclass(slots=True)
class Player:
    """Replay: nothing goes out, the cassette answers."""

    recorder: Recorder
    matcher: Matcher
    time: VirtualTime
    learned: Learned = field(default_factory=Learned)
    played: list[Played] = field(default_factory=list[Played])
    failures: list[RunFailedError] = field(default_factory=list[RunFailedError])
    stopping: Callable[[str], RunFailedError] = RunFailedError
    """Makes the exception of a message."""
    redaction: Redaction = Redaction()
    origin: Origin = field(default_factory=Origin)
    open_streams: OpenStreams = field(default_factory=OpenStreams)
    price: Callable[[Unmatched], str] = lambda _: ""
    """Says what an unmatched request would cost as a change of the nearest recorded call."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, request: Request) -> "Playback":
        """Give the attempt that the matcher pairs with a live request. RunFailedError when there is none."""
        stranger = self.origin.stranger()
        if stranger:
            raise self.fail(stranger)
        call = self.recorder.open_call()
        self.recorder.open_attempt(call, request).finish(Outcome.COMPLETE)
        try:
            request = self.redaction.request(request, call.id)
            match = self.matcher.take(call.id, request)
        except Unmatched as miss:
            raise self.fail(miss.priced(self.price(miss))) from None
        except RedactionError as error:
            raise self.fail(str(error)) from None
        with self._lock:
            self.played.append(Played(call.id, request, match))
        if self.recorder.results is not None:
            self.recorder.results.answered(match)
        return Playback(match.recorded, self, self.time.pace())

    def fail(self, message: str) -> RunFailedError:
        """Note a failure, so that it is told even where the agent swallows the exception; returns it to raise."""
        failure = self.stopping(Veil(self.learned).over(message))
        self.failures.append(failure)
        return failure

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many live calls ended as each verdict; retries count with their call."""
        calls = {played.live_call: played.match.verdict for played in self.played}
        return {verdict: sum(1 for each in calls.values() if each is verdict) for verdict in Verdict}


class Answering(Protocol):
    """What stands in the way of requests and answers them, or doesn't let them out."""

    learned: Learned

    def play(self, request: Request) -> "Playback":
        """The recorded attempt that answers a request."""
        ...


Traffic = Observer | Answering


@dataclass(slots=True)
class Playback:
    """One recorded attempt being given back."""

    recorded: Attempt
    traffic: Player
    pace: Pace

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The body at its recorded boundaries."""
        return self.recorded.response.chunks if self.recorded.response is not None else ()

    @property
    def finished(self) -> bool:
        """Whether the recorded bytes contain the provider's own end of the answer."""
        provider = registry.recognise(self.recorded.request)
        response = self.recorded.response
        return provider is not None and response is not None and provider.answer(response).finished

    async def wait_async(self, index: int | None) -> None:
        """Let virtual time pass until a chunk (None: the headers) is due, and give it to other tasks."""
        await self.pace.until_async(self._due(index))

    async def until_cancelled(self) -> None:
        """Where the recorded agent gave up waiting, let its deadline come again: no time is too long in a replay."""
        if self.recorded.outcome is Outcome.CANCELLED:
            await self.pace.until_async(self._due(len(self.chunks)) + _PATIENCE_NS)

    def _due(self, index: int | None) -> int:
        stamps = self.recorded.stamps
        if stamps is None:
            return 0
        if index is None:
            return (stamps.headers if stamps.headers is not None else stamps.end) - stamps.start
        return stamps.arrived[index] - stamps.start if index < len(stamps.arrived) else stamps.end - stamps.start

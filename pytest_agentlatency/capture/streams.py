"""Response bodies at the seam: teed while observing, given back while replaying; sync and async over one core each.

Owns what happens at a chunk's boundary. The classes are made per HTTP family, whose clients insist on their own types.
"""

import functools
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pytest_agentlatency.capture.failures import failure_of, raised
from pytest_agentlatency.capture.openattempt import OpenAttempt
from pytest_agentlatency.capture.traffic import Playback
from pytest_agentlatency.model.recording import Outcome


@dataclass(frozen=True, slots=True)
class Streams:
    """The body streams of one HTTP family."""

    tee: type
    async_tee: type
    play: type
    async_play: type
    hold: type
    async_hold: type


@functools.cache
def of(family: ModuleType) -> Streams:
    """The streams as subclasses of the family's own."""
    sync, asynchronous = family.SyncByteStream, family.AsyncByteStream
    return Streams(
        type("Tee", (_Tee, sync), {}),
        type("AsyncTee", (_AsyncTee, asynchronous), {}),
        type("Play", (_Play, sync), {}),
        type("AsyncPlay", (_AsyncPlay, asynchronous), {}),
        type("Hold", (_Hold, sync), {}),
        type("AsyncHold", (_AsyncHold, asynchronous), {}),
    )


def outcome_of(error: BaseException) -> Outcome:
    """How an attempt ended that this exception left: the agent's cancellation, or a failure of the connection."""
    cancelled = isinstance(error, (KeyboardInterrupt, GeneratorExit)) or type(error).__name__ in {
        "CancelledError",  # asyncio's
        "Cancelled",  # trio's
    }
    return Outcome.CANCELLED if cancelled else Outcome.ERROR


class _Tee:
    """A body on its way to the caller, each chunk stamped before it is handed on."""

    def __init__(self, stream: Any, attempt: OpenAttempt) -> None:
        self._stream, self._attempt = stream, attempt

    def __iter__(self) -> Iterator[bytes]:
        attempt, now = self._attempt, self._attempt.recorder.now
        chunks = iter(self._stream)
        try:
            while True:
                asked = now()
                data = next(chunks, None)
                if data is None:
                    break
                attempt.chunk(asked, now(), data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            attempt.finish(outcome_of(error), failure_of(error))
            raise
        attempt.finish(Outcome.COMPLETE)

    def close(self) -> None:
        self._attempt.finish(Outcome.CLOSED)
        self._stream.close()


class _AsyncTee:
    def __init__(self, stream: Any, attempt: OpenAttempt) -> None:
        self._stream, self._attempt = stream, attempt

    async def __aiter__(self) -> AsyncIterator[bytes]:
        attempt, now = self._attempt, self._attempt.recorder.now
        asked = now()
        try:
            async for data in self._stream:
                attempt.chunk(asked, now(), data)
                yield data
                asked = now()
        except GeneratorExit:
            raise
        except BaseException as error:
            attempt.finish(outcome_of(error), failure_of(error))
            raise
        attempt.finish(Outcome.COMPLETE)

    async def aclose(self) -> None:
        self._attempt.finish(Outcome.CLOSED)
        await self._stream.aclose()


class _Play:
    """A recorded body, given back at its boundaries and with its end; a synchronous agent waits for nobody else."""

    def __init__(self, playback: Playback, family: ModuleType) -> None:
        self._playback, self._family = playback, family

    def __iter__(self) -> Iterator[bytes]:
        yield from self._playback.chunks
        _end(self._playback, self._family)

    def close(self) -> None:
        """Nothing to give back."""


class _AsyncPlay:
    def __init__(self, playback: Playback, family: ModuleType) -> None:
        self._playback, self._family = playback, family

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for index, data in enumerate(self._playback.chunks):
            await self._playback.wait_async(index)
            yield data
        await self._playback.until_cancelled()
        _end(self._playback, self._family)

    async def aclose(self) -> None:
        """Nothing to give back."""


class _Hold:
    """A body that never ended: what came of it, then nothing until it is closed."""

    def __init__(self, body: bytes) -> None:
        self._body, self._closed = body, threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        if self._body:
            yield self._body
        self._closed.wait()

    def close(self) -> None:
        self._closed.set()


class _AsyncHold:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body
        import anyio  # noqa: PLC0415  # a dependency of httpx and httpx2

        await anyio.sleep_forever()

    async def aclose(self) -> None:
        """Who waits for more is cancelled by its own loop."""


def _end(playback: Playback, family: ModuleType) -> None:
    recorded = playback.recorded
    if recorded.outcome is Outcome.ERROR and recorded.failure is not None:
        raise raised(family, recorded.failure)
    if recorded.outcome in {Outcome.CLOSED, Outcome.CANCELLED} and not playback.finished:
        msg = (
            "the agent reads on where the recorded run stopped reading: "
            f"the cassette holds {len(playback.chunks)} chunk(s) of this answer and not its end. Record it again with "
            "--latency-mode=record."
        )
        raise playback.traffic.fail(msg)

"""Time in a replay: it passes on the event loop without anybody waiting for it.

The running asyncio loop is virtualised in place at the first replayed call and put back at the end: its clock stands
still while anything is ready and jumps to the next timer when nothing is. Concurrent agents so meet their answers in
the recorded order, and a recorded minute costs nothing. Figures don't come from here, they come from the recording;
this only decides who goes first.

Refuses to touch `time` itself, or a loop that isn't asyncio's own (uvloop, trio): there, answers come at once.
"""

import asyncio
import math
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from pytest_agentlatency.model import clock
from pytest_agentlatency.model.clock import Ns

IO_GRACE_S = 1.0
"""How many real seconds a newly seen socket may keep virtual time from jumping; then it counts as idle (pooled)."""
HOLD_S = 30.0
"""How many real seconds a job in a thread or process may keep virtual time from jumping,
so that a hung one meets its timeout, and one that waits in the background costs this once."""


@dataclass(slots=True)
class Pace:
    """One answer's delivery: waits are offsets in nanoseconds from its beginning."""

    loop: "VirtualLoop | None"
    begin: float

    async def until_async(self, offset_ns: int) -> None:
        """Give the loop to others until the offset is due."""
        if self.loop is None:
            await _checkpoint()
            return
        delay = self.begin + offset_ns / 1e9 - self.loop.loop.time()
        await asyncio.sleep(max(0.0, delay))


async def _checkpoint() -> None:
    # anyio is a dependency of httpx and httpx2, and knows which loop runs here.
    import anyio.lowlevel  # noqa: PLC0415

    await anyio.lowlevel.checkpoint()


_ANYIO_JOB = "run_sync_in_worker_thread"


@dataclass(slots=True)
class Jobs:
    """Work that loops have in threads and processes.

    Known from before a loop is virtualised: an agent may hand some away on its way to its first call, as the SDKs do,
    and another agent of the loop must not run ahead of it.
    """

    _running: defaultdict[int, dict[object, Ns]] = field(default_factory=lambda: defaultdict(dict))

    def patience(self, loop: Any) -> float:
        """How many real seconds the loop has to wait at most for jobs that haven't come back to it."""
        newest = max(self._running[id(loop)].values(), default=None)
        return 0.0 if newest is None else HOLD_S - (clock.now() - newest) / 1e9

    def install(self, stack: ExitStack) -> None:
        """Count until the stack closes."""
        # httpx and httpx2 bring anyio, and its threads aren't asyncio's executor.
        from anyio._backends import _asyncio as anyio_threads  # noqa: PLC0415

        base: Any = asyncio.BaseEventLoop
        backend: Any = anyio_threads.AsyncIOBackend
        process: Any = asyncio.subprocess.Process
        for owner, name, patched in (
            (base, "run_in_executor", self._counting(base.run_in_executor)),
            # Closing the executor guards a join in a plain thread with a timer; jumping to it would fire it.
            (base, "shutdown_default_executor", self._awaiting(base.shutdown_default_executor)),
            # A process counts while its end is awaited; one that serves the agent all along is like an idle socket.
            (process, "wait", self._awaiting(process.wait)),
            (process, "communicate", self._awaiting(process.communicate)),
            (backend, _ANYIO_JOB, classmethod(self._awaiting(getattr(backend, _ANYIO_JOB).__func__))),
        ):
            stack.enter_context(mock.patch.object(owner, name, patched))

    def _begin(self, loop: Any) -> Callable[..., Any]:
        """A job begins; what is returned ends it."""
        jobs, job = self._running[id(loop)], object()
        jobs[job] = clock.now()
        return lambda *_: jobs.pop(job)

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_in_executor(loop: Any, *args: Any) -> Any:
            future = original(loop, *args)
            future.add_done_callback(self._begin(loop))
            return future

        return run_in_executor

    def _awaiting(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(owner: Any, *args: Any, **kwargs: Any) -> Any:
            end = self._begin(asyncio.get_running_loop())
            try:
                return await original(owner, *args, **kwargs)
            finally:
                end()

        return counted


@dataclass(slots=True)
class VirtualTime:
    """The loops that this run has virtualised."""

    _jobs: Jobs = field(default_factory=Jobs)
    _loops: dict[int, "VirtualLoop"] = field(default_factory=dict[int, "VirtualLoop"])

    def install(self, stack: ExitStack) -> None:
        """Be ready for loops until the stack closes; then every one has its own clock again."""
        self._jobs.install(stack)
        stack.callback(self.restore)

    def pace(self) -> Pace:
        """Begin an answer now, in the loop that runs here, if one does."""
        loop = _running()
        if loop is None:
            return Pace(None, 0.0)
        virtual = self._loops.get(id(loop))
        if virtual is None:
            virtual = self._loops[id(loop)] = VirtualLoop(loop, self._jobs)
        return Pace(virtual, loop.time())

    def restore(self) -> None:
        """Give every loop its own clock back, continuing from the virtual time."""
        for virtual in self._loops.values():
            virtual.restore()
        self._loops.clear()


def _running() -> Any:
    """The running loop if it is asyncio's own and can be virtualised."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return loop if isinstance(loop, asyncio.SelectorEventLoop) or sys.platform == "win32" else None


class VirtualLoop:
    """A running selector loop whose clock jumps."""

    def __init__(self, loop: Any, jobs: Jobs) -> None:
        """Virtualise the loop until `restore`."""
        self.loop, self._jobs = loop, jobs
        self._now: float = loop.time()
        self._idle: set[int] = set()
        self._select: Callable[[float | None], list[Any]] = loop._selector.select  # noqa: SLF001
        loop.time = lambda: self._now
        loop._selector.select = self._wait  # noqa: SLF001

    def restore(self) -> None:
        """Put the loop's own clock back, from where virtual time stands: pending timers keep their order."""
        real: Callable[[Any], float] = self.loop.__class__.time
        ahead = self._now - real(self.loop)
        self.loop.time = lambda: real(self.loop) + ahead
        if not self.loop.is_closed():
            del self.loop._selector.select  # noqa: SLF001

    def _wait(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout <= 0:
            self._pass_what_is_due()
            return self._select(timeout)
        events = self._select(0) or self._hold()
        if not events:
            self._now += timeout
        return events

    def _pass_what_is_due(self) -> None:
        """A clock in seconds since 1970 is too coarse for asyncio's own margin: a timer due exactly now never fires."""
        scheduled = self.loop._scheduled  # noqa: SLF001
        if scheduled and not self.loop._ready and scheduled[0].when() == self._now:  # noqa: SLF001
            self._now = math.nextafter(self._now, math.inf)

    def _hold(self) -> list[Any]:
        """Wait in real time, but virtual time stands still, while work outside the loop may still answer."""
        patience = self._jobs.patience(self.loop)
        if patience > 0:
            return self._select(patience)
        fresh = self._sockets() - self._idle
        if not fresh:
            return []
        events = self._select(IO_GRACE_S)
        if not events:
            self._idle |= fresh
        return events

    def _sockets(self) -> set[int]:
        own = self.loop._ssock.fileno() if getattr(self.loop, "_ssock", None) else -1  # noqa: SLF001
        return {key.fd for key in self.loop._selector.get_map().values() if key.fd != own}  # noqa: SLF001

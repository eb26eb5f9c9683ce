"""Whose a model call is: this run's, or that of something that an earlier test left running.

Told by the context in which the call is made; where that says nothing, by its thread: one that was at work when the
run began is a stranger. Threads that wait for work of others (executors, event loops) serve every test.
"""

import inspect
import sys
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

_run: ContextVar[object] = ContextVar("agentlatency_run", default=None)
# Where a thread stands that waits for work: concurrent.futures' pool; a loop of asyncio, trio, or uvloop, which is C.
_AT_REST = {
    ("_worker", "thread.py"), ("select", "selectors.py"), ("_poll", "windows_events.py"),
    ("get_events", "_io_epoll.py"), ("get_events", "_io_kqueue.py"), ("run", "threading.py"),
}  # fmt: skip
_TO_AN_END = frozenset({"run_until_complete", "unrolled_run"})  # asyncio's, trio's


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left at work when it ended: threads, each with the frame in which its work began."""

    work: Mapping[threading.Thread, FrameType]

    def __bool__(self) -> bool:
        """Whether any of it may still be at work."""
        return any(thread.is_alive() for thread in self.work)

    def asks(self) -> bool:
        """Whether the caller is part of it. A pool's thread that has gone on to other work is not."""
        began = next((frame for thread, frame in self.work.items() if thread.ident == threading.get_ident()), None)
        return began is not None and began in _stack(inspect.currentframe())


class Origin:
    """What was running when a run began."""

    def __init__(self) -> None:
        self._own = object()
        self._busy: frozenset[threading.Thread] = frozenset()
        self._alive: frozenset[threading.Thread] = frozenset()

    def begin(self) -> None:
        """The run begins here: in this thread and this context."""
        _run.set(self._own)
        others = _others()
        self._alive = frozenset(others)
        self._busy = frozenset(thread for thread, frame in others.items() if not _at_rest(frame))

    def left(self) -> Left:
        """What the run leaves at work; who waits for work, of a queue too, serves every test."""
        return Left({thread: _work(frame) for thread, frame in _others().items() if self._is_left(thread, frame)})

    def _is_left(self, thread: threading.Thread, frame: FrameType) -> bool:
        if _at_rest(frame):
            return thread not in self._alive and (_ends_by_itself(frame) or _begins(thread, frame))
        return thread not in self._busy and not _takes_from_a_queue(frame)

    def stranger(self) -> str:
        """Why a model call made here and now is no part of the run; empty when it is."""
        thread = threading.current_thread()
        if _run.get() is self._own or thread not in self._busy:
            return ""
        return (
            f"a model call came from the thread {thread.name!r}, which was at work before this test began: it is "
            "no part of this run.\nEnd the thread in the test that starts it. A thread that serves every test gets its "
            "work through concurrent.futures, or runs it in the context of the test (contextvars.copy_context)."
        )


def _others() -> dict[threading.Thread, FrameType]:
    """Other threads, and where they are."""
    # The only way to see what another thread is doing.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    return {thread: frames[thread.ident] for thread in others if thread.ident in frames}


def _at_rest(frame: FrameType) -> bool:
    return any(_is(frame, name, file) for name, file in _AT_REST)


def _is(frame: FrameType, name: str, file: str) -> bool:
    return frame.f_code.co_name == name and frame.f_code.co_filename.endswith(file)


def _ends_by_itself(frame: FrameType) -> bool:
    """Whether a loop runs to an end of its own: what it waits for is its own, not anybody's work."""
    return any(each.f_code.co_name in _TO_AN_END for each in _stack(frame))


def _begins(thread: threading.Thread, frame: FrameType) -> bool:
    """Whether a thread is about to call its function; one in C never shows in a frame."""
    return _is(frame, "run", "threading.py") and hasattr(getattr(thread, "_target", None), "__code__")


def _takes_from_a_queue(frame: FrameType) -> bool:
    return any(_is(each, "get", "queue.py") for each in _stack(frame)[:2])


def _work(frame: FrameType) -> FrameType:
    """Where a thread's present work begins: its own beginning, or in a pool what was called by the loop over work."""
    stack = _stack(frame)
    loop = next((at for at, each in enumerate(stack) if _is(each, "_worker", "thread.py")), len(stack))
    return stack[loop - 1]


def _stack(frame: FrameType | None) -> list[FrameType]:
    """A frame and those that called it."""
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found

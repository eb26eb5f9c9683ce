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
_TO_AN_END = {("run_until_complete", ""), ("run", "_run.py")}  # asyncio's, whoever has replaced it; trio's
_SUSPENDS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

Stack = list[FrameType]
"""Frames, the innermost first."""


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
        self._busy = frozenset(thread for thread, stack in others.items() if not _at_rest(stack))

    def left(self) -> Left:
        """What the run leaves at work; who waits for work, of a queue too, serves every test."""
        return Left({thread: _work(stack) for thread, stack in _others().items() if self._is_left(thread, stack)})

    def _is_left(self, thread: threading.Thread, stack: Stack) -> bool:
        if _at_rest(stack):
            return thread not in self._alive and (_ends_by_itself(stack) or _begins(thread, stack))
        return thread not in self._busy and not _takes_from_a_queue(stack)

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


def _others() -> dict[threading.Thread, Stack]:
    """Other threads, and where they are."""
    stacks = {each: _whole(each) for each in threading.enumerate() if each is not threading.current_thread()}
    return {thread: stack for thread, stack in stacks.items() if stack}


def _whole(thread: threading.Thread) -> Stack:
    """Where a thread is; empty when it has ended or not begun.

    It runs on while it is looked at: a coroutine that is suspended meanwhile has no caller any more, and the way to
    the thread's beginning is lost. Then it is looked at again; but one that is driven from C has no other beginning.
    """
    stack: Stack = []
    for _ in range(1000):
        # The only way to see what another thread is doing.
        frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = _stack(frames.get(thread.ident or 0))
        if not stack or not stack[-1].f_code.co_flags & _SUSPENDS:
            break
    return stack


def _at_rest(stack: Stack) -> bool:
    return any(_is(stack[0], name, file) for name, file in _AT_REST)


def _is(frame: FrameType, name: str, file: str) -> bool:
    return frame.f_code.co_name == name and frame.f_code.co_filename.endswith(file)


def _ends_by_itself(stack: Stack) -> bool:
    """Whether a loop runs to an end of its own: what it waits for is its own, not anybody's work."""
    return any(_is(each, name, file) for each in stack for name, file in _TO_AN_END)


def _begins(thread: threading.Thread, stack: Stack) -> bool:
    """Whether a thread is about to call its function; one in C never shows in a frame."""
    return _is(stack[0], "run", "threading.py") and hasattr(getattr(thread, "_target", None), "__code__")


def _takes_from_a_queue(stack: Stack) -> bool:
    return any(_is(each, "get", "queue.py") for each in stack[:2])


def _work(stack: Stack) -> FrameType:
    """Where a thread's present work begins: its own beginning, or in a pool what was called by the loop over work."""
    loop = next((at for at, each in enumerate(stack) if _is(each, "_worker", "thread.py")), len(stack))
    return stack[loop - 1]


def _stack(frame: FrameType | None) -> Stack:
    """A frame and those that called it."""
    found: Stack = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found

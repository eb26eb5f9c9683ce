"""Whose a model call is: this run's, or that of something that an earlier test left running.

Told by the context in which the call is made; where that says nothing, by its thread: one that was at work when the
run began is a stranger. Threads that wait for work of others (executors, event loops) serve every test.
"""

import sys
import threading
from contextvars import ContextVar
from types import FrameType

_run: ContextVar[object] = ContextVar("agentlatency_run", default=None)
# Where a thread stands that waits for work: concurrent.futures' pool; a loop of asyncio, trio, or uvloop, which is C.
_AT_REST = {
    ("_worker", "thread.py"), ("select", "selectors.py"), ("_poll", "windows_events.py"),
    ("get_events", "_io_epoll.py"), ("get_events", "_io_kqueue.py"), ("run", "threading.py"),
}  # fmt: skip


class Origin:
    """What was running when a run began."""

    def __init__(self) -> None:
        self._own = object()
        self._busy: frozenset[threading.Thread] = frozenset()

    def begin(self) -> None:
        """The run begins here: in this thread and this context."""
        _run.set(self._own)
        # The only way to see what another thread is doing.
        frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._busy = frozenset(
            thread
            for thread in threading.enumerate()
            if thread is not threading.current_thread()
            and thread.ident in frames
            and not _at_rest(frames[thread.ident])
        )

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


def _at_rest(frame: FrameType) -> bool:
    code = frame.f_code
    return any(code.co_name == name and code.co_filename.endswith(file) for name, file in _AT_REST)

"""Which recorder observes this process now.

A process-wide variable, not a context variable: worker threads don't inherit context, and a tool that runs in one is
still a tool of the run. There is at most one run at a time in a process.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentlatency.capture.recorder import Recorder

_current: list["Recorder"] = []


def current() -> "Recorder | None":
    """The recorder of the run being observed, if there is one."""
    return _current[-1] if _current else None


def begin(recorder: "Recorder") -> None:
    """Make a recorder the current one. RuntimeError when another run is being observed."""
    if _current:
        msg = "a run is being observed already: one process observes one run at a time; end the first before the next"
        raise RuntimeError(msg)
    _current.append(recorder)


def end(recorder: "Recorder") -> None:
    """Stop observing; harmless when it was not the current one."""
    if _current and _current[-1] is recorder:
        _current.clear()

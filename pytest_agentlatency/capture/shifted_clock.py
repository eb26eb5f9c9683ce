"""Another date for the whole process: what `time` and `datetime` say is moved by a constant.

Owns the moving. Clocks that only measure (`perf_counter`, `monotonic`) are left alone. Refuses to be undone: it is for
a process that was started for it. The two types of `datetime` are changed in place, so that instances, subclasses and
libraries that were imported before are none the wiser; a library with a clock of its own in C or Rust isn't reached.
"""

import ctypes
import datetime as dt
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

_NS = 1_000_000_000


def move_to(epoch_ns: int) -> None:
    """Let it be that many nanoseconds after the Unix epoch now. RuntimeError on another interpreter than CPython."""
    if sys.implementation.name != "cpython":
        msg = f"{sys.implementation.name!r} can't be given another date: that is done for CPython only"
        raise RuntimeError(msg)
    offset = epoch_ns - time.time_ns()
    _move_time(offset)
    _move_datetime()


def _move_time(offset: int) -> None:
    real_ns, real_strftime = time.time_ns, time.strftime

    def time_ns() -> int:
        return real_ns() + offset

    def now() -> float:
        return time_ns() / _NS

    def strftime(form: str, when: Any = None) -> str:
        return real_strftime(form, time.localtime() if when is None else when)

    _set(time, time_ns=time_ns, time=now, strftime=strftime)
    _set(time, **{name: _defaulting(getattr(time, name), now) for name in ("localtime", "gmtime", "ctime")})
    _set(time, asctime=_defaulting(time.asctime, time.localtime))


def _defaulting(function: Callable[[Any], Any], default: Callable[[], Any]) -> Callable[..., Any]:
    """The function, given the moved time where it would look at the clock itself."""

    def moved(when: Any = None) -> Any:
        return function(default() if when is None else when)

    return moved


def _set(module: Any, **functions: Callable[..., Any]) -> None:
    for name, function in functions.items():
        setattr(module, name, function)


def _move_datetime() -> None:
    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> Any:
        return cls.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(time.time())

    _method(dt.datetime, "now", now)
    _method(dt.datetime, "utcnow", utcnow)
    _method(dt.date, "today", today)


def _method(owner: type, name: str, function: Callable[..., Any]) -> None:
    """Give a built-in type another class method: its attributes can't be set, the dictionary behind them can."""
    namespace: Any = gc.get_referents(owner.__dict__)[0]
    namespace[name] = classmethod(function)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

"""Tools of loops written by hand: a decorator for the agent's own code, inert unless a run is being observed."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar, overload

from pytest_agentlatency.capture import active

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(function: None = None, /, *, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, *, name: str | None = None
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function as a tool, sync or async: its executions are timed as the tool phase under its name.

    Safe in production code: outside an observed run it costs one look-up.
    """
    if function is None:
        return lambda decorated: _timed(decorated, name or decorated.__name__)
    return _timed(function, name or function.__name__)


def _timed(function: Callable[P, R], name: str) -> Callable[P, R]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def timed_async(*args: P.args, **kwargs: P.kwargs) -> object:
            recorder = active.current()
            if recorder is None:
                return await function(*args, **kwargs)
            with recorder.tool(name):
                return await function(*args, **kwargs)

        return timed_async  # type: ignore[return-value]  # a coroutine function again, which R can't say

    @functools.wraps(function)
    def timed(*args: P.args, **kwargs: P.kwargs) -> R:
        recorder = active.current()
        if recorder is None:
            return function(*args, **kwargs)
        with recorder.tool(name):
            return function(*args, **kwargs)

    return timed

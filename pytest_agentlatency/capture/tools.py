"""Tools of loops written by hand: a decorator for the agent's own code, inert unless a run is being observed."""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ParamSpec, TypeVar, overload

from pytest_agentlatency.capture import active

if TYPE_CHECKING:  # every agent with a marked tool, and every start of pytest, pays for what is imported here
    from pytest_agentlatency.capture.recorder import OpenTool, Recorder
    from pytest_agentlatency.capture.toolreplay import Given

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

    In a replay with `replay_tools` it is given its recorded result in place of running, as the type that it is
    annotated to return: `str` (also when it isn't annotated), or what JSON has. Safe in production code: outside an
    observed run it costs one look-up.
    """
    if function is None:
        return lambda decorated: _timed(decorated, name or decorated.__name__)
    return _timed(function, name or function.__name__)


class ToolBlock(AbstractContextManager["OpenTool"]):
    """`with agent_run.tool(name):` times a block, `@agent_run.tool(name)` a function; only this can be replayed."""

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self._recorder, self._name = recorder, name
        self._open: list[AbstractContextManager[OpenTool]] = []

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Mark a function as this tool, as `tool` does."""
        return _timed(function, self._name)

    def __enter__(self) -> "OpenTool":
        if self._recorder.results is not None:
            self._recorder.results.block(self._name)
        self._open.append(self._recorder.tool(self._name))
        return self._open[-1].__enter__()

    def __exit__(self, *raised: object) -> None:
        self._open.pop().__exit__(*raised)  # type: ignore[arg-type]  # passed on as they came


def _timed(function: Callable[P, R], name: str) -> Callable[P, R]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def timed_async(*args: P.args, **kwargs: P.kwargs) -> object:
            recorder = active.current()
            if recorder is None:
                return await function(*args, **kwargs)
            with recorder.tool(name):
                given = _given(recorder, name, function, args, kwargs)
                return given.value if given is not None else await function(*args, **kwargs)

        return timed_async  # type: ignore[return-value]  # a coroutine function again, which R can't say

    @functools.wraps(function)
    def timed(*args: P.args, **kwargs: P.kwargs) -> R:
        recorder = active.current()
        if recorder is None:
            return function(*args, **kwargs)
        with recorder.tool(name):
            given = _given(recorder, name, function, args, kwargs)
            return given.value if given is not None else function(*args, **kwargs)

    return timed


def _given(
    recorder: "Recorder",
    name: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> "Given | None":
    return None if recorder.results is None else recorder.results.for_function(name, function, args, kwargs)

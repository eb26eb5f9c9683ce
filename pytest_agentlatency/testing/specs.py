"""Turns of a run to be built, described by a few figures.

Owns the descriptions and laws of growth. Refuses to know bytes and clocks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_agentlatency.testing.faults import Fault
from pytest_agentlatency.testing.observing import Client

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool execution. Times in nanoseconds."""

    name: str
    duration: int = 0
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    turns: "tuple[TurnSpec, ...]" = ()
    """Turns of a sub-agent that the tool runs; `duration` follows them."""
    error: bool = False


@dataclass(frozen=True, slots=True)
class FailureSpec:
    """One failed attempt before the answer. Times in nanoseconds."""

    status: int
    """HTTP status; 0: the connection was dropped."""
    duration: int
    backoff: int


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """One turn: a call and the tools that follow it. Times in nanoseconds, sizes in tokens."""

    context: int
    output: int
    prefill: int
    """Request sent -> first generated token."""
    decode: int
    """First -> last generated token."""
    cached: int = 0
    written: int = 0
    thinking: int = 0
    """Of the output."""
    tools: tuple[ToolSpec, ...] = ()
    parallel: bool = False
    """The tools start together; otherwise one after the other."""
    failures: tuple[FailureSpec, ...] = ()
    streamed: bool = True
    events: int = 12
    """About how many deltas the output is streamed in."""
    early_prelude: bool = True
    serialization: int = 0
    """SDK entered -> transport entered."""
    overhead: int = 0
    """End of the response -> first tool or next call."""
    client: Client = Client()
    faults: tuple[Fault, ...] = ()


def turn(  # noqa: PLR0913 - a turn has many figures, each by keyword
    context: int = 1000,
    output: int = 50,
    *,
    prefill_ms: float = 200,
    decode_ms: float = 500,
    tool_ms: float | None = None,
    tools: Sequence[ToolSpec] = (),
    serialization_ms: float = 0,
    overhead_ms: float = 0,
    connect_ms: float = 0,
    consumer_ms: float = 0,
    close_after: int | None = None,
    **more: Any,
) -> TurnSpec:
    """A turn with its times in milliseconds; `more`: the other fields of `TurnSpec`.

    `tool_ms` is short for one tool named search. `connect_ms`, `consumer_ms` and `close_after` are those of `Client`.
    """
    ran = (tool("search", tool_ms), *tools) if tool_ms is not None else tuple(tools)
    return TurnSpec(
        context,
        output,
        nanoseconds(prefill_ms),
        nanoseconds(decode_ms),
        tools=ran,
        serialization=nanoseconds(serialization_ms),
        overhead=nanoseconds(overhead_ms),
        client=Client(nanoseconds(connect_ms), nanoseconds(consumer_ms), close_after),
        **more,
    )


def tool(
    name: str, ms: float = 0, *, turns: Sequence[TurnSpec] = (), error: bool = False, **arguments: Any
) -> ToolSpec:
    """A tool that runs so many milliseconds, after the turns of a sub-agent if it has one."""
    return ToolSpec(name, nanoseconds(ms), arguments, tuple(turns), error)


def failure(status: int = 529, *, ms: float = 50, backoff_ms: float = 500) -> FailureSpec:
    """A failed attempt and the wait after it, in milliseconds. Status 0: the connection was dropped."""
    return FailureSpec(status, nanoseconds(ms), nanoseconds(backoff_ms))


Law = Literal["constant", "sublinear", "linear", "superlinear", "compacted"]


def contexts(law: Law, turns: int, *, start: int = 2000, step: int = 1000) -> tuple[int, ...]:
    """Context sizes of so many turns that grow by a law of the turn's number k, counted from 0.

    constant: start; sublinear: start + step * sqrt(k); linear: start + step * k; superlinear: start + step * k ** 2;
    compacted: linear, begun again at the middle turn.
    """
    middle = max(1, turns // 2)
    added: dict[Law, Callable[[int], float]] = {
        "constant": lambda _: 0,
        "sublinear": lambda k: k**0.5,
        "linear": lambda k: k,
        "superlinear": lambda k: k**2,
        "compacted": lambda k: k % middle,
    }
    return tuple(start + round(step * added[law](k)) for k in range(turns))


def growing(law: Law, turns: int, *, start: int = 2000, step: int = 1000, **figures: Any) -> tuple[TurnSpec, ...]:
    """Turns whose contexts grow by a law (see `contexts`), a search between them; `figures`: those of `turn`."""
    sizes = contexts(law, turns, start=start, step=step)
    figures = {"tool_ms": 100, **figures}
    last: dict[str, Any] = {**figures, "tool_ms": None, "tools": ()}
    return tuple(turn(size, **(figures if number < turns else last)) for number, size in enumerate(sizes, 1))


def nanoseconds(ms: float) -> int:
    """Whole nanoseconds of so many milliseconds."""
    return round(ms * _MS)

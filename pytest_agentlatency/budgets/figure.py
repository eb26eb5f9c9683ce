"""What a budget is about, as values: units, figures with their provenance, and the analyses that budgets ask.

Owns no formula: a figure is measured by `subjects`, judged by `budget`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run, Turn

MEASURED = frozenset({Provenance.MEASURED, Provenance.SERVER})
"""What a figure of this very run may come from, for a budget that wants a measured one."""
_KB, _MB, _GB = 1_000, 1_000_000, 1_000_000_000


class Unit(StrEnum):
    """What a number counts. Base units: nanoseconds, fraction 0-1, tokens, bytes, things."""

    TIME = "time"
    SHARE = "share"
    TOKENS = "tokens"
    BYTES = "bytes"
    COUNT = "count"

    def show(self, value: float | None, provenance: Provenance = Provenance.MEASURED) -> str:
        """The value as people read it, with its provenance's mark: `~2.9 s`, `61%`, `14,030`, `1.5 MB`, `n/a`."""
        if self is Unit.TIME:
            return units.duration(value, provenance)
        if self is Unit.SHARE:
            return units.share(value, provenance)
        if self is Unit.BYTES and value is not None:
            return provenance.mark + _bytes(value)
        return units.tokens(value, provenance)

    def exact(self, value: float) -> str:
        """The value with more digits than `show`, for two that look the same there."""
        if self is Unit.TIME:
            return f"{value / 1e6:,.6f}".rstrip("0").rstrip(".") + " ms"
        if self is Unit.SHARE:
            return f"{100 * value:.4f}".rstrip("0").rstrip(".") + "%"
        number = f"{value:,.6f}".rstrip("0").rstrip(".")
        return f"{number} bytes" if self is Unit.BYTES else number


def _bytes(value: float) -> str:
    for size, name in ((_GB, "GB"), (_MB, "MB"), (_KB, "KB")):
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.0f} bytes"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a run, in its base unit."""

    value: float | None
    """None: not measured; `reason` says why. 0 is a value."""
    unit: Unit
    provenance: Provenance = Provenance.MEASURED
    reason: str = ""
    low: float | None = None
    high: float | None = None
    """Ends of the interval, of a figure that carries one."""
    detail: str = ""
    """What the number belongs to, where that isn't plain: `result of search at turn 3`."""
    caution: str = ""
    """Why the number must not fail a test, though it is one; empty when it may."""

    def __str__(self) -> str:
        """The value as people read it, marked."""
        return self.unit.show(self.value, self.provenance)


def missing(unit: Unit, reason: str) -> Figure:
    """A figure that isn't to be had, and why."""
    return Figure(None, unit, Provenance.UNKNOWN, reason)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One tool result, at the turn whose request brings it."""

    turn: int
    tool: str
    tokens: int
    provenance: Provenance = Provenance.ESTIMATED


@dataclass(frozen=True, slots=True)
class Figures:
    """The analyses that budgets ask, each one function. None: not at hand, and a budget over it is not measured.

    They are those of the main lane, unless they come out of `lanes`.
    """

    cuts: Callable[[Run], Sequence[int]] | None = None
    """Turns of the main lane whose request is no extension of the previous one: a drop there is a compaction."""
    stability: Callable[[Run, Collection[int]], Stability] | None = None
    """Prefix breaks of the main lane, given the turns that may break."""
    results: Callable[[Run], Sequence[ToolResult]] | None = None
    """Every tool result of the main lane, once, at the turn that brought it."""
    held: Callable[[Run, Turn, str], Figure] | None = None
    """Tokens of tool results in a turn's context, of one tool or (empty name) of all."""
    unused_tools: Callable[[Run], Sequence[str]] | None = None
    """Names of tools that were offered and never called."""
    reread: Callable[[Run, Turn | None], Figure] | None = None
    """Tokens that were sent again after their first turn, for one turn or the run."""
    kv_specs: Mapping[str, KvSpec] = field(default_factory=dict[str, KvSpec])
    """What decides the KV-cache memory of models whose configuration the user gives, by model name."""
    interval: Callable[[Run, Turn | None, str, str], tuple[float, float] | None] | None = None
    """Interval of a projected figure, by subject name and tool (empty: all); None when no model gives one."""
    caution: Callable[[Run, Turn | None, str], str] | None = None
    """Why a time, by subject name, must not fail a test; empty when it may."""
    lanes: Mapping[int, "Figures"] = field(default_factory=dict[int, "Figures"])
    """The same analyses of the other lanes, by their numbers."""

    def of_lane(self, lane: int) -> "Figures":
        """The analyses of one lane; what is known of times and models holds for every one."""
        found = self.lanes.get(lane)
        return replace(found, interval=self.interval, caution=self.caution) if found else self

"""Where wall time goes: the eight phases, exclusive and exhaustive, and the span that carries one."""

from dataclasses import dataclass
from enum import StrEnum

from pytest_agentlatency.model.clock import Ns


class Phase(StrEnum):
    """A share of a turn's wall time. Definitions: docs/measuring.md."""

    PREFILL = "prefill"
    DECODE = "decode"
    SERIALIZATION = "serialization"
    TOOL = "tool"
    RETRY = "retry"
    NETWORK = "network"
    OVERHEAD = "overhead"
    UNSPLIT = "unsplit"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open interval `[start, end)` of one phase on the run's clock, in nanoseconds."""

    phase: Phase
    start: Ns
    end: Ns
    detail: str = ""
    """What inside the phase: a tool's name, a generated block's kind, `connect`, `backoff`, ..."""
    lane: int | None = None
    """The lane whose activity it is; None for time that belongs to the run alone."""

    @property
    def duration(self) -> Ns:
        """Nanoseconds between start and end."""
        return Ns(self.end - self.start)

"""An HTTP response before it is sent: its parts, and when each is due.

Values only. A dialect makes a plan, faults change it, the server plays it, builders turn it into a recording.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_agentlatency.testing.costs import Cost, InputTokens

Ending = Literal["complete", "close", "reset"]
"""Body finished / connection closed before its end / connection reset before its end."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that go out in one write."""

    at: int
    """Due so many nanoseconds after the request was received."""
    data: bytes
    generated: bool = False
    """Carries generated tokens."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One response and its schedule."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    headers_at: int = 0
    """Due so many nanoseconds after the request was received; -1: never, the connection just ends."""
    frames: tuple[Frame, ...] = ()
    streamed: bool = False
    """Sent in chunks; otherwise with a content length, head and body in one write."""
    ending: Ending = "complete"
    coding: str = ""
    """Content coding applied while sending."""

    def delayed(self, wait: int, *, frame: int = 0) -> "Plan":
        """The plan with this frame (from 0) and all after it due later by so many nanoseconds."""
        later = (replace(each, at=each.at + wait) for each in self.frames[frame:])
        return replace(self, frames=self.frames[:frame] + tuple(later))


@dataclass(frozen=True, slots=True)
class Speech:
    """Everything a dialect needs beside the reply to put an answer into bytes."""

    id: str
    model: str
    tokens: InputTokens
    cost: Cost
    streamed: bool
    tokens_per_event: int = 1
    early_prelude: bool = True
    """The first event goes out when prefill begins; otherwise with the first token, as llama.cpp does."""
    with_usage: bool = True
    report_times: bool = False

    @property
    def prelude_at(self) -> int:
        """When the stream's first event is due."""
        return self.cost.queue if self.early_prelude else self.cost.first_token

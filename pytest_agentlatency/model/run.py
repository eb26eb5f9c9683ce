"""A run as people talk about it: lanes of turns, each turn a call and what followed, every nanosecond in one phase.

Values and the plain arithmetic over them. Made by `analysis.assembly`; every analysis, budget and report takes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase, Span
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Attempt, CallRecord, Facts, Pause, ToolRecord
from pytest_agentlatency.model.usage import Tokens, Usage


@dataclass(frozen=True, slots=True)
class Milestones:
    """When the things happened that latency figures are differences of. None: did not happen, or was not seen."""

    call: Ns | None = None
    """The SDK was called (or, unseen, the transport was entered). TTFT starts here."""
    sent: Ns | None = None
    headers: Ns | None = None
    first_event: Ns | None = None
    first_token: Ns | None = None
    """First generated token of any kind; thinking and a tool's name count, prelude, ping and empty deltas don't."""
    first_output: Ns | None = None
    """First generated token that is not thinking."""
    first_text: Ns | None = None
    last_token: Ns | None = None
    end: Ns | None = None
    returned: Ns | None = None
    delivered: Ns | None = None
    """The agent handed its first output of the turn on to its user; only the agent knows."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One generated block, and when it was open."""

    kind: str
    """`thinking`, `text` or `tool_json`."""
    start: Ns | None
    end: Ns | None
    name: str = ""
    """The tool's name, for `tool_json`."""
    id: str = ""
    """The provider's id of the tool call."""


class Verdict(StrEnum):
    """How a live request stands to the recorded one."""

    IDENTICAL = "identical"
    DRIFTED = "drifted"
    UNMATCHED = "unmatched"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two requests differ."""

    path: str
    """JSON path: `messages[4].content[0].text`."""
    recorded: str
    live: str
    """Snippets around the place, at most 60 characters."""


@dataclass(frozen=True, slots=True)
class Change:
    """One piece by which a live request is larger or smaller than the recorded one."""

    what: str
    """`system prompt`, `definition of search`, `result of search`, `user message`, ..."""
    path: str
    """Where it stands in the live request, or stood in the recorded one."""
    tokens: int
    """Live minus recorded."""
    since: int
    """The first turn of the lane in whose request it was changed, from 1."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What a live request changed against the recorded one of the same lane and turn."""

    recorded_context: Tokens | None
    live_context: Tokens | None
    difference: Difference | None = None
    changes: tuple[Change, ...] = ()
    """Piece by piece, the largest first; they add up to `delta`."""
    recorded_read: Tokens | None = None
    """Tokens of the recorded request that were read from a prompt cache."""
    cache_miss: str = ""
    """Why the live request reads less from the cache than the recorded one did, by the provider's rules."""

    @property
    def delta(self) -> int | None:
        """Live minus recorded context tokens."""
        if self.recorded_context is None or self.live_context is None:
            return None
        return self.live_context - self.recorded_context


@dataclass(frozen=True, slots=True)
class Retiming:
    """Prefill of a call that carries another load than the recorded one, in nanoseconds."""

    recorded: Ns
    projected: Ns
    low: Ns
    high: Ns
    """Ends of the 90 % interval of what the change costs, on top of the recorded call with its own noise."""
    again: tuple[Ns, Ns]
    """Ends of the 90 % interval of a new recording of the changed call, whose noise is another."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model call with what its bytes say."""

    record: CallRecord
    attempts: tuple[Attempt, ...]
    """In order; the last is the one that answered."""
    provider: str
    model: str
    milestones: Milestones
    usage: Usage
    streamed: bool
    answer_id: str = ""
    stop_reason: str = ""
    generated: tuple[Generated, ...] = ()
    verdict: Verdict | None = None
    """None outside replay."""
    drift: Drift | None = None
    retimed: Retiming | None = None
    """None where the recorded time stands."""
    flags: frozenset[str] = frozenset()
    """`buffered`, `client-bound`, `multi-pass`, `hidden-thinking`, `no-tokens`, `bad-usage`: docs/measuring.md."""
    error: str = ""
    """The provider's error type when the call ended in one."""

    @property
    def drifted(self) -> float:
        """Size of the drift as a fraction of the recorded context; 0 without one."""
        delta = self.drift.delta if self.drift else None
        return abs(delta) / max(1, self.drift.recorded_context or 0) if self.drift and delta else 0.0

    @property
    def retries(self) -> int:
        """Attempts beyond the first."""
        return max(0, len(self.attempts) - 1)

    @property
    def ttft(self) -> Ns | None:
        """Call made -> first generated token, of the attempt that answered; retries before it are left out.

        None when the call was not streamed, was buffered on the way, or produced no token.
        """
        return self._since_call(self.milestones.first_token)

    @property
    def time_to_first_output(self) -> Ns | None:
        """Call made -> first generated token that is not thinking."""
        return self._since_call(self.milestones.first_output)

    @property
    def time_to_first_text(self) -> Ns | None:
        """Call made -> first token of visible text."""
        return self._since_call(self.milestones.first_text)

    @property
    def delivered(self) -> Ns | None:
        """Call made -> the agent handed its first output on, streamed or not.

        None when it didn't tell, or did so before the attempt that answered.
        """
        start, moment = self.milestones.call, self.milestones.delivered
        return None if moment is None or start is None or moment < start else Ns(moment - start)

    @property
    def decode(self) -> Ns | None:
        """First -> last generated token."""
        first, last = self.milestones.first_token, self.milestones.last_token
        return None if first is None or last is None or not self.splits else Ns(last - first)

    @property
    def tpot(self) -> float | None:
        """Nanoseconds per output token: decode / (output tokens - 1), as vLLM and MLPerf define it. None below 2."""
        if self.decode is None or self.usage.output is None:
            return None
        steps = self.usage.output - 1
        return self.decode / steps if steps > 0 else None

    @property
    def splits(self) -> bool:
        """Whether prefill and decode could be told apart."""
        return self.streamed and "buffered" not in self.flags and self.milestones.first_token is not None

    @property
    def chunk_gaps(self) -> tuple[Ns, ...]:
        """Nanoseconds between the chunks of the answering attempt. A chunk is not a token."""
        stamps = self.attempts[-1].stamps if self.attempts else None
        arrived = stamps.arrived if stamps else ()
        return tuple(Ns(later - earlier) for earlier, later in pairwise(arrived))

    def _since_call(self, moment: Ns | None) -> Ns | None:
        start = self.milestones.call
        return None if moment is None or start is None or not self.splits else Ns(moment - start)


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of a lane and all that follows until that lane's next call. Numbered from 1."""

    number: int
    lane: int
    call: Call
    start: Ns | None
    end: Ns | None
    segments: tuple[Span, ...] = ()
    """The turn's blocking path: contiguous, non-overlapping, from start to end; pauses taken out."""
    tools: tuple[ToolRecord, ...] = ()
    paused: Ns = Ns(0)
    provenance: Provenance = Provenance.MEASURED
    """Of the times."""

    @property
    def duration(self) -> Ns | None:
        """Wall time without pauses; the phases sum to it exactly. None when no time is known."""
        return None if self.start is None or self.end is None else Ns(self.end - self.start - self.paused)

    @property
    def phases(self) -> Mapping[Phase, Ns]:
        """Nanoseconds of each phase that occurs. Empty when no time is known."""
        return totals(self.segments)

    def time(self, phase: Phase | str) -> Ns | None:
        """Nanoseconds in a phase; None when not measured."""
        return time_in(self.segments, Phase(phase), known=self.duration is not None)

    def share(self, phase: Phase | str) -> float | None:
        """Fraction (0-1) of the turn's duration spent in a phase; None when not measured."""
        return share_of(self.time(phase), self.duration)


@dataclass(frozen=True, slots=True)
class Lane:
    """One conversation in a run; told apart from others by its prefix."""

    id: int
    turns: tuple[Turn, ...]
    parent: int | None = None
    """The lane whose tool started this one."""


@dataclass(frozen=True, slots=True)
class Run:
    """One agent task, start to finish."""

    lanes: tuple[Lane, ...] = ()
    """In order of their first call; the first is the main one."""
    segments: tuple[Span, ...] = ()
    """The run's blocking path over all lanes."""
    start: Ns | None = None
    end: Ns | None = None
    tools: tuple[ToolRecord, ...] = ()
    pauses: tuple[Pause, ...] = ()
    paused: Ns = Ns(0)
    """Time inside the run that pauses took, counted once where they overlap."""
    work: Mapping[Phase, Ns] = field(default_factory=dict[Phase, Ns])
    """Sum of durations by phase, overlaps counted twice; beside `segments`, which counts each instant once."""
    facts: Facts = Facts()
    provenance: Provenance = Provenance.MEASURED
    recorded_turns: int | None = None
    """In a replay, how many turns the cassette holds over all lanes; more than were made: the run is shorter."""
    notes: tuple[str, ...] = ()
    """Things that a reader of the figures must know; one sentence each."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns of the main lane."""
        return self.lanes[0].turns if self.lanes else ()

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """Turns of every lane, lane by lane."""
        return tuple(turn for lane in self.lanes for turn in lane.turns)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call, in the order in which they were made."""
        return tuple(sorted((turn.call for turn in self.all_turns), key=lambda call: call.record.id))

    @property
    def duration(self) -> Ns | None:
        """Wall time without pauses; None when no time is known."""
        if self.start is None or self.end is None:
            return None
        return Ns(self.end - self.start - self.paused)

    @property
    def phases(self) -> Mapping[Phase, Ns]:
        """Nanoseconds of each phase that occurs, over the whole run; they sum to the duration."""
        return totals(self.segments)

    def turn(self, number: int, lane: int = 1) -> Turn:
        """A turn by its number, from 1. IndexError, saying how many there are, when the run has no such turn."""
        found = next((each for each in self.lanes if each.id == lane), None)
        if found is None:
            msg = f"no lane {lane!r}: the run has {len(self.lanes)} lane(s)"
            raise IndexError(msg)
        if not 1 <= number <= len(found.turns):
            msg = f"no turn {number!r}: lane {lane} has {len(found.turns)} turn(s), numbered from 1"
            raise IndexError(msg)
        return found.turns[number - 1]

    def time(self, phase: Phase | str) -> Ns | None:
        """Nanoseconds in a phase over the whole run; None when not measured."""
        return time_in(self.segments, Phase(phase), known=self.duration is not None)

    def share(self, phase: Phase | str) -> float | None:
        """Fraction (0-1) of the run's duration spent in a phase; None when not measured."""
        return share_of(self.time(phase), self.duration)


def totals(segments: tuple[Span, ...]) -> Mapping[Phase, Ns]:
    """Nanoseconds by phase, in the phases' order."""
    return {
        phase: Ns(total) for phase in Phase if (total := sum(span.duration for span in segments if span.phase is phase))
    }


def time_in(segments: tuple[Span, ...], phase: Phase, *, known: bool) -> Ns | None:
    """Nanoseconds in a phase.

    None when no time is known, and for prefill and decode when some model call couldn't be split into them: its
    share of either is unknown, and a lower bound would pass for a measurement.
    """
    sums = totals(segments)
    hidden = phase in {Phase.PREFILL, Phase.DECODE} and Phase.UNSPLIT in sums
    return None if not known or hidden else sums.get(phase, Ns(0))


def share_of(part: Ns | None, whole: Ns | None) -> float | None:
    """Divide part by whole; None when either is unknown, 0 when the whole is empty."""
    if part is None or whole is None:
        return None
    return part / whole if whole else 0.0

"""What a replayed run would have taken with the requests that the agent sends now.

Owns the projection: the answers, the decode, the tools and the overhead stay as recorded, prefill changes by the
modelled difference, and the clock is laid out again. Refuses to know budgets, and to guess where no model speaks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.drift import Replayed
from pytest_agentlatency.analysis.fits import Fit, fits, key_of, prefill_of
from pytest_agentlatency.analysis.prefill import Projection
from pytest_agentlatency.analysis.schedule import Stretch, rescheduled
from pytest_agentlatency.model import units
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Call, Retiming, Run, Turn, Verdict

ModelOf = Callable[[Reading], Fit]
"""Gives the latency model that speaks for a call."""
Spot = tuple[int, int]
"""Lane and turn."""


@dataclass(frozen=True, slots=True)
class Retimed:
    """A run on its projected clock, and how far off that may be."""

    run: Run
    low: Run
    """The same with every changed call at the near end of its interval; turn for turn as `run`."""
    high: Run
    readings: tuple[Reading, ...]
    """The calls with their projected stamps."""
    recording: Recording = Recording()
    """Tools, pauses and bounds on the projected clock."""
    stale: Mapping[Spot, str] = field(default_factory=dict[Spot, str])
    """Turns whose recorded time stands though the request changed, and why."""
    cautions: Mapping[Spot, str] = field(default_factory=dict[Spot, str])
    """Turns whose projected time must not fail a test, and why."""

    @property
    def projected(self) -> bool:
        """Whether any time is projected."""
        return self.run.provenance is Provenance.PROJECTED

    def why_stale(self, turn: Turn | None) -> str:
        """Why the recorded time of a turn, or of any for the run, says nothing of the live requests."""
        return _said(self.stale, turn)

    def caution(self, turn: Turn | None) -> str:
        """Why the projected time of a turn, or of the run, must not fail a test."""
        return _said(self.cautions, turn)

    def again(self) -> Replayed:
        """The projected run as one that could have been recorded, for the next change."""
        return Replayed(self.run, self.readings, self.readings, self.recording)

    def ends(self, turn: Turn | None) -> tuple[tuple[Run, Turn | None], tuple[Run, Turn | None]]:
        """The run, and the same turn in it, at both ends of the interval."""
        low, high = ((run, turn and run.turn(turn.number, turn.lane)) for run in (self.low, self.high))
        return low, high


def _said(reasons: Mapping[Spot, str], turn: Turn | None) -> str:
    if turn is not None and (turn.call.retimed or (turn.lane, turn.number) in reasons):
        return reasons.get((turn.lane, turn.number), "")
    inside = turn is None or turn.provenance is Provenance.PROJECTED
    return next(iter(reasons.values()), "") if inside else ""


def retime(told: Replayed, model_of: ModelOf) -> Retimed:
    """Project the times of a replayed run whose requests changed.

    A call whose load (cached and uncached tokens) is the recorded one keeps its time to the nanosecond; so does every
    call that no model speaks for, and `stale` says so. Turns that follow are moved, not stretched.
    """
    found = {
        new.call.record.id: _projected(old, new, model_of(old))
        for old, new in zip(told.recorded, told.readings, strict=True)
    }
    changed = {call: each for call, each in found.items() if isinstance(each, Projection)}
    spots = {reading.call.record.id: (reading.lane, reading.turn) for reading in told.readings}
    stale = {spots[call]: each for call, each in found.items() if isinstance(each, str)}
    cautions = {
        (old.lane, old.turn): caution
        for old in told.recorded
        if old.call.record.id in changed and (caution := model_of(old).caution)
    }
    used = {key_of(old): model_of(old) for old in told.recorded if old.call.record.id in changed}
    notes = (*_projection_notes(len(changed), used.values()), *_stale_notes(stale))
    retimed = lay_out(told, {call: Takes(each) for call, each in changed.items()}, notes)
    return replace(retimed, stale=stale, cautions=cautions)


def by_fits(told: Replayed, calibrations: Sequence[Calibration] = ()) -> Retimed:
    """Project a replayed run with the latency models of its own recorded calls, or calibrated ones."""
    unchanged = all(
        old.call.usage == new.call.usage and new.call.verdict is not Verdict.DRIFTED
        for old, new in zip(told.recorded, told.readings, strict=True)
    )
    if unchanged and not any(each.call.usage.cache_read for each in told.recorded):
        return Retimed(told.run, told.run, told.run, told.readings, told.recording)
    known = fits((*told.recorded, *told.unmade), calibrations)
    doubts = dict.fromkeys(doubt for fit in known.values() if (doubt := fit.doubt or fit.suspicion))
    told = replace(told, run=replace(told.run, notes=(*told.run.notes, *doubts)))
    return retime(told, lambda reading: known[key_of(reading)])


def _projected(old: Reading, new: Reading, fit: Fit) -> Projection | str | None:
    """The new prefill; why there is none though the request changed; None where nothing changed."""
    recorded, live, seen = fit.load(old.call.usage), fit.load(new.call.usage), prefill_of(old.call)
    if recorded == live and (recorded is not None or old.prompt == new.prompt):
        return None
    if old.call.attempts[-1].stamps is None:
        return None
    if recorded is None or live is None:
        return "the provider did not say how many tokens the recorded request had"
    if seen is None:
        return "its prefill can't be told from its decode (not streamed, or buffered)"
    if fit.model is None:
        return fit.source
    return fit.model.shift(seen[1] - seen[0], recorded, live)


@dataclass(frozen=True, slots=True)
class Takes:
    """What a call takes on another clock."""

    prefill: Projection | None = None
    """None: as recorded."""
    decode: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Factor of its recorded decode, and the ends of its interval."""


_ENDS = ("ns", "low", "high")


def lay_out(told: Replayed, takes: Mapping[int, Takes], notes: Sequence[str] = ()) -> Retimed:
    """The run with some calls taking other times; call id -> what it takes. Calls without a prefill keep theirs."""
    known = {old.call.record.id: old.call for old in told.recorded}
    takes = {call: each for call, each in takes.items() if prefill_of(known[call]) is not None}
    stretches: list[dict[int, Stretch]] = [{}, {}, {}]
    for call, each in takes.items():
        seen = prefill_of(known[call])
        if seen is None:
            continue
        last = max(seen[1], known[call].milestones.last_token or seen[1])
        for end, laid in enumerate(stretches):
            change = getattr(each.prefill, _ENDS[end]) - (seen[1] - seen[0]) if each.prefill else 0
            laid[call] = Stretch(Ns(seen[0]), Ns(seen[1]), Ns(last), change, each.decode[end])
    if not takes:
        run = replace(told.run, notes=(*told.run.notes, *notes))
        return Retimed(run, run, run, told.readings, told.recording)
    readings = tuple(replace(each, call=_with_retiming(each, takes)) for each in told.readings)
    middle, low, high = (_on_a_clock(told, readings, laid) for laid in stretches)
    run = _marked(middle.run, told.run, frozenset(takes))
    run = replace(run, notes=(*told.run.notes, *notes))
    return Retimed(run, low.run, high.run, middle.readings, middle.recording)


def _with_retiming(reading: Reading, takes: Mapping[int, Takes]) -> Call:
    found, seen = takes.get(reading.call.record.id), prefill_of(reading.call)
    if found is None or found.prefill is None or seen is None:
        return reading.call
    return replace(reading.call, retimed=_retiming(seen[1] - seen[0], found.prefill))


def _retiming(recorded: int, now: Projection) -> Retiming:
    low, high = now.again
    return Retiming(Ns(recorded), Ns(now.ns), Ns(now.low), Ns(now.high), (Ns(low), Ns(high)))


def _on_a_clock(told: Replayed, readings: tuple[Reading, ...], stretches: Mapping[int, Stretch]) -> Replayed:
    recording, moved = rescheduled(told.recording, readings, stretches)
    run = assembly.from_readings(moved, recording, provenance=told.run.provenance)
    return Replayed(replace(run, recorded_turns=told.run.recorded_turns), moved, moved, recording)


def _marked(run: Run, recorded: Run, changed: frozenset[int]) -> Run:
    """The run with its changed turns marked as projected, and itself."""
    before = {(turn.lane, turn.number): _shape(turn) for turn in recorded.all_turns}

    def mark(turn: Turn) -> Turn:
        same = turn.call.record.id not in changed and before.get((turn.lane, turn.number)) == _shape(turn)
        return turn if same else replace(turn, provenance=Provenance.PROJECTED)

    lanes = tuple(replace(lane, turns=tuple(map(mark, lane.turns))) for lane in run.lanes)
    return replace(run, lanes=lanes, provenance=Provenance.PROJECTED)


def _shape(turn: Turn) -> tuple[object, ...]:
    """A turn's time without its place on the clock."""
    return tuple((span.phase, span.detail, span.lane, span.duration) for span in turn.segments)


# --- notes


def _projection_notes(count: int, used: Iterable[Fit]) -> Iterator[str]:
    for fit in used:
        if fit.model is not None:
            low, high = fit.model.token_interval
            cost = f"{units.duration(1000 * fit.model.token_ns)} per 1,000 tokens"
            ends = f"{units.duration(1000 * low)} to {units.duration(1000 * high)}"
            noise = f"any call may take {units.share(fit.model.noise)} more or less"
            yield f"~ prefill of {count} changed call(s) projected by {fit.source}: {cost} ({ends}); {noise}"


def _stale_notes(stale: Mapping[Spot, str]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for (lane, turn), reason in stale.items():
        by_reason[reason].append(f"{turn}" if lane == 1 else f"{turn} (lane {lane})")
    for reason, turns in by_reason.items():
        yield f"tokens only: the time of changed turn {', '.join(turns)} is the recorded one: {reason}"

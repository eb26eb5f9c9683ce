"""Any run that the model allows: unknown times, unsplit calls, several lanes, drift, pauses, empty runs."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase, Span
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Attempt, CallRecord, Facts, Pause, Request, ToolRecord
from pytest_agentlatency.model.run import Call, Difference, Drift, Lane, Milestones, Run, Turn, Verdict, totals
from pytest_agentlatency.model.usage import Tokens, Usage

a_few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For laws over whole runs, which are slow to make."""

_names = st.text(max_size=30)
_spans = st.lists(st.tuples(st.sampled_from(Phase), st.integers(0, 10**12), _names), max_size=4)
_counts = st.none() | st.integers(0, 10**6).map(Tokens)
_provenances = st.sampled_from(Provenance)


@st.composite
def _usages(draw: st.DrawFn) -> Usage:
    uncached, output, thinking = draw(_counts), draw(_counts), draw(_counts)
    read, written = draw(st.integers(0, 10**5)), draw(st.integers(0, 10**5))
    multi = draw(st.booleans())
    return Usage(uncached, Tokens(read), Tokens(written), output, thinking, draw(_provenances), multi)


_drifts = st.builds(Drift, _counts, _counts, st.none() | st.builds(Difference, _names, _names, _names))


@st.composite
def _calls(draw: st.DrawFn, number: int, start: int) -> Call:
    first = draw(st.none() | st.integers(start, start + 10**10).map(Ns))
    last = None if first is None else Ns(first + draw(st.integers(0, 10**10)))
    made = draw(st.none() | st.just(Ns(start)))
    attempts = tuple(
        Attempt(number, Request("POST", "/", body=draw(st.binary(max_size=9)))) for _ in range(draw(st.integers(0, 3)))
    )
    fields: dict[str, Any] = {
        "streamed": draw(st.booleans()),
        "verdict": draw(st.none() | st.sampled_from(Verdict)),
        "drift": draw(st.none() | _drifts),
        "flags": draw(st.frozensets(st.sampled_from(["buffered", "client-bound"]))),
        "error": draw(_names),
    }
    told = draw(st.none() | st.integers(start, start + 10**10).map(Ns))
    stones = Milestones(call=made, first_token=first, first_output=first, last_token=last, delivered=told)
    return Call(CallRecord(number), attempts, draw(_names), draw(_names), stones, draw(_usages()), **fields)


@st.composite
def _turns(draw: st.DrawFn, number: int, lane: int, start: int, *, timed: bool) -> Turn:
    spans, clock = [], start
    for phase, size, detail in draw(_spans) if timed else []:
        spans.append(Span(phase, Ns(clock), Ns(clock + size), detail, lane))
        clock += size
    tools = tuple(ToolRecord(7, span.detail, span.start, span.end) for span in spans if span.phase is Phase.TOOL)
    made = draw(_calls(number + 100 * lane, start))
    bounds = (Ns(start), Ns(clock)) if timed else (None, None)
    return Turn(number, lane, made, *bounds, tuple(spans), tools, provenance=draw(_provenances))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run."""
    lanes, clock = [], 0
    for lane in range(1, draw(st.integers(0, 2)) + 1):
        turns = []
        for number in range(1, draw(st.integers(1, 4)) + 1):
            turns.append(draw(_turns(number, lane, clock, timed=draw(st.integers(0, 9)) > 0)))
            clock = turns[-1].end or clock
        lanes.append(Lane(lane, tuple(turns), draw(st.none() | st.just(1))))
    segments = tuple(span for lane in lanes for turn in lane.turns for span in turn.segments)
    known = draw(st.integers(0, 9)) > 0
    paused = draw(st.integers(0, 10**9)) if known else 0
    return Run(
        lanes=tuple(lanes),
        segments=segments if known else (),
        start=Ns(0) if known else None,
        end=Ns(clock + paused) if known else None,
        pauses=(Pause(Ns(0), Ns(paused), draw(_names)),) if paused else (),
        paused=Ns(paused),
        work=totals(segments),
        facts=Facts(test=draw(_names), recorded=draw(_names)),
        provenance=draw(_provenances),
        recorded_turns=draw(st.none() | st.integers(0, 20)),
        notes=tuple(draw(st.lists(_names, max_size=2))),
    )

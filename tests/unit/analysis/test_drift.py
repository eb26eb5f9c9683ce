"""Recorded calls with live requests in them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import LiveCall, replayed
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing.builders import growing, recording, tool, turn, with_longer_system
from pytest_agentlatency.testing.strategies import recordings

CHARS = counter()


def live(observed, now=None, *, calls=None):
    """Each recorded call made with the request of `now`, the same agent changed."""
    changed = {attempt.call: attempt.request for attempt in (now or observed).attempts}
    was = {attempt.call: attempt.request for attempt in observed.attempts}
    return [
        LiveCall(number, request, Verdict.IDENTICAL if request == was[number] else Verdict.DRIFTED)
        for number, request in changed.items()
        if calls is None or number in calls
    ]


@settings(max_examples=40, deadline=None)
@given(recordings())
def test_an_unchanged_agent_replays_as_its_recording(observed):
    run, was = replayed(observed, live(observed), CHARS).run, assemble(observed)
    assert run.segments == was.segments
    assert [each.segments for each in run.all_turns] == [each.segments for each in was.all_turns]
    assert [each.call.usage for each in run.all_turns] == [each.call.usage for each in was.all_turns]
    assert run.recorded_turns == len(was.all_turns)


def test_a_longer_system_prompt_is_in_every_turn():
    observed = recording(growing("linear", 5))
    run = replayed(observed, live(observed, with_longer_system(observed, 500)), CHARS).run
    deltas = [each.call.drift.delta for each in run.turns]
    assert len(set(deltas)) <= 2
    assert min(deltas) > 0
    assert {each.call.verdict for each in run.turns} == {Verdict.DRIFTED}
    assert [each.call.usage.context for each in run.turns] == [
        each.call.drift.recorded_context + each.call.drift.delta for each in run.turns
    ]


def test_what_the_model_said_stays_recorded():
    observed = recording(growing("linear", 3))
    run = replayed(observed, live(observed, with_longer_system(observed, 500)), CHARS).run
    assert [each.call.usage.output for each in run.turns] == [50, 50, 50]


def test_a_shorter_run_has_no_time_of_the_calls_it_did_not_make():
    observed = recording(growing("linear", 5))
    was = assemble(observed)
    told = replayed(observed, live(observed, calls={1, 2}), CHARS)
    assert len(told.run.turns) == 2
    assert told.run.recorded_turns == 5
    assert told.run.turns[0].segments == was.turns[0].segments
    assert told.run.duration <= was.turns[0].duration + was.turns[1].duration
    assert len(told.unmade) == 3


def test_a_call_left_out_in_the_middle_leaves_no_hole_that_passes_for_overhead():
    observed = recording(growing("linear", 4, prefill_ms=300, decode_ms=100, tool_ms=50))
    was = assemble(observed)
    run = replayed(observed, live(observed, calls={1, 2, 4}), CHARS).run
    assert run.time("overhead") == was.time("overhead") == 0
    assert sum(run.phases.values()) == run.duration
    assert run.duration == was.duration - was.turns[2].duration


def test_a_sub_agent_that_is_not_called_takes_its_tool_time_along():
    child = (turn(300, 5, prefill_ms=10),)
    observed = recording([turn(1000, 20, tools=(tool("delegate", 5, turns=child),)), turn(1100, 20)])
    main = {call.id for call in observed.calls if call.parent is None}
    run = replayed(observed, live(observed, calls=main), CHARS).run
    assert len(run.lanes) == 1
    assert sum(run.phases.values()) == run.duration


@settings(max_examples=30, deadline=None)
@given(recordings(), st.integers(1, 3000))
def test_cached_and_uncached_add_up_whatever_changed(observed, tokens):
    run = replayed(observed, live(observed, with_longer_system(observed, tokens)), CHARS).run
    for each in run.all_turns:
        usage = each.call.usage
        if usage.context is not None:
            assert usage.context == usage.uncached + usage.cache_read + usage.cache_write
            assert min(usage.uncached, usage.cache_read, usage.cache_write) >= 0
            assert usage.context > each.call.drift.recorded_context
            assert usage.provenance is Provenance.PROJECTED

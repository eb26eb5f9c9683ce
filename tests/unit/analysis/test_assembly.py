"""A recording read as calls, lanes and turns."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Pause, Recording
from pytest_agentlatency.testing.builders import failure, recording, tool, turn, untimed
from pytest_agentlatency.testing.strategies import recordings

MS = 1_000_000


def ms(times):
    return {str(phase): time / MS for phase, time in times.items()}


def test_a_turn_is_its_call_and_all_that_follows_until_the_next():
    run = assemble(
        recording([turn(1000, 20, prefill_ms=300, decode_ms=100, tool_ms=50), turn(1200, 10, prefill_ms=400)])
    )
    assert len(run.turns) == 2
    assert run.turn(1).tools[0].name == run.turn(1).call.generated[-1].name
    assert run.turn(1).end == run.turn(2).start
    assert run.turn(1).call.usage.context == 1000
    assert run.turn(2).call.usage.context == 1200


def test_phases_are_the_intervals_between_the_stamps():
    run = assemble(recording([turn(1000, 20, prefill_ms=300, decode_ms=100, tool_ms=50, overhead_ms=7)]))
    assert ms(run.turn(1).phases)["prefill"] == 300
    assert ms(run.turn(1).phases)["decode"] == 100
    assert ms(run.turn(1).phases)["tool"] == 50
    assert run.turn(1).call.ttft is not None
    assert run.turn(1).share("prefill") == 300 * MS / run.turn(1).duration


def test_tpot_is_decode_over_the_tokens_after_the_first():
    call = assemble(recording([turn(1000, 21, decode_ms=100)])).turn(1).call
    assert call.tpot == 100 * MS / 20


def test_a_retried_call_keeps_the_ttft_of_the_attempt_that_answered():
    """Field note B4: failed attempts and backoff are their own phase, not the model's latency."""
    spec = turn(1000, 20, prefill_ms=400, decode_ms=100, failures=(failure(529, ms=100, backoff_ms=2000),))
    run = assemble(recording([spec]))
    call = run.turn(1).call
    assert call.retries == 1
    assert call.ttft == call.milestones.first_token - call.attempts[-1].stamps.start
    assert call.ttft < 500 * MS
    assert ms(run.turn(1).phases)["retry"] >= 2100


def test_a_call_that_never_succeeded_is_retry_time():
    spec = turn(1000, 20, failures=(failure(529, ms=100, backoff_ms=500),))
    made = recording([spec])
    only_failed = replace(made, attempts=made.attempts[:1], tools=())
    run = assemble(only_failed)
    assert run.turn(1).call.error
    assert Phase.PREFILL not in run.turn(1).phases
    assert ms(run.turn(1).phases)["retry"] >= 100


def test_a_call_that_was_not_streamed_is_unsplit():
    """Field note B15: no made-up TTFT, and no share of prefill that would be a lower bound."""
    run = assemble(recording([turn(1000, 20, streamed=False)]))
    assert run.turn(1).call.ttft is None
    assert Phase.UNSPLIT in run.turn(1).phases
    assert run.turn(1).share("prefill") is None
    assert run.turn(1).share("tool") == 0


def test_parallel_tools_count_the_time_the_run_waited():
    """Field note B21: 3 s and 3 s side by side are 3 s of waiting and 6 s of work."""
    spec = turn(1000, 20, tools=(tool("a", 3000), tool("b", 3000)), parallel=True)
    run = assemble(recording([spec]))
    assert ms(run.phases)["tool"] == 3000
    assert run.work[Phase.TOOL] == 6000 * MS


def test_a_sub_agent_has_a_lane_of_its_own():
    """Field note C17: totals have the child's calls, the parent's growth does not."""
    child = (turn(300, 5, prefill_ms=10), turn(400, 5, prefill_ms=10))
    parent = [turn(1000, 20, tools=(tool("delegate", 5, turns=child),)), turn(1100, 20)]
    run = assemble(recording(parent))
    assert [len(lane.turns) for lane in run.lanes] == [2, 2]
    assert run.lanes[1].parent == 1
    assert len(run.calls) == 4
    assert [each.call.usage.context for each in run.turns] == [1000, 1100]
    assert ms(run.phases)["prefill"] >= 20


def test_a_pause_is_nobodys_latency():
    """Field note B22: a human's 30 s leave every figure as it was."""
    made = recording([turn(1000, 20, tool_ms=40_000), turn(1200, 10)])
    start = made.tools[0].start + 1000 * MS
    plain, paused = assemble(made), assemble(replace(made, pauses=(Pause(start, start + 30_000 * MS, "approval"),)))
    assert paused.duration == plain.duration - 30_000 * MS
    assert ms(paused.turn(1).phases)["tool"] == 10_000
    assert sum(paused.turn(1).phases.values()) == paused.turn(1).duration
    assert sum(paused.phases.values()) == paused.duration


def test_a_recording_without_times_has_no_durations_and_says_so():
    run = assemble(untimed(recording([turn(1000, 20), turn(1200, 10)])))
    assert run.duration is None
    assert run.turn(2).duration is None
    assert run.turn(2).share("prefill") is None
    assert run.turn(2).provenance is Provenance.UNKNOWN
    assert run.turn(2).call.usage.context == 1200
    assert any("no times" in note for note in run.notes)


def test_an_empty_recording_is_an_empty_run():
    run = assemble(Recording())
    assert run.lanes == ()
    assert run.duration is None
    with pytest.raises(IndexError, match="0 lane"):
        run.turn(1)


def test_a_turn_that_is_not_there_says_how_many_are():
    run = assemble(recording([turn(1000, 20)] * 1))
    with pytest.raises(IndexError, match=r"no turn 6: lane 1 has 1 turn"):
        run.turn(6)


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_phases_sum_to_the_wall_clock_exactly(observed):
    run = assemble(observed)
    if run.duration is None:
        assert run.segments == ()
        return
    assert sum(run.phases.values()) == run.duration
    for each in run.all_turns:
        assert sum(each.phases.values()) == each.duration
        assert all(earlier.end <= later.start for earlier, later in zip(each.segments, each.segments[1:], strict=False))


@settings(max_examples=40, deadline=None)
@given(recordings())
def test_no_call_is_lost_or_counted_twice(observed):
    run = assemble(observed)
    assert sorted(call.record.id for call in run.calls) == sorted(record.id for record in observed.calls)
    assert [each.number for lane in run.lanes for each in lane.turns] == [
        number for lane in run.lanes for number in range(1, len(lane.turns) + 1)
    ]


def test_llama_cpp_prefill_ends_at_its_first_event():
    """Its headers come when prefill starts, its first event with the first token: the server's own boundaries."""
    made = recording([turn(1000, 20, prefill_ms=300, decode_ms=100)])
    attempt = made.attempts[0]
    response = replace(attempt.response, headers=(*attempt.response.headers, ("server", "llama.cpp")))
    headers = attempt.stamps.headers
    run = assemble(replace(made, attempts=(replace(attempt, response=response),)))
    first_event = run.turn(1).call.milestones.first_event
    assert run.turn(1).phases.get(Phase.PREFILL, 0) == first_event - max(headers, attempt.stamps.sent)
    assert sum(run.turn(1).phases.values()) == run.turn(1).duration


def test_all_tokens_in_one_burst_are_unsplit():
    """Field note B6: a proxy that holds the stream back leaves neither prefill nor decode to be told."""
    made = recording([turn(1000, 40, prefill_ms=300, decode_ms=100)])
    attempt = made.attempts[0]
    end = attempt.stamps.arrived[-1]
    burst = replace(attempt.stamps, arrived=tuple(end for _ in attempt.stamps.arrived))
    call = assemble(replace(made, attempts=(replace(attempt, stamps=burst),))).turn(1).call
    assert "buffered" in call.flags
    assert call.ttft is None
    assert call.decode is None


def test_a_slow_reader_is_flagged():
    """Field note B5: a stall of the consumer must not pass for the provider's latency."""
    honest = assemble(recording([turn(1000, 40, decode_ms=1000)])).turn(1).call
    held = assemble(recording([turn(1000, 40, decode_ms=1000, consumer_ms=900)])).turn(1).call
    assert "client-bound" not in honest.flags
    assert "client-bound" in held.flags


def test_bodies_are_read_as_they_were_sent():
    made = recording([turn(1000, 20)])
    assert json.loads(made.attempts[0].request.body)["model"] == assemble(made).turn(1).call.model


def test_a_turn_that_answers_rejected_arguments_is_retry_time():
    """The essay's `validation / retry`: asking again after a malformed output is nobody's prefill."""
    made = recording([turn(1000, 20, tool_ms=5), turn(1100, 20, prefill_ms=300, tool_ms=5), turn(1200, 20)])
    first, second = made.tools
    refused = replace(made, tools=(replace(first, error=True, rejected=True), second))
    run, was = assemble(refused), assemble(made)
    assert Phase.PREFILL not in run.turn(2).phases
    assert run.turn(2).time("retry") >= 300 * MS
    assert run.turn(2).duration == was.turn(2).duration == sum(run.turn(2).phases.values())
    assert run.turn(1).phases == was.turn(1).phases
    assert run.turn(3).phases == was.turn(3).phases
    assert run.turn(2).call.ttft == was.turn(2).call.ttft


def test_a_tool_that_ran_and_failed_is_no_rejection():
    made = recording([turn(1000, 20, tool_ms=5), turn(1100, 20)])
    failed = replace(made, tools=(replace(made.tools[0], error=True),))
    assert "retry" not in assemble(failed).turn(2).phases


def test_time_of_the_loop_stands_in_the_gap_where_it_went():
    """Field note F4: 1.2 s after the answer and 0.7 s before the next request are the framework's, not the model's."""
    made = recording([turn(1000, 20, tool_ms=2000, overhead_ms=1200), turn(1100, 20)])
    early = replace(made.tools[0], end=made.tools[0].end - 700 * MS, body=None)
    run = assemble(replace(made, tools=(early,)))
    found = [(str(span.phase), span.duration / MS) for span in run.turn(1).segments]
    assert found[-3:] == [("overhead", 1200), ("tool", 1300), ("overhead", 700)]
    assert run.turn(2).time("overhead") == 0


def test_stamps_that_go_backwards_take_nothing_from_the_rest():
    """Field note B25: a recording edited by hand; the phases are still a partition."""
    made = recording([turn(1000, 20, prefill_ms=300, tool_ms=50), turn(1100, 20)])
    attempt = made.attempts[0]
    turned = replace(attempt, stamps=replace(attempt.stamps, arrived=attempt.stamps.arrived[::-1]))
    run = assemble(replace(made, attempts=(turned, made.attempts[1])))
    assert all(span.duration > 0 for span in run.segments)
    assert sum(run.phases.values()) == run.duration

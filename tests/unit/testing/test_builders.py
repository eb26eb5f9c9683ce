"""Built recordings: what was asked for is what their bytes and stamps say."""

import json
from itertools import pairwise

import pytest

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.recording import Outcome
from pytest_agentlatency.testing.builders import (
    contexts,
    edited,
    failure,
    growing,
    recording,
    tool,
    turn,
    untimed,
    with_longer_system,
)
from pytest_agentlatency.testing.faults import Buffer, Coding, Cut, Drop, Refuse
from pytest_agentlatency.testing.prompts import messages_blocks

MS = 1_000_000


def bodies(made):
    return [json.loads(attempt.request.body) for attempt in made.attempts]


def sizes(made):
    return [sum(block.tokens for block in messages_blocks(body)) for body in bodies(made)]


def test_figures_of_a_turn_come_back_from_the_bytes_and_stamps():
    spec = turn(1000, 50, prefill_ms=200, decode_ms=490, cached=600, written=300, thinking=10, tool_ms=80)
    run = assemble(recording([spec, turn(1500)]))
    first = run.turn(1)
    assert (first.call.ttft, first.call.decode, first.call.tpot) == (200 * MS, 490 * MS, 10 * MS)
    assert (first.time(Phase.PREFILL), first.time(Phase.TOOL)) == (200 * MS, 80 * MS)
    usage = first.call.usage
    assert (usage.context, usage.cache_read, usage.cache_write, usage.output) == (1000, 600, 300, 50)
    assert run.duration == (200 + 490 + 80 + 700) * MS


def test_each_body_is_as_long_as_its_context():
    made = recording([turn(size, tool_ms=5) for size in (100, 1000, 1001 + 50 + 3, 90_000)])
    assert sizes(made) == [100, 1000, 1054, 90_000]


def test_a_history_only_grows_while_its_contexts_have_room_for_it():
    messages = [body["messages"] for body in bodies(recording(growing("linear", 5)))]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(messages))
    results = messages[1][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result"]


def test_a_smaller_context_is_a_compacted_history():
    messages = [body["messages"] for body in bodies(recording([turn(5000), turn(900), turn(1500)]))]
    assert [len(each) for each in messages] == [1, 1, 3]


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ("constant", (2000, 2000, 2000, 2000, 2000)),
        ("sublinear", (2000, 3000, 3414, 3732, 4000)),
        ("linear", (2000, 3000, 4000, 5000, 6000)),
        ("superlinear", (2000, 3000, 6000, 11000, 18000)),
        ("compacted", (2000, 3000, 2000, 3000, 2000)),
    ],
)
def test_contexts_follow_their_law(law, expected):
    assert contexts(law, 5) == expected


def test_parallel_tools_start_together_and_others_one_after_the_other():
    both = [tool("a", 100), tool("b", 30)]
    side, row = (recording([turn(tools=both, parallel=parallel), turn(2000)]) for parallel in (True, False))
    assert [each.start for each in side.tools] == [700 * MS, 700 * MS]
    assert [each.start for each in row.tools] == [700 * MS, 800 * MS]
    assert (side.attempts[1].stamps.start, row.attempts[1].stamps.start) == (800 * MS, 830 * MS)


def test_a_sub_agent_is_a_lane_inside_its_tool():
    research = tool("research", 10, turns=[turn(500), turn(900)])
    run = assemble(recording([turn(tools=[research]), turn(3000)]))
    main, sub = run.lanes
    assert (len(main.turns), len(sub.turns), sub.parent) == (2, 2, main.id)
    assert main.turns[0].tools[0].end == (700 + 1400 + 10) * MS


def test_calls_of_parallel_sub_agents_are_numbered_as_they_were_made():
    slow, fast = (tool("research", turns=[turn(500, prefill_ms=ms), turn(900)]) for ms in (900, 100))
    made = recording([turn(tools=[slow, fast], parallel=True), turn(3000)])
    entered = [call.entered for call in made.calls]
    assert entered == sorted(entered)
    assert [call.id for call in made.calls] == [1, 2, 3, 4, 5, 6]
    assert [call.parent for call in made.calls] == [None, 1, 2, 2, 1, None]


def test_failed_attempts_come_before_the_answer_with_their_waits():
    made = recording([turn(failures=[failure(529, ms=100, backoff_ms=2000), failure(0, ms=10, backoff_ms=5)])])
    overloaded, dropped, answered = made.attempts
    assert (overloaded.response.status, dropped.response, answered.response.status) == (529, None, 200)
    assert dropped.outcome is Outcome.ERROR
    assert answered.stamps.start == 2115 * MS
    assert made.calls[0].backoffs == ((100 * MS, 2100 * MS), (2110 * MS, 2115 * MS))
    call = assemble(made).turn(1).call
    assert (call.retries, call.ttft) == (2, 200 * MS)


def test_connecting_and_a_slow_consumer_are_stamped_apart():
    stamps = recording([turn(connect_ms=30, consumer_ms=200, events=3)]).attempts[0].stamps
    assert (stamps.connect, stamps.sent) == ((0, 30 * MS), 30 * MS)
    assert all(later - earlier >= 200 * MS for earlier, later in pairwise(stamps.arrived))
    assert all(arrived >= asked for asked, arrived in zip(stamps.asked, stamps.arrived, strict=True))


def test_a_plain_answer_is_one_chunk_at_the_end():
    [attempt] = recording([turn(streamed=False)]).attempts
    assert (len(attempt.response.chunks), attempt.stamps.headers) == (1, 700 * MS)


@pytest.mark.parametrize(
    ("figures", "outcome", "kind"),
    [
        ({"close_after": 3}, Outcome.CLOSED, None),
        ({"faults": (Cut(3),)}, Outcome.ERROR, "RemoteProtocolError"),
        ({"faults": (Cut(3, reset=True),)}, Outcome.ERROR, "ReadError"),
        ({"faults": (Drop(),)}, Outcome.ERROR, "RemoteProtocolError"),
        ({"faults": (Buffer(),)}, Outcome.COMPLETE, None),
    ],
)
def test_an_answer_may_end_in_other_ways(figures, outcome, kind):
    [attempt] = recording([turn(**figures)]).attempts
    assert (attempt.outcome, attempt.failure and attempt.failure.kind) == (outcome, kind)
    assert len(attempt.stamps.arrived) == (len(attempt.response.chunks) if attempt.response else 0)


def test_a_coding_is_noted_and_the_chunks_are_decoded():
    [attempt] = recording([turn(faults=(Coding("gzip"),))]).attempts
    assert attempt.response.coding == "gzip"
    assert b"message_start" in attempt.response.chunks[0]


def test_a_refused_last_attempt_ends_the_call_in_an_error():
    assert assemble(recording([turn(faults=(Refuse(529),))])).turn(1).call.error == "overloaded_error"


def test_without_times_nothing_is_measured():
    run = assemble(untimed(recording(growing("linear", 3))))
    assert (run.duration, run.turn(2).time("prefill"), run.turn(2).call.usage.context) == (None, None, 3000)


def test_without_sdk_hooks_the_transport_is_all_that_was_seen():
    made = recording([turn(failures=[failure()], serialization_ms=20)], sdk="")
    assert (made.calls[0].entered, made.calls[0].returned, made.calls[0].backoffs) == (None, None, ())
    assert made.attempts[0].stamps.start == 20 * MS


def test_an_edited_recording_keeps_answers_and_times():
    made = recording(growing("linear", 3))
    other = edited(made, lambda _, body: body["tools"].reverse())
    longer = with_longer_system(made, 250)
    assert [attempt.response for attempt in other.attempts] == [attempt.response for attempt in made.attempts]
    assert [after - before for before, after in zip(sizes(made), sizes(longer), strict=True)] == [250] * 3


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (turn(3), "context 3 has no room: tools and system take 5 tokens"),
        (turn(output=1, tool_ms=1), "output 1 has no room: thinking and tool calls take 2 tokens"),
        (turn(100, cached=90, written=20), "cached 90 and written 20 are more than context 100"),
    ],
)
def test_a_figure_that_cant_be_met_is_refused(spec, complaint):
    with pytest.raises(ValueError, match=complaint):
        recording([spec], tools=())

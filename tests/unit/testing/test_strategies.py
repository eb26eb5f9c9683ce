"""What the strategies draw is what they promise, and the plugin's own reading of it never stumbles."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.model.recording import Outcome
from pytest_agentlatency.testing import strategies
from pytest_agentlatency.testing.prompts import messages_blocks
from pytest_agentlatency.wire.sse import events

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEEK = settings(few, max_examples=2000, database=None, phases=[Phase.generate])


@few
@given(strategies.recordings())
def test_stamps_of_an_attempt_are_in_order_and_one_a_chunk(made):
    for attempt in made.attempts:
        if (stamps := attempt.stamps) is None:
            continue
        moments = (stamps.start, *(stamps.connect or ()), stamps.sent, stamps.headers, *stamps.arrived, stamps.end)
        known = [moment for moment in moments if moment is not None]
        assert known == sorted(known)
        assert len(stamps.arrived) == (len(attempt.response.chunks) if attempt.response else 0)
        assert len(stamps.asked) in {0, len(stamps.arrived)}


@few
@given(strategies.recordings())
def test_every_attempt_belongs_to_a_call_and_calls_are_numbered_from_one(made):
    assert [call.id for call in made.calls] == list(range(1, len(made.calls) + 1))
    assert {attempt.call for attempt in made.attempts} == {call.id for call in made.calls}


@few
@given(strategies.recordings(whole=True))
def test_phases_of_any_whole_recording_sum_to_its_wall(made):
    run = assemble(made)
    assert sum(run.phases.values()) == run.duration == made.bounds[1] - made.bounds[0]
    assert len(run.all_turns) == len(made.calls)


@few
@given(strategies.request_bodies(), strategies.prompts())
def test_bodies_and_prompts_have_content(body, prompt):
    assert len(messages_blocks(body)) >= len(body["messages"]) - sum(not each["content"] for each in body["messages"])
    assert prompt.model == "claude-simulated"
    assert prompt.messages[0].role == "user"


@few
@given(strategies.sse_streams(whole=True))
def test_a_whole_stream_ends_with_its_providers_end(chunks):
    assert all(chunks)
    found = [event for _, event in events(chunks)]
    assert found[-1].data == "[DONE]" or '"message_stop"' in found[-1].data


def features(made):
    """Names of what a recording has in it."""
    stamps = [attempt.stamps for attempt in made.attempts if attempt.response]
    present = {
        "retry": len(made.attempts) > len(made.calls),
        "sub-agent": any(call.parent for call in made.calls),
        "closed early": any(attempt.outcome is Outcome.CLOSED for attempt in made.attempts),
        "broken": any(attempt.outcome is Outcome.ERROR and attempt.response for attempt in made.attempts),
        "no times": not any(stamps),
        "no headers stamp": any(each and each.headers is None for each in stamps),
        "no hooks": not any(call.sdk for call in made.calls),
        "overlapping tools": any(later.start < earlier.end for earlier, later in pairwise(made.tools)),
    }
    return {name for name, holds in present.items() if holds}


@pytest.mark.parametrize(
    "wanted",
    [
        "retry",
        "sub-agent",
        "closed early",
        "broken",
        "no times",
        "no headers stamp",
        "no hooks",
        "overlapping tools",
    ],
)
def test_recordings_reach_the_cases_that_hurt(wanted):
    find(strategies.recordings().map(features), lambda found: wanted in found, settings=SEEK)

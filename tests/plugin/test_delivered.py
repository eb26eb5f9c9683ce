"""`agent_run.delivered()`: the agent tells when its user gets the first output. Field note B18."""

import json

import pytest

from pytest_agentlatency.testing import CostModel, Reply
from tests.support.suite import interactions

MS = 1_000_000
GATED = """
import json
import pathlib
import anthropic

@pytest.mark.agent_latency
@pytest.mark.latency_budget("delivered under 30 s at turn 1")
def test_agent(agent_run, url):
    held = []
    with (
        anthropic.Anthropic(base_url=url, api_key="not-a-key") as client,
        client.messages.stream(model="m", max_tokens=90, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        for piece in stream.text_stream:
            held.append(piece)
            if len(held) >= 3:
                agent_run.delivered()
    turn = agent_run.turn(1)
    pathlib.Path("told.json").write_text(json.dumps([turn.ttft, turn.delivered]))
"""
UNTOLD = GATED.replace("agent_run.delivered()", "pass")


@pytest.fixture(autouse=True)
def _paced(suite):
    suite.serve(Reply("abcdefghijklmnopqrst"), costs=CostModel(decode=20 * MS))


def told(suite):
    return json.loads((suite.path / "told.json").read_text())


def test_recorded_it_comes_back_in_a_replay_as_it_was(suite):
    cassette = suite.written(GATED)
    ttft, delivered = told(suite)
    assert delivered > ttft
    assert "delivered: " in cassette.read_text()
    assert len(interactions(cassette)) == 1
    result = suite.run("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["turn *ttft  delivered", "kept *delivered under 30 s at turn 1: *at turn 1*(replayed)*"]
    )
    assert told(suite) == [ttft, delivered]


def test_an_agent_that_never_tells_has_no_such_figure(suite):
    suite.write(UNTOLD)
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*not measured: delivered at turn 1*", "*didn't call agent_run.delivered() in this turn*"]
    )
    assert told(suite)[1] is None


def test_told_in_a_replay_only_it_is_unknown_and_the_test_says_what_to_do(suite):
    budget = '@pytest.mark.latency_budget("delivered under 30 s at turn 1")\n'
    suite.written(UNTOLD.replace(budget, ""))
    suite.write(GATED)
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*not measured: delivered at turn 1*",
        "*didn't call agent_run.delivered() in this turn when it was recorded; record*",
        "the agent hands its output on at turn 1, and the cassette doesn't say when: *",
    ])  # fmt: skip
    assert told(suite)[1] is None

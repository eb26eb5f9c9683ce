"""A recording whose reader held the model up is no baseline of times. Field note B5."""

import json

import pytest

from pytest_agentlatency.testing import CostModel, Reply

MS = 1_000_000
SLOW = """
import time
import anthropic

@pytest.mark.agent_latency
@pytest.mark.latency_budget({budgets})
def test_agent(agent_run, url):
    with (
        anthropic.Anthropic(base_url=url, api_key="not-a-key") as client,
        client.messages.stream(model="m", max_tokens=90, messages=[{{"role": "user", "content": "hi"}}]) as stream,
    ):
        for piece in stream.text_stream:
            time.sleep({sleep})
"""
FREE = '"ttft under 30 s", "prefill time under 30 s", "output tokens at most 20"'
TIMES = FREE + ', "total under 30 s", "tpot under 30 s"'


@pytest.fixture(autouse=True)
def _paced(suite):
    suite.serve(Reply("abcdefghijklmnopqrstuvwxyzabcdef"), costs=CostModel(decode=50 * MS))


def slow(budgets, sleep=0.1):
    return SLOW.format(budgets=budgets, sleep=sleep)


def test_with_a_time_budget_it_is_refused_and_kept_as_rejected(suite):
    suite.write(slow(TIMES))
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "client-bound: *% of decode at turn 1 is the reader's",
        "'total under 30 s' would stand on turn 1: of a decode of * the reader took *",
        "'tpot under 30 s' would stand on turn 1: *",
        "Such a recording is no baseline of these times. Record again on a quiet machine, or read the stream without*",
        "the recording was not kept: it is at *test_agent.yaml.rejected, for a look only.",
        "*FAILED test_agent.py::test_agent - Failed: client-bound: *",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*'ttft under 30 s' would stand*")
    assert suite.files() == ["test_agent/test_agent.yaml.rejected"]


def test_an_old_cassette_stays(suite):
    cassette = suite.written(slow(TIMES, sleep=0))
    before = cassette.read_bytes()
    suite.write(slow(TIMES))
    suite.run("--latency-mode=record").assert_outcomes(failed=1)
    assert cassette.read_bytes() == before


def test_times_before_the_first_token_and_counts_may_stand_on_it(suite):
    """An agent that speaks while it reads is slow by trade."""
    suite.written(slow(FREE))
    result = suite.run("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["turn 1 (client-bound): the agent read more slowly*"])


def test_without_a_budget_it_is_written(suite):
    suite.written(slow("'turns at most 8'").replace("@pytest.mark.latency_budget('turns at most 8')\n", ""))
    suite.run().assert_outcomes(passed=1)


def test_its_times_are_never_accepted(suite):
    suite.written(slow(FREE))
    suite.write(slow(TIMES, sleep=0))
    result = suite.run("--latency-update", "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "total under 30 s: not accepted, turn 1 is client-bound (of a decode of *)",
        "tpot under 30 s: not accepted, turn 1 is client-bound *",
    ])  # fmt: skip
    accepted = json.loads((suite.path / "cassettes" / "test_agent" / "test_agent.accepted.json").read_text())
    assert set(accepted["figures"]) == {"ttft under 30 s", "prefill time under 30 s", "output tokens at most 20"}

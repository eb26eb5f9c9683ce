"""A changed agent, replayed: recorded answers, live requests, and a verdict on both."""

import re

import pytest

from pytest_agentlatency.testing import CostModel
from tests.support.agents import searches

AGENT = """
import anthropic
from tests.support.agents import answered, ask, results
from tests.support.prose import prose

def agent(url, system, result):
    client = anthropic.Anthropic(base_url=url, api_key="none")
    messages = [{{"role": "user", "content": "Where is it?"}}]
    while True:
        message = ask(client, messages, system=system, model="local")
        if message.stop_reason != "tool_use":
            return message.content[-1].text
        messages += [answered(message), results(message, result)]

@pytest.mark.agent_latency
{budget}
def test_agent(agent_run, url):
    assert agent(url, prose({system}), prose({result}, 2)) == "It was found."
    for turn in agent_run.turns:
        print("context", turn.context_tokens, turn.verdict)
"""


def agent(system=10_000, result=200, budget=""):
    marker = f"@pytest.mark.latency_budget({budget!r})" if budget else ""
    return AGENT.format(system=system, result=result, budget=marker)


def contexts(result: pytest.RunResult) -> list[int]:
    return [int(each) for each in re.findall(r"^context (\d+)", result.stdout.str(), re.MULTILINE)]


def truth(suite) -> list[int]:
    """What the agent's requests are by the model's own count, sent for real."""
    before = len(suite.model.served)
    suite.run("--latency-mode=live")
    return [each.tokens.context for each in suite.model.served[before:]]


def test_2800_tokens_more_on_a_10k_prompt_fail_its_token_budget_offline(suite):
    budget = "context tokens under 11.5k at every turn"
    suite.written(agent(budget=budget))
    asked = suite.received
    suite.write(agent(system=12_800, budget=budget))
    result = suite.run("-rA")
    result.assert_outcomes(failed=1)
    assert suite.received == asked
    result.stdout.fnmatch_lines(["*~1[23],* context tokens at turn 3, budget 11,500*"])
    result.stdout.fnmatch_lines(["*system prompt +2,*since turn 1*"])
    assert contexts(result) == pytest.approx(truth(suite), abs=0.025 * 10_000)


def test_5800_tokens_less_pass_a_budget_that_the_recorded_agent_would_break(suite):
    suite.written(agent(system=14_000))
    suite.write(agent(system=8_200, budget="context tokens under 9.5k at every turn"))
    result = suite.run("-rA")
    result.assert_outcomes(passed=1)
    assert contexts(result) == pytest.approx(truth(suite), abs=0.025 * 14_000)


def test_a_slower_prompt_breaks_a_time_budget_by_its_projection(suite):
    """Eight turns tell what a token costs."""
    suite.serve(searches(8), costs=CostModel(fixed=2_000_000, prefill=50_000, decode=3_000_000))
    suite.written(agent(system=100, result=600))
    suite.write(agent(system=6100, result=600, budget="prefill time under 1 s"))
    result = suite.run("-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*prefill, budget 1.00 s*", "*turn * prefill ~* (+*): system prompt +*"])


def test_without_streams_a_time_budget_is_advice_and_the_run_says_tokens_only(suite):
    source = """
import anthropic
from tests.support.prose import prose

@pytest.mark.agent_latency
@pytest.mark.latency_budget("total under 0.001 ms", "context tokens under 9k at every turn")
def test_agent(url):
    client = anthropic.Anthropic(base_url=url, api_key="none")
    client.messages.create(model="m", max_tokens=9, system=prose(SYSTEM), messages=[{"role": "user", "content": "Go."}])
"""
    suite.write(source.replace("SYSTEM", "1000").replace('"total under 0.001 ms", ', ""))
    suite.record()
    suite.write(source.replace("SYSTEM", "2000"))
    result = suite.run("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "*tokens only*",
        "*advice  *total under 0.001 ms*tokens only, the time is from before the*",
        "*judged after a change on: 1 counts of the changed requests, 1 recorded times of changed requests*",
    ])  # fmt: skip


def test_a_request_beyond_latency_max_drift_asks_for_a_recording(suite):
    suite.written(agent(system=1000))
    suite.ini("latency_max_drift = 30%")
    suite.write(agent(system=1200))
    suite.run().assert_outcomes(passed=1)
    suite.write(agent(system=2000))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*turn * drifted *%, allowed 30%*", "*Record it again: pytest *--latency-mode=record*"]
    )


def test_a_bad_bound_is_refused_with_its_source(suite):
    suite.ini("latency_max_drift = much")
    suite.write(agent())
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ini value latency_max_drift is 'much'*such as 0.3 or 30%*"])


def test_a_calibration_that_is_none_fails_the_test_and_names_the_file(suite):
    suite.written(agent(system=300))
    (suite.path / "latency-calibrations").mkdir()
    (suite.path / "latency-calibrations" / "x.json").write_text("{}")
    result = suite.run()
    result.stdout.fnmatch_lines(["*calibration *x.json can't be used: a calibration of version None*"])


def test_a_what_if_is_a_run_that_a_test_can_ask(suite):
    suite.serve(searches(4), costs=CostModel(fixed=2_000_000, prefill=10_000, decode=3_000_000))
    source = """
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    loop(url)
    faster = agent_run.what_if("context halved", "decode twice as fast")
    assert faster.time("decode") <= agent_run.details.time("decode") // 2 + 4
    assert faster.turn(4).call.usage.context == agent_run.turn(4).context_tokens // 2
    with pytest.raises(ValueError, match="no what-if is called 'smaller'"):
        agent_run.what_if("smaller")
"""
    suite.written(source)
    suite.run().assert_outcomes(passed=1)

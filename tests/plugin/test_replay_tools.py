"""`replay_tools`: in a replay, tools are given their recorded results in place of running."""

import pytest

TOOL = """
import itertools
import anthropic
from pytest_agentlatency import tool
from tests.support.agents import answered

NUMBERS = itertools.count(1)

{marker}
def test_agent(agent_run, url):
    @tool
    def search(query: str) -> str:
        return f"result {{next(NUMBERS)}}"

    messages = [{{"role": "user", "content": "go"}}]
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        while True:
            message = ask(client, messages)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                break
            done = {{"type": "tool_result"}}
            given = [{{**done, "tool_use_id": each.id, "content": search(**each.input)}} for each in calls]
            messages += [answered(message), {{"role": "user", "content": given}}]
    {end}
    print("ran", next(NUMBERS) - 1)
"""
PLAIN, MARKED = "@pytest.mark.agent_latency", "@pytest.mark.agent_latency(replay_tools=True)"


def written(suite, marker, end="pass"):
    suite.write(TOOL.format(marker=marker, end=end))


@pytest.mark.parametrize(
    ("marker", "ini", "ran"),
    [
        (PLAIN, "false", 2),
        (PLAIN, "true", 0),
        (MARKED, "false", 0),
        ("@pytest.mark.agent_latency(replay_tools=False)", "true", 2),
    ],
    ids=["off", "ini", "marker", "the marker's word counts"],
)
def test_tools_run_or_are_given_their_results(suite, marker, ini, ran):
    suite.ini(f"latency_replay_tools = {ini}")
    written(suite, marker)
    suite.record()
    result = suite.run("-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*ran {ran}"])


def test_what_ran_all_the_same_is_noted(suite):
    written(suite, MARKED, end='search("one more")')
    suite.record()
    result = suite.run("-rP")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*latency notes*", "*tool 'search' ran: the cassette holds no result for this call*"])


def test_a_value_that_is_no_truth_value_is_refused(suite):
    written(suite, "@pytest.mark.agent_latency(replay_tools='yes')")
    result = suite.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_agent*replay_tools=...) takes True or False, got 'yes'*"])

"""Every live call ends as identical, drifted or unmatched; a call that has no counterpart ends the test at once."""

import pytest

from tests.support.agents import searches

UNMATCHED = "model call 4 *"


def changed(suite, source):
    """Record the plain agent, then run this test against its cassette."""
    suite.written()
    suite.write(source)
    asked = suite.received
    result = suite.run("-v")
    assert suite.received == asked, "nothing may be asked in a replay"
    return result


def test_the_same_requests_are_identical(suite):
    suite.written()
    suite.run().stdout.fnmatch_lines(["calls: 3 identical"])


def test_a_changed_request_is_drifted_and_played_on(suite):
    """Field note A1: never accepted in silence, and the tokens are those of the request as it is now."""
    result = changed(
        suite,
        """
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url, system="You are an agent." + " Mind the customer's patience." * 60) == "It was found."
    assert [turn.verdict for turn in agent_run.turns] == ["drifted"] * 3
    drift = agent_run.turn(1).details.call.drift
    assert 300 <= drift.delta <= 800
    assert drift.difference.path == "system"
""",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["calls: 3 drifted", "*test_agent.py::test_agent: replayed*3 drifted*"])


def test_budgets_are_judged_on_the_live_request(suite):
    result = changed(
        suite,
        """
@pytest.mark.agent_latency
@pytest.mark.latency_budget("context tokens under 200 at every turn")
def test_agent(agent_run, url):
    loop(url, system="You are an agent." + " Mind the customer's patience." * 60)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["~* context tokens at turn *, budget 200", "*system prompt +*tokens at system*"])


@pytest.mark.parametrize("how", ["option", "ini", "marker"])
def test_strict_refuses_drift(suite, how):
    suite.written()
    marker = "agent_latency(drift='strict')" if how == "marker" else "agent_latency"
    suite.write(f"""
@pytest.mark.{marker}
def test_agent(agent_run, url):
    loop(url, system="You are another agent.")
""")
    suite.ini("latency_drift = strict" if how == "ini" else "")
    result = suite.run(*(["--latency-drift=strict"] if how == "option" else []))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*model call 1 differs from the recorded one, and matching is strict.*",
        "*first difference: system*",
        "*recorded: *You are an agent.*",
        "*live: *You are another agent.*",
    ])  # fmt: skip


def test_a_call_too_many_fails_at_once_with_its_own_message(suite):
    """Not the SDK's `Connection error.`, and not after its retries."""
    result = changed(
        suite,
        """
@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    loop(url, question="And where is the other one?")
    print("went on")
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "model call 4 starts a conversation that the cassette doesn't hold.",
        "*nearest recorded call: lane 1, turn 1",
        "*first difference: messages[[]0].content*",
        "*record again: pytest test_agent.py::test_agent --latency-mode=record",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*Connection error*")
    result.stdout.no_fnmatch_line("*went on*")
    result.stdout.no_fnmatch_line("*Traceback*")


SWALLOWED = {
    "except Exception": """
def test_agent(url):
    loop(url)
    try:
        loop(url, question="Another?")
    except Exception:
        pass
""",
    "bare except": """
def test_agent(url):
    loop(url)
    try:
        loop(url, question="Another?")
    except BaseException:
        pass
""",
    "gather": """
def test_agent(url):
    loop(url)
    async def main():
        return await asyncio.gather(loop_async(url, question="Another?"), return_exceptions=True)
    asyncio.run(main())
""",
    "task group": """
def test_agent(url):
    loop(url)
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(loop_async(url, question="Another?"))
    asyncio.run(main())
""",
    "swallowed task group": """
def test_agent(url):
    loop(url)
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(loop_async(url, question="Another?"))
    with pytest.raises(BaseExceptionGroup):
        asyncio.run(main())
""",
    "thread pool": """
def test_agent(url):
    from concurrent.futures import ThreadPoolExecutor
    loop(url)
    with ThreadPoolExecutor() as pool:
        pool.submit(loop, url, question="Another?")
""",
    "a task nobody awaits": """
def test_agent(url):
    loop(url)
    async def main():
        task = asyncio.create_task(loop_async(url, question="Another?"))
        await asyncio.wait([task])
        assert task.exception()
    asyncio.run(main())
""",
}


@pytest.mark.parametrize("how", SWALLOWED)
def test_an_agent_that_swallows_it_fails_all_the_same(suite, how):
    result = changed(suite, "\n@pytest.mark.agent_latency" + SWALLOWED[how])
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["model call 4 starts a conversation that the cassette doesn't hold."])
    result.stdout.fnmatch_lines(["FAILED test_agent.py::test_agent - *model call 4 *"])


def test_a_run_that_stops_early_is_told_and_is_no_improvement(suite):
    """Field note A20: turns 2/5; a total of fewer is not a smaller total."""
    suite.serve(searches(5))
    suite.written()
    suite.write("""
import anthropic

@pytest.mark.agent_latency
@pytest.mark.latency_budget("total at most 1 min", "output tokens at most 100k in total", "ttft under 1 min at turn 4")
def test_agent(agent_run, url):
    from tests.support.agents import answered, results
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        messages = [{"role": "user", "content": "Where is it?"}]
        message = ask(client, messages)
        messages += [answered(message), results(message, "found it")]
        ask(client, messages)
    assert agent_run.details.recorded_turns == 5
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*made 2 of 5 recorded turns*"])
    result.stdout.fnmatch_lines(["1 run shorter than recorded: *test_agent.py::test_agent (2/5 turns)"])
    result.stdout.fnmatch_lines(["budgets: 3 not measured"])


def test_a_shorter_run_without_budgets_passes_and_is_told(suite):
    suite.written()
    suite.write("""
import anthropic

@pytest.mark.agent_latency
def test_agent(url):
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        ask(client, [{"role": "user", "content": "Where is it?"}])
""")
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 run shorter than recorded: test_agent.py::test_agent (1/3 turns)"])


def test_no_call_at_all_fails(suite):
    """Field note A3."""
    result = changed(suite, "\n@pytest.mark.agent_latency\ndef test_agent(url):\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no model call was observed during the test."])


def test_declared_volatile_spans_are_no_reason_to_refuse(suite):
    """Field note A12: a span that changes with every run is declared, and strict matching lets it pass."""
    source = """
import os

@pytest.mark.agent_latency(drift="strict")
def test_agent(url):
    loop(url, question=f"Where is order run-{os.environ['RUN']}?")
"""
    suite.ini("latency_volatile = run-[0-9]+")
    suite.setenv("RUN", "17")
    suite.written(source)
    suite.setenv("RUN", "4711")
    suite.run().assert_outcomes(passed=1)
    suite.ini()
    suite.run().assert_outcomes(failed=1)


def test_retries_of_the_recorded_run_are_not_asked_for_in_vain(suite):
    """More attempts than recorded have nothing to be answered with."""
    suite.written()
    suite.write("""
import httpx2

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    loop(url)
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["model call 4 makes a request once more that the cassette holds 1 time(s)."])

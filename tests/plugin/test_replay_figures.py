"""A replay's figures are the recording's, to the nanosecond, and cost no time."""

import json
import time
from dataclasses import asdict, replace

import pytest

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.testing import CostModel, FakeClock, Refuse, Reply, ToolUse
from tests.support.agents import searches

MS, S = 1_000_000, 1_000_000_000
KEEPS = """
import json
from pathlib import Path
from dataclasses import asdict

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    loop(url)
    turns = [
        {"phases": turn.details.phases, "ttft": turn.details.call.ttft, "decode": turn.details.call.decode,
         "gaps": turn.details.call.chunk_gaps, "milestones": asdict(turn.details.call.milestones),
         "context": turn.context_tokens, "output": turn.output_tokens}
        for turn in agent_run.turns
    ]
    Path("seen.json").write_text(json.dumps([agent_run.details.duration, turns]))
"""


def told(run):
    """The same figures of a run put together here."""
    turns = [
        {
            "phases": turn.phases,
            "ttft": turn.call.ttft,
            "decode": turn.call.decode,
            "gaps": turn.call.chunk_gaps,
            "milestones": asdict(turn.call.milestones),
            "context": turn.call.usage.context,
            "output": turn.call.usage.output,
        }
        for turn in run.turns
    ]
    return json.loads(json.dumps([run.duration, turns]))


def seen(suite):
    return json.loads((suite.path / "seen.json").read_text())


def test_every_nanosecond_is_the_recorded_one(suite):
    """Field note B23: time to first token is never ~0 by accident, it is what was recorded."""
    suite.serve(searches(4), costs=CostModel(fixed=3 * MS, decode=1 * MS))
    cassette = suite.written(KEEPS)
    recorded = told(assembly.assemble(store.load(cassette).recording))
    assert recorded[1][0]["ttft"] >= 3 * MS
    for _ in range(2):
        (suite.path / "seen.json").unlink()
        suite.run().assert_outcomes(passed=1)
        assert seen(suite) == recorded


def slowed(cassette, factor):
    """The cassette of the same run where everything took longer."""
    document = store.load(cassette)
    run = document.recording

    def scaled(value):
        if isinstance(value, tuple):
            return tuple(map(scaled, value))
        return value if value is None else value * factor

    attempts = tuple(
        replace(
            each,
            stamps=replace(
                each.stamps, **{name: scaled(getattr(each.stamps, name)) for name in each.stamps.__dataclass_fields__}
            ),
        )
        for each in run.attempts
    )
    calls = tuple(
        replace(each, entered=scaled(each.entered), returned=scaled(each.returned), backoffs=scaled(each.backoffs))
        for each in run.calls
    )
    slow = replace(run, attempts=attempts, calls=calls, bounds=scaled(run.bounds))
    store.save(cassette, Document(slow, document.others))
    return assembly.assemble(slow)


@pytest.mark.parametrize("agent", ["loop(url)", "asyncio.run(loop_async(url))"])
def test_a_run_of_minutes_replays_in_a_moment(suite, agent):
    """Field note E2: the recorded minute and a half is in the figures, not on the clock."""
    suite.serve(searches(6), costs=CostModel(fixed=1 * MS))
    source = KEEPS.replace("loop(url)", agent)
    cassette = suite.written(source)
    took = assembly.assemble(store.load(cassette).recording).duration
    slow = slowed(cassette, 90 * S // took + 1)
    assert slow.duration >= 90 * S
    before = time.monotonic()
    suite.run().assert_outcomes(passed=1)
    assert time.monotonic() - before < slow.duration / S / 4
    assert seen(suite) == told(slow)


@pytest.mark.parametrize("agent", ["loop(url)", "asyncio.run(loop_async(url))"])
def test_the_sdks_backoff_is_counted_and_not_slept(suite, monkeypatch, agent):
    """The SDK sleeps between attempts; a replay gives the recorded time to the figures and none to the reader."""
    suite.serve(searches(2), faults={1: Refuse(529, retry_after=150 * MS), 3: Refuse(429, retry_after=150 * MS)})
    suite.written(f"""
import time

@pytest.mark.agent_latency
@pytest.mark.latency_budget("retries at most 2", "retry time at least 0.3 s in total")
def test_agent(agent_run, url):
    {agent}
    assert agent_run.retries == 2
    assert agent_run.time("retry") >= 0.3
""")
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    suite.run().assert_outcomes(passed=1)
    assert slept == []


def test_a_replay_is_the_same_under_a_clock_that_is_frozen(suite, monkeypatch):
    """Field note B19: suites that freeze time break durations measured by the module's attribute."""
    cassette = suite.written(KEEPS)
    recorded = told(assembly.assemble(store.load(cassette).recording))
    frozen = FakeClock()
    for name in ("time", "time_ns", "perf_counter", "perf_counter_ns"):
        monkeypatch.setattr(time, name, frozen)
    suite.run("-p", "no:asyncio").assert_outcomes(passed=1)
    assert seen(suite) == recorded


def test_tools_of_a_loop_written_by_hand_are_in_the_figures(suite):
    suite.serve([Reply(tool_calls=[ToolUse("search", {"query": "a"})]), Reply("done")])
    suite.written("""
from tests.support.agents import answered, results
import anthropic
import time

@pytest.mark.agent_latency
@pytest.mark.latency_budget("tool 'search' time at least 20 ms in total")
def test_agent(agent_run, url):
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        messages = [{"role": "user", "content": "go"}]
        message = ask(client, messages)
        with agent_run.tool("search"):
            time.sleep(0.02)
        messages += [answered(message), results(message, "found")]
        ask(client, messages)
    assert agent_run.time("tool") >= 0.02
""")
    source = (suite.path / "test_agent.py").read_text()
    (suite.path / "test_agent.py").write_text(source.replace("time.sleep(0.02)", "pass"))
    suite.run().assert_outcomes(passed=1)

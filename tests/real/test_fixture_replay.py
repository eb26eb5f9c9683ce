"""The committed recordings of the ReAct agent on a real server, replayed by the plugin as a team would.

No server and no key: a budget that holds on one recording and breaks on another breaks for what the server did.
"""

import re
import shutil
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.cassette import store
from tests.support.suite import KEPT

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = ("test_prefix_cache_on", "test_prefix_cache_off", "test_clock_in_the_system_prompt")
BUDGET = """
import pytest
from agents.react import answer, clocked
from test_react_agent import QUESTION

@pytest.mark.agent_latency(cassette="test_react_agent/{name}")
@pytest.mark.latency_budget({phrase!r})
def test_budget(agent_run):
    assert answer(QUESTION, **{options})
"""
for module in ("anthropic", *KEPT):
    import_module(module)  # pytester forgets what its runs import first


@pytest.fixture
def team(pytester, monkeypatch):
    """The team's folder, and a function that replays one recording under one budget."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    shutil.copytree(FIXTURES, pytester.path, dirs_exist_ok=True)

    def judged(name, phrase):
        options = "{'system': clocked()}" if "clock" in name else "{}"
        source = BUDGET.format(name=name, phrase=phrase, options=options)
        (pytester.path / "test_budget.py").write_text(source, encoding="utf-8")
        return pytester.runpytest_inprocess("test_budget.py", "-p", "no:randomly")

    pytester.judged = judged
    return pytester


def recorded(name):
    document = store.load(FIXTURES / "cassettes" / "test_react_agent" / f"{name}.yaml")
    return assembly.assemble(document.recording)


def test_the_teams_own_tests_pass_offline(team):
    result = team.runpytest_inprocess("-p", "no:randomly", "--latency-drift=strict")
    result.assert_outcomes(passed=len(NAMES))
    assert "3 replayed" in result.stdout.str()


def test_the_share_of_prefill_breaks_its_budget_without_a_prefix_cache(team):
    """The user's own sentence, kept by the same agent on a server that caches."""
    result = team.judged("test_prefix_cache_off", "prefill share under 50% at turn 6")
    result.assert_outcomes(failed=1)
    share = 100 * recorded("test_prefix_cache_off").turn(6).share("prefill")
    assert f"{share:.0f}% prefill at turn 6, budget 50%" in result.stdout.str()
    team.judged("test_prefix_cache_on", "prefill share under 50% at turn 6").assert_outcomes(passed=1)


def test_a_clock_in_the_system_prompt_is_named_as_what_breaks_the_prefix(team):
    result = team.judged("test_clock_in_the_system_prompt", "prefix stable")
    result.assert_outcomes(failed=1)
    assert "system" in result.stdout.str()
    team.judged("test_prefix_cache_on", "prefix stable").assert_outcomes(passed=1)


@pytest.mark.parametrize("name", NAMES)
def test_context_grows_past_4k(name):
    turns = recorded(name).turns
    assert len(turns) >= 6
    assert turns[0].call.usage.context < 1000
    assert turns[-1].call.usage.context > 4000


def test_a_cache_of_use_reads_all_but_what_is_new():
    turns = recorded("test_prefix_cache_on").turns
    for before, after in pairwise(turns):
        assert after.call.usage.cache_read >= before.call.usage.context
    assert all(turn.call.usage.cache_read < 16 for turn in recorded("test_clock_in_the_system_prompt").turns)
    assert not any(turn.call.usage.cache_read for turn in recorded("test_prefix_cache_off").turns)


def test_prefill_costs_less_the_more_is_cached():
    """From the third turn on at the latest: before it there is little to read."""
    on, off = recorded("test_prefix_cache_on"), recorded("test_prefix_cache_off")
    for with_cache, without in zip(on.turns[3:], off.turns[3:], strict=True):
        assert with_cache.share("prefill") < without.share("prefill")


@pytest.mark.parametrize("name", NAMES)
def test_every_nanosecond_is_in_one_phase(name):
    run = recorded(name)
    assert sum(run.phases.values()) == run.duration
    assert all(sum(turn.phases.values()) == turn.duration for turn in run.turns)
    assert run.time("unsplit") == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_phases_lie_between_the_events_of_this_server(name):
    """Headers when prefill starts, first event with the first token, last event when the last token is generated."""
    for turn in recorded(name).turns:
        at, stamps = turn.call.milestones, turn.call.attempts[-1].stamps
        assert turn.time("prefill") == at.first_event - max(at.headers, at.sent)
        assert turn.time("decode") == stamps.arrived[-1] - at.first_event
        assert stamps.arrived[-1] > at.last_token


@pytest.mark.parametrize("name", NAMES)
def test_the_recording_names_no_machine(name):
    text = (FIXTURES / "cassettes" / "test_react_agent" / f"{name}.yaml").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|usr|var|work|Users)/|\.gguf|[A-Z]:\\", text)
    assert set(re.findall(r"uri: (\S+?):\d+/", text)) == {"http://127.0.0.1"}

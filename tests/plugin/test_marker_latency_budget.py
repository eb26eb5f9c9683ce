"""`@pytest.mark.latency_budget("...", ...)`: phrases, read at collection and judged after the body."""

import pytest

from pytest_agentlatency.testing import Reply
from tests.support.agents import searches

USAGE = pytest.ExitCode.USAGE_ERROR


def budgeted(*phrases, body='    assert loop(url) == "It was found."'):
    marker = f"@pytest.mark.latency_budget({', '.join(map(repr, phrases))})"
    return f"@pytest.mark.agent_latency\n{marker}\ndef test_agent(agent_run, url):\n{body}\n"


def test_the_two_sentences_that_the_user_asked_for(suite):
    """To the letter."""

    suite.serve(searches(7))
    suite.written(budgeted("prefill share under 50% at turn 6", "context growth is linear"))
    result = suite.run("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["budgets: 2 kept"])


def test_a_phrase_that_does_not_parse_points_at_the_word(suite):
    suite.write(budgeted("prefil share under 50% at turn 6"))
    result = suite.run("--latency-mode=record")
    assert result.ret == USAGE
    result.stderr.fnmatch_lines([
        "*test_agent.py::test_agent: not a latency budget: 'prefil share under 50% at turn 6'",
        "  prefil share under 50% at turn 6",
        "  ^^^^^^",
        "  did you mean 'prefill share under 50% at turn 6'?",
    ])  # fmt: skip
    assert suite.received == 0


def test_a_bad_phrase_stops_the_whole_session(suite):
    """A usage error at collection: no test is run before somebody mends it."""
    suite.write(budgeted("turns at most many") + "\ndef test_other(): print('the other body')\n")
    result = suite.run("-s")
    assert result.ret == USAGE
    result.stdout.no_fnmatch_line("*the other body*")


@pytest.mark.parametrize(
    ("arguments", "found"), [("", "none"), ("limit='turns at most 8'", "limit=..."), ("8", "8"), ("['a']", "['a']")]
)
def test_what_is_no_phrase_is_refused(suite, arguments, found):
    suite.write(f"@pytest.mark.agent_latency\n@pytest.mark.latency_budget({arguments})\ndef test_agent(url): pass")
    result = suite.run()
    assert result.ret == USAGE
    told = result.stderr.str()
    assert "test_agent.py::test_agent: latency_budget takes phrases, as strings; found " + found in told


def test_without_a_run_to_judge_it_is_refused(suite):
    suite.write('@pytest.mark.latency_budget("turns at most 8")\ndef test_agent(): pass')
    result = suite.run()
    assert result.ret == USAGE
    result.stderr.fnmatch_lines(["*test_agent.py::test_agent: a latency_budget needs a run to judge.*agent_latency*"])


def test_budgets_of_module_class_and_test_are_all_judged(suite):
    suite.written("""
pytestmark = [pytest.mark.agent_latency, pytest.mark.latency_budget("turns at most 8")]

@pytest.mark.latency_budget("calls at most 8")
class TestSupport:
    @pytest.mark.latency_budget("retries at most 0", "output tokens at most 1k in total")
    def test_agent(self, url):
        loop(url)
""")
    suite.run().stdout.fnmatch_lines(["budgets: 4 kept"])


def test_a_broken_budget_fails_the_replay(suite):
    suite.written()
    suite.write(budgeted("turns at most 2"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["3 turns, budget 2"])


def test_the_limit_itself_is_kept(suite):
    """Field note E9: inclusive, whatever the word."""
    suite.written(budgeted("turns under 3", "turns < 3", "turns <= 3", "turns at most 3"))
    suite.run().stdout.fnmatch_lines(["budgets: 4 kept"])


def test_a_turn_that_the_run_does_not_have_is_said(suite):
    suite.written()
    suite.write(budgeted("ttft under 10 s at turn 6"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no turn 6: the run has 3 turns*"])


def test_what_was_not_measured_is_not_kept(suite):
    """A call that isn't streamed has no time to first token: the budget fails, and says why."""
    body = """\
    import anthropic
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])"""

    suite.serve(Reply("hello"))
    suite.write(budgeted("ttft under 10 s at turn 1", body=body))
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not measured*", "*not streamed*"])


def test_a_budget_that_wants_measured_figures_is_kept_live_and_never_by_a_replay(suite):
    """Field note E2: recording measures, too."""
    suite.written(budgeted("measured total at least 0 ms", "measured turns at most 3"))
    suite.run("--latency-mode=live").assert_outcomes(passed=1)
    result = suite.run("--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "not measured but replayed: total (+1 more)",
        "'measured turns at most 3': not measured but replayed: turns",
        "next step: run it with --latency-mode=live, *",
        "not measured  measured total at least 0 ms: * (replayed)*",
        "budgets: 2 not measured",
    ])  # fmt: skip
    assert "not measured but replayed: total" in (suite.path / "junit.xml").read_text()


@pytest.mark.parametrize("scope", ["in lane 2", "at turn 1 in lane 2"])
def test_a_lane_that_the_run_does_not_have_is_said(suite, scope):
    suite.written()
    suite.write(budgeted(f"output tokens at most 1k {scope}"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no lane 2: the run has 1 lane"])


def test_too_few_turns_for_a_growth_law_are_no_failure_unless_asked(suite):
    suite.written(budgeted("context growth is linear"))
    suite.run().assert_outcomes(passed=1)
    suite.ini("latency_strict_growth = true")
    suite.run().assert_outcomes(failed=1)


def test_the_tests_own_failure_is_never_masked(suite):
    suite.written()
    suite.write(budgeted("turns at most 2", body='    assert loop(url) == "Something else."'))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *assert 'It was found.' == 'Something else.'", "*3 turns, budget 2*"])
    result.stdout.fnmatch_lines(["FAILED test_agent.py::test_agent - *assert 'It was found.' ==*"])


def test_xfail_takes_a_broken_budget(suite):
    suite.written()
    suite.write("@pytest.mark.xfail(reason='slow')\n" + budgeted("turns at most 2"))
    suite.run().assert_outcomes(xfailed=1)


def test_a_strict_xfail_whose_budget_is_kept_fails(suite):
    suite.written()
    suite.write("@pytest.mark.xfail(strict=True)\n" + budgeted("turns at most 3"))
    suite.run().assert_outcomes(failed=1)

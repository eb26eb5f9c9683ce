"""A marked test that has no budget and reads no figure: named with budgets to paste, or, where asked for, a failure."""

import re

import pytest

from tests.support.suite import AGENT

FIGURE = """
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url) == "It was found."
    assert {figure}
"""
REQUIRED = "--latency-require-budget"


def pasted(result):
    """The marker that was suggested, in front of the test."""
    (block,) = re.findall(r"^ *@pytest.mark.latency_budget\(\n(?: +\".*\",\n)+ *\)$", result.stdout.str(), re.MULTILINE)
    return "\n" + re.sub("^ {4}", "", block, flags=re.MULTILINE) + AGENT


@pytest.mark.parametrize("mode", ["record", "replay", "live"])
def test_it_passes_and_the_summary_names_it_with_budgets_that_it_keeps(suite, mode):
    """Field note E7."""
    suite.written()
    result = suite.run(f"--latency-mode={mode}")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "1 test without a budget: test_agent.py::test_agent",
        "it would keep:",
        "    @pytest.mark.latency_budget(",
        '        "turns at most 4",',
        '        "context tokens under * at every turn",',
        '        "prefix stable",',
        "    )",
    ])  # fmt: skip


def test_where_budgets_are_required_it_fails_with_the_block_to_paste(suite):
    """Field note E7: delete the budget, and the suite is red; what is suggested makes it green."""
    suite.written()
    result = suite.run(REQUIRED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "no latency budget: nothing guards this test",
        "    @pytest.mark.latency_budget(",
        "FAILED test_agent.py::test_agent - Failed: no latency budget: nothing guar*",
    ])  # fmt: skip
    suite.write(pasted(suite.run()))
    result = suite.run(REQUIRED)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["budgets: * kept*"])
    result.stdout.no_fnmatch_line("*without a budget*")


def test_it_can_be_required_in_the_ini_file(suite):
    suite.written()
    suite.ini("latency_require_budget = true")
    suite.run().assert_outcomes(failed=1)
    suite.run("--latency-mode=live").assert_outcomes(failed=1)


def test_a_recording_is_kept_all_the_same(suite):
    """Budgets are chosen from what was recorded."""
    suite.write()
    suite.record(REQUIRED)
    assert suite.files() == ["test_agent/test_agent.yaml"]


@pytest.mark.parametrize(
    "figure",
    [
        "agent_run.turn(2).context_tokens < 20_000",
        "agent_run.calls == 3",
        "agent_run.growth().law",
        "agent_run.details",
    ],
)
def test_a_test_that_reads_a_figure_guards_itself(suite, figure):
    suite.written(FIGURE.format(figure=figure))
    result = suite.run(REQUIRED)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*without a budget*")


def test_a_stamp_is_no_guard(suite):
    suite.written(FIGURE.format(figure="agent_run.delivered() is None"))
    suite.run(REQUIRED).assert_outcomes(failed=1)


def test_the_tests_own_failure_is_not_masked(suite):
    suite.written()
    suite.write(AGENT.replace("It was found.", "Something else."))
    result = suite.run(REQUIRED)
    result.stdout.fnmatch_lines(["*AssertionError*"])
    result.stdout.no_fnmatch_line("*latency budget*")


def test_of_several_the_first_by_name_is_shown_in_workers_too(suite):
    suite.written(AGENT + AGENT.replace("test_agent", "test_again") + AGENT.replace("test_agent", "test_third"))
    for options in ((), ("-n2",)):
        suite.run(*options).stdout.fnmatch_lines([
            "3 tests without a budget: *::test_again, *::test_agent, *::test_third",
            "the first would keep:",
        ])  # fmt: skip

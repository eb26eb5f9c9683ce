"""What a test leaves behind: a headline that survives, sections, properties, a summary."""

import re
import threading
from xml.etree import ElementTree as ET

import pytest

from tests.support.suite import AGENT

BUDGETED = """
@pytest.mark.latency_budget("turns at most {turns}", "output tokens at most 1k in total")
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url) == "It was found."
"""


def judged(suite, *options, turns=2):
    """A replay against a cassette of three turns."""
    suite.written()
    suite.write(BUDGETED.format(turns=turns))
    return suite.run(*options)


def told(result):
    """All that was printed, without how long pytest took."""
    return re.sub(r"in [0-9.]+s", "", "\n".join(result.outlines))


def test_the_first_line_survives_a_summary_of_80_columns(suite):
    result = judged(suite)
    result.stdout.fnmatch_lines(["FAILED test_agent.py::test_agent - Failed: 3 turns, budget 2"])
    long = [line for line in result.outlines if line.startswith("FAILED") and len(line) > 80]
    assert long == []


@pytest.mark.parametrize(
    "phrase",
    [
        "prefill share under 0.001% at turn 2",
        "context tokens under 7 at every turn",
        "ttft under 0.001 ms at turn 3",
        "total under 0.001 ms",
        "output tokens under 2 at turn 1",
        "ttft under 1 s at turn 9",
    ],
)
def test_headlines_have_at_most_60_characters(suite, phrase):
    suite.written()
    suite.write(AGENT.replace("@pytest", f"@pytest.mark.latency_budget({phrase!r})\n@pytest", 1))
    result = suite.run()
    result.assert_outcomes(failed=1)
    failure = result.outlines[next(n for n, line in enumerate(result.outlines) if "= FAILURES =" in line) + 2]
    assert 0 < len(failure) <= 60


def test_the_table_and_the_budgets_are_sections(suite):
    result = judged(suite)
    result.stdout.fnmatch_lines([
        "*- Captured latency: turns and phases call -*",
        "turn *total*prefill*decode*",
        " run *",
        "*- Captured latency: budgets call -*",
        "broken *turns at most 2: 3*",
        "kept *output tokens at most 1k in total: *headroom*",
    ])  # fmt: skip
    assert max(map(len, result.outlines)) <= 200


def test_a_failure_ends_with_one_next_step(suite):
    result = judged(suite)
    assert len([line for line in result.outlines if line.startswith("next step: ")]) == 1


def test_a_passing_test_is_quiet(suite):
    result = judged(suite, turns=3)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*turns and phases*")
    result.stdout.fnmatch_lines(
        ["*= agent latency =*", "1 run: 1 replayed", "budgets: 2 kept", "calls: 3 identical", "*1 passed*"]
    )
    result.stdout.no_fnmatch_line("*test_agent.py::test_agent: *")


def test_a_line_a_test_with_verbosity(suite):
    result = judged(suite, "-v", turns=3)
    result.stdout.fnmatch_lines(["  test_agent.py::test_agent: replayed, 3 turns, * ms, context *; 2 kept"])


def test_the_table_of_a_passing_test_can_be_asked_for(suite):
    judged(suite, "-rP", turns=3).stdout.fnmatch_lines(["*Captured latency: turns and phases call*"])


def test_a_session_without_marked_tests_says_nothing(suite):
    suite.write("def test_other(): pass")
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*latency*=*")
    result.stdout.no_fnmatch_line("*run: *")


def test_numbers_in_junits_file_are_the_replays(suite):
    judged(suite, "--junitxml=junit.xml", "-o", "junit_family=xunit2", turns=3)
    (case,) = ET.parse(suite.path / "junit.xml").iter("testcase")  # noqa: S314  # our own file
    found = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert found["agentlatency_turns"] == "3"
    assert found["agentlatency_provenance"] == "replayed"
    phases = [float(value) for name, value in found.items() if name.endswith("_ms") and "duration" not in name]
    assert sum(phases) == pytest.approx(float(found["agentlatency_duration_ms"]), abs=0.01)


def test_a_broken_budget_is_a_failure_in_junits_file(suite):
    judged(suite, "--junitxml=junit.xml")
    (case,) = ET.parse(suite.path / "junit.xml").iter("testcase")  # noqa: S314
    (failure,) = case.iter("failure")
    assert failure.get("message").startswith("Failed: 3 turns, budget 2")
    assert "agentlatency_turns" in [each.get("name") for each in case.iter("property")]


def test_no_time_is_shown_without_where_it_comes_from(suite):
    """Field note E2: a replayed figure says so."""
    result = judged(suite)
    result.stdout.fnmatch_lines(["times in *, replayed*"])
    suite.write(BUDGETED.format(turns=2))
    suite.run("--latency-mode=live").stdout.fnmatch_lines(["times in *, measured*"])


def test_the_same_replay_tells_the_same_twice(suite):
    """Field note E1: nothing in a report depends on this machine's speed."""
    assert told(judged(suite)) == told(suite.run())


def test_a_busy_machine_changes_no_figure_and_no_verdict(suite):
    """Field note E1: shared runners differ by a quarter, and so do gates on what their clocks show."""
    quiet, done = judged(suite), threading.Event()

    def burn():
        while not done.is_set():
            sum(range(1000))

    busy = [threading.Thread(target=burn) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        assert told(suite.run()) == told(quiet)
    finally:
        done.set()
        for thread in busy:
            thread.join()


def test_figures_on_agent_run_can_be_kept_as_a_ratchet(suite):
    """Plain rounded numbers."""
    suite.written()
    suite.write("""
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    loop(url)
    share = agent_run.turn(2).share("prefill")
    assert share == round(share, 3)
    assert agent_run.duration == round(agent_run.duration, 6)
    assert agent_run.growth().law in set(agent_run.growth().law.__class__)
    with pytest.raises(IndexError, match="no turn 4: lane 1 has 3 turn"):
        agent_run.turn(4)
    with pytest.raises(ValueError, match="'text' is not known: allowed are 'context', "):
        agent_run.growth("text")
""")
    suite.run().assert_outcomes(passed=1)


def test_a_test_that_is_run_again_is_counted_once(suite):
    """What pytest-rerunfailures and flaky do: the same item, once more."""
    suite.written()
    (suite.path / "conftest.py").write_text(
        (suite.path / "conftest.py").read_text()
        + """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""
    )
    result = suite.run("--junitxml=junit.xml", "-o", "junit_family=xunit2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 run: 1 replayed", "calls: 3 identical"])
    (case,) = ET.parse(suite.path / "junit.xml").iter("testcase")  # noqa: S314
    names = [each.get("name") for each in case.iter("property")]
    assert len(names) == len(set(names))
    suite.record()
    assert suite.files() == ["test_agent/test_agent.yaml"]

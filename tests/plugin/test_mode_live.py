"""`--latency-mode=live`: measures, and writes nothing."""

from pytest_agentlatency.testing import SlowHeaders
from tests.support.agents import searches

LIVE = """
@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most {turns}")
def test_agent(agent_run, url):
    assert loop(url) == "It was found."
    assert agent_run.turn(1).ttft > 0
"""


def test_it_measures_and_writes_nothing(suite):
    suite.write(LIVE.format(turns=3))
    result = suite.run("--latency-mode=live")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 run: 1 live"])
    assert suite.received == 3
    assert suite.files() == []


def test_budgets_are_judged(suite):
    suite.write(LIVE.format(turns=2))
    result = suite.run("--latency-mode=live")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["3 turns, budget 2"])
    assert suite.files() == []


def test_a_cassette_that_is_there_is_neither_used_nor_touched(suite):
    cassette = suite.written()
    before = cassette.read_bytes()
    suite.run("--latency-mode=live").assert_outcomes(passed=1)
    assert suite.received == 6
    assert cassette.read_bytes() == before
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_a_delay_of_the_server_turns_the_test_red(suite):
    """Field note B7: a gate that can't fail is none. A busy machine is later still, so 300 ms are never under 200."""
    suite.serve(searches(3), faults={3: SlowHeaders(300_000_000)})
    suite.write(LIVE.format(turns=3).replace('"turns', '"ttft under 200 ms at turn 3", "turns'))
    result = suite.run("--latency-mode=live")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["* ttft at turn 3, budget 200 ms"])


def test_an_agent_that_asks_the_model_thrice_for_one_question_breaks_a_budget_of_calls(suite):
    """Field note F5: calls that a framework makes on its own are counted like the agent's."""
    suite.write(LIVE.format(turns=3).replace('"turns at most 3"', '"calls at most 1"'))
    result = suite.run("--latency-mode=live")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["3 calls, budget 1"])


def test_a_time_budget_that_is_kept_by_little_is_told_when_it_is_measured_and_not_in_replays(suite):
    """Field note B26: of limits that go up by a twentieth each, some are kept with less than a fifth of room."""
    limits = [f"total under {0.5 * 1.05**step:.3f} ms" for step in range(220)]
    suite.write(LIVE.format(turns=3).replace('"turns at most 3"', ", ".join(map(repr, limits))))
    for mode in ("live", "record"):
        result = suite.run(f"--latency-mode={mode}")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([
            "kept *total under *, only *% of the figure: it may break*",
            "kept with little headroom, and measured: test_agent.py::test_agent ('total under * ms' by *%*",
        ])  # fmt: skip
    (rejected,) = suite.path.rglob("*.rejected")
    rejected.rename(rejected.with_suffix(""))
    suite.run().stdout.no_fnmatch_line("*little headroom*")

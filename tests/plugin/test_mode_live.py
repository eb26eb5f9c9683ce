"""`--latency-mode=live`: measures, and writes nothing."""

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

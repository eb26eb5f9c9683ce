"""`--latency-mode=replay`, the default: offline, from the cassette."""

import pytest


def test_without_a_cassette_the_test_fails_with_the_command_that_records_it(suite):
    """Field note A18: nothing is sent, and the message can be pasted into a shell."""
    suite.write()
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*no cassette to replay: *test_agent.yaml doesn't exist.*",
        "*    pytest test_agent.py::test_agent --latency-mode=record*",
    ])  # fmt: skip
    assert suite.received == 0
    assert suite.files() == []


def test_without_a_cassette_the_agent_is_not_even_started(suite):
    suite.write("""
@pytest.mark.agent_latency
def test_agent(agent_run):
    print("the agent runs")
""")
    result = suite.run("-rA")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*the agent runs*")


def test_without_a_cassette_a_fixture_that_calls_the_model_is_told_the_command_too(suite):
    """Set-up comes before the body, and there too the first thing said is what to do."""
    suite.write("""
@pytest.fixture
def answer(url):
    return loop(url)

@pytest.mark.agent_latency
def test_agent(answer):
    assert answer
""")
    result = suite.run()
    result.stdout.fnmatch_lines([
        "*no cassette to replay: *",
        "*    pytest test_agent.py::test_agent --latency-mode=record*",
    ])  # fmt: skip
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert suite.received == 0


def test_without_a_cassette_what_a_marker_or_a_fixture_skips_is_skipped(suite):
    suite.write("""
@pytest.fixture
def hardware():
    pytest.skip("there is none here")

@pytest.mark.agent_latency
def test_agent(hardware):
    pass

@pytest.mark.agent_latency
@pytest.mark.skipif(True, reason="not on this platform")
def test_other(agent_run):
    pass
""")
    suite.run().assert_outcomes(skipped=2)


def test_the_command_given_records_and_the_default_replays(suite):
    suite.write()
    suite.record("test_agent.py::test_agent")
    asked = suite.received
    assert asked == 3
    suite.run().assert_outcomes(passed=1)
    assert suite.received == asked


def test_a_marked_test_needs_no_fixture_argument(suite):
    suite.written("""
@pytest.mark.agent_latency
def test_agent(url):
    assert loop(url) == "It was found."
""")
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 3


def test_the_body_of_a_replayed_test_can_still_fail(suite):
    """Its own failure is what is shown."""
    suite.written()
    suite.write("""
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url) == "Something else."
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 'It was found.' == 'Something else.'*"])


def test_replaying_changes_nothing_on_disk(suite):
    cassette = suite.written()
    before = cassette.read_bytes(), cassette.stat().st_mtime_ns
    suite.run()
    assert (cassette.read_bytes(), cassette.stat().st_mtime_ns) == before
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_it_is_offline_when_the_model_is_gone(suite):
    """The URL may lead anywhere: nobody listens there any more."""
    suite.written()
    suite.model.__exit__(None, None, None)
    suite.run().assert_outcomes(passed=1)

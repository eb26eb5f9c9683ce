"""`--latency-mode=record`: calls the model, and replaces the cassette when the test passed."""

import pytest

from tests.support.suite import AGENT, interactions

FAILS = AGENT + '    assert False, "the body fails"\n'
BREAKS = AGENT.replace(
    "@pytest.mark.agent_latency\n", '@pytest.mark.agent_latency\n@pytest.mark.latency_budget("turns at most 2")\n'
)


def test_the_cassette_stands_beside_the_module(suite):
    """The layout of pytest-recording: cassettes/<module>/<test>.yaml."""
    suite.written()
    assert suite.files() == ["test_agent/test_agent.yaml"]
    assert len(interactions(suite.cassette())) == 3


def test_recording_twice_replaces(suite):
    """Field note A17: there is no append."""
    cassette = suite.written()
    first = cassette.read_bytes()
    suite.record()
    assert len(interactions(cassette)) == 3
    assert cassette.read_bytes() != first, "it was recorded at another time"


@pytest.mark.parametrize(("source", "said"), [(FAILS, "*the body fails*"), (BREAKS, "*3 turns, budget 2*")])
def test_a_failed_test_leaves_the_old_cassette_and_a_rejected_one(suite, source, said):
    """Field note A16."""
    cassette = suite.written()
    before = cassette.read_bytes()
    suite.write(source)
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])
    assert cassette.read_bytes() == before
    assert suite.files() == ["test_agent/test_agent.yaml", "test_agent/test_agent.yaml.rejected"]
    assert len(interactions(cassette.with_name("test_agent.yaml.rejected"))) == 3


def test_a_rejected_recording_is_no_cassette(suite):
    """The next replay says that there is one, and does not use it."""
    suite.write(FAILS)
    suite.run("--latency-mode=record")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no cassette to replay*", "*A recording that was rejected is at *.rejected*"])


def test_a_broken_budget_says_where_the_recording_went(suite):
    suite.write(BREAKS)
    result = suite.run("--latency-mode=record")
    result.stdout.fnmatch_lines(["*the recording was not kept: it is at *test_agent.yaml.rejected*"])


def test_a_later_success_takes_the_place_of_what_was_there(suite):
    suite.write(FAILS)
    suite.run("--latency-mode=record")
    suite.written()
    assert "test_agent/test_agent.yaml" in suite.files()
    suite.run().assert_outcomes(passed=1)


def test_a_test_that_calls_no_model_fails_and_writes_nothing(suite):
    suite.write("""
@pytest.mark.agent_latency
def test_agent(agent_run):
    pass
""")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no model call was observed during the test.*"])
    assert suite.files() == []


def test_a_skipped_test_is_skipped_and_writes_nothing(suite):
    suite.write("""
@pytest.mark.agent_latency
def test_agent(agent_run):
    pytest.skip("not today")
""")
    suite.run("--latency-mode=record").assert_outcomes(skipped=1)
    assert suite.files() == []


SKIPS = """
import unittest

@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 2")
def test_agent(agent_run, url):
    loop(url)
    raise {}("the model can't do it")
"""


@pytest.mark.parametrize("skip", ["pytest.skip.Exception", "unittest.SkipTest"])
def test_a_test_that_skips_after_a_model_call_is_skipped_and_writes_nothing(suite, skip):
    """Neither a cassette nor a rejected one, and no word of budgets."""
    suite.write(SKIPS.format(skip))
    result = suite.run("--latency-mode=record", "-rA")
    result.assert_outcomes(skipped=1)
    assert suite.received == 3
    assert suite.files() == []
    result.stdout.no_fnmatch_line("*agent latency*")


def test_a_test_that_skips_leaves_the_old_cassette_and_is_skipped_in_its_replay_too(suite):
    cassette = suite.written()
    before = cassette.read_bytes()
    suite.write(SKIPS.format("pytest.skip.Exception"))
    suite.run("--latency-mode=record").assert_outcomes(skipped=1)
    assert cassette.read_bytes() == before
    asked = suite.received
    suite.run("--latency-update").assert_outcomes(skipped=1)
    assert suite.received == asked
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_what_a_skipped_tests_fixtures_ask_afterwards_is_no_error(suite):
    suite.write("""
@pytest.fixture
def last_words(url):
    yield
    loop(url, question="Any last words?")

@pytest.mark.agent_latency
def test_agent(last_words, url):
    loop(url)
    pytest.skip("not today")
""")
    suite.run("--latency-mode=record").assert_outcomes(skipped=1)
    assert suite.files() == []


def test_a_set_up_that_fails_keeps_the_old_cassette(suite):
    cassette = suite.written()
    before = cassette.read_bytes()
    suite.write("""
@pytest.fixture
def answer(url):
    loop(url)
    raise ValueError("set-up fails")

@pytest.mark.agent_latency
def test_agent(answer):
    pass
""")
    suite.run("--latency-mode=record").assert_outcomes(errors=1)
    assert cassette.read_bytes() == before
    assert suite.files() == ["test_agent/test_agent.yaml"]


def test_what_a_fixture_asks_the_model_belongs_to_the_run(suite):
    suite.written("""
@pytest.fixture
def answer(url):
    return loop(url, question="From a fixture")

@pytest.mark.agent_latency
def test_agent(answer, url):
    assert loop(url, question="From the body") == answer
""")
    assert len(interactions(suite.cassette())) == 6
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 6


def test_a_model_that_fails_for_good_is_told_as_the_agent_tells_it(suite):
    """The exception is the agent's own; the recording is kept for reading."""
    suite.write()
    suite.serve([])
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*BadRequestError*"])
    assert suite.files() == ["test_agent/test_agent.yaml.rejected"]


def test_a_disk_that_is_full_fails_the_test_in_one_line_and_leaves_the_cassette(suite):
    before = suite.written().read_bytes()
    suite.write("""
import os

@pytest.mark.agent_latency
def test_agent(agent_run, url, monkeypatch):
    assert loop(url) == "It was found."

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
""")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not recorded: *test_agent.yaml: can't be written: No space left on device; *"])
    result.stdout.no_fnmatch_line("*Error:*")
    assert suite.cassette().read_bytes() == before

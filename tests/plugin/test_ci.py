"""Under CI nothing calls the model by accident; `--latency-allow-live` says that it is none."""

import pytest

USAGE = pytest.ExitCode.USAGE_ERROR
MARKED = """
@pytest.mark.agent_latency(mode="{mode}")
def test_agent(url):
    loop(url)
"""


@pytest.fixture(params=["record", "once", "live"])
def mode(request, monkeypatch, suite):
    monkeypatch.setenv("CI", "1")
    return request.param


def refused(result, source):
    assert result.ret == USAGE
    told = result.stderr.str() + result.stdout.str()
    assert f"(from {source}) is refused because CI is set" in told
    assert "--latency-allow-live" in told


def test_a_mode_from_the_command_line_is_refused(suite, mode):
    suite.write()
    refused(suite.run(f"--latency-mode={mode}"), "--latency-mode")
    assert suite.received == 0


def test_a_mode_from_the_ini_file_is_refused(suite, mode):
    suite.ini(f"latency_mode = {mode}")
    suite.write()
    refused(suite.run(), "ini value latency_mode")
    assert suite.received == 0


def test_a_mode_from_a_marker_is_refused_and_the_test_is_named(suite, mode):
    suite.write(MARKED.format(mode=mode))
    result = suite.run()
    refused(result, "marker agent_latency")
    result.stderr.fnmatch_lines(["*test_agent.py::test_agent: mode *"])
    assert suite.received == 0


def test_it_is_allowed_by_a_flag(suite, mode):
    """The flag is for whoever means it, on the command line; no ini value has this power."""
    suite.write()
    suite.run(f"--latency-mode={mode}", "--latency-allow-live").assert_outcomes(passed=1)
    assert suite.received == 3


def test_replaying_is_what_ci_is_for(suite, monkeypatch):
    suite.written()
    monkeypatch.setenv("CI", "true")
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 3


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_a_ci_variable_that_says_no_means_no(suite, monkeypatch, value):
    monkeypatch.setenv("CI", value)
    suite.write()
    suite.run("--latency-mode=record").assert_outcomes(passed=1)


def test_the_command_line_can_overrule_a_mode_that_ci_refuses(suite, monkeypatch):
    suite.ini("latency_mode = once")
    suite.written()
    monkeypatch.setenv("CI", "1")
    suite.run("--latency-mode=replay").assert_outcomes(passed=1)

"""`--latency-update` and `--latency-loosen`: accepting what a changed agent costs."""

import json

import pytest

from tests.support.prose import prose

AGENT = """
from tests.support.prose import prose

@pytest.mark.agent_latency
@pytest.mark.latency_budget("context tokens under 5k at every turn", "turns at most 8")
def test_agent(url):
    assert loop(url, system=prose({size}))
"""


@pytest.fixture
def recorded(suite):
    suite.written(AGENT.format(size=1000))
    return suite


def change(suite, size: int) -> None:
    assert prose(size)
    suite.write(AGENT.format(size=size))


def accepted(suite) -> dict:
    return json.loads((suite.path / "cassettes" / "test_agent" / "test_agent.accepted.json").read_text())


def test_what_is_better_is_accepted_and_shown_old_and_new(recorded):
    change(recorded, 500)
    result = recorded.run("--latency-update", "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "*context tokens under 5k at every turn: 1,0* -> ~*",
        "*turns at most 8: 3 -> 3*",
        "*marked as re-timed until it is recorded again*",
        "*accepted re-timed, not recorded again: test_agent.py::test_agent*",
    ])  # fmt: skip
    figures = accepted(recorded)
    assert figures["retimed"] is True
    assert set(figures["figures"]) == {"context tokens under 5k at every turn", "turns at most 8"}


def test_what_is_worse_is_refused_and_nothing_is_written(recorded):
    """Field note E7: an update never loosens in silence."""
    change(recorded, 1500)
    result = recorded.run("--latency-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*refused to loosen: context tokens*", "*--latency-loosen accepts what is worse*"])
    assert not (recorded.path / "cassettes" / "test_agent" / "test_agent.accepted.json").exists()


def test_what_is_worse_is_accepted_by_name(recorded):
    change(recorded, 1500)
    result = recorded.run("--latency-loosen", "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*context tokens under 5k at every turn: 1,0* -> ~1,*, worse*"])
    recorded.run().assert_outcomes(passed=1)


def test_accepted_figures_are_a_ratchet(recorded):
    change(recorded, 500)
    recorded.run("--latency-update")
    change(recorded, 800)
    result = recorded.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*worse than accepted: context tokens*"])


def test_a_broken_budget_is_not_accepted(recorded):
    change(recorded, 6000)
    result = recorded.run("--latency-loosen", "-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not accepted: a budget is broken, and its limit stands in the test*"])


def test_without_a_change_the_recording_is_accepted_and_not_marked(recorded):
    recorded.run("--latency-update").assert_outcomes(passed=1)
    assert accepted(recorded)["retimed"] is False
    recorded.run().assert_outcomes(passed=1)


def test_a_file_that_is_none_fails_and_is_named(recorded):
    recorded.run("--latency-update")
    (recorded.path / "cassettes" / "test_agent" / "test_agent.accepted.json").write_text("[]")
    result = recorded.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*accepted figures *test_agent.accepted.json can't be used: *"])


def test_without_the_option_nothing_is_written(recorded):
    recorded.run().assert_outcomes(passed=1)
    assert recorded.files() == ["test_agent/test_agent.yaml"]


def test_recorded_again_the_accepted_figures_are_void_and_it_is_said(recorded):
    change(recorded, 500)
    recorded.run("--latency-update")
    path = recorded.path / "cassettes" / "test_agent" / "test_agent.accepted.json"
    path.write_text(path.read_text().replace('"recorded": "20', '"recorded": "19'))
    change(recorded, 1000)
    result = recorded.run("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*accepted figures are of an earlier recording: accept again with --latency-update*"])

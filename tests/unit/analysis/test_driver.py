"""Field note F9: which phase makes turns slower, by Theil-Sen slopes that can be worked out by hand."""

from dataclasses import replace

import pytest

from pytest_agentlatency.analysis.driver import driver
from pytest_agentlatency.model.provenance import Provenance
from tests.support.plain_runs import laid_out


def lane(*turns):
    return laid_out(*turns).turns


@pytest.mark.parametrize("phase", ["prefill", "tool", "overhead", "retry"])
def test_the_phase_that_rises_is_named(phase):
    turns = lane(*[[(phase, 100 + 300 * n), ("decode", 400 + 100 * n)] for n in range(5)])
    assert driver(turns) == f"driven by {phase}: +300 ms of +400 ms a turn"


def test_a_phase_that_falls_is_no_driver_and_takes_off_the_whole():
    turns = lane(*[[("prefill", 100 + 300 * n), ("tool", 900 - 100 * n)] for n in range(5)])
    assert driver(turns) == "driven by prefill: +300 ms of +200 ms a turn"


def test_no_phase_drives_what_three_share():
    turns = lane(*[[("prefill", 30 + 40 * n), ("decode", 30 + 20 * n), ("tool", 9 + 30 * n)] for n in range(5)])
    assert driver(turns) == "driven by no single phase: prefill +40 ms, tool +30 ms, decode +20 ms of +90 ms a turn"


def test_one_slow_tool_is_no_slope():
    times = [100, 100, 5000, 100, 100, 100]
    turns = lane(*[[("prefill", 100 + 50 * n), ("tool", time)] for n, time in enumerate(times)])
    assert driver(turns) == "driven by prefill: +50 ms of +50 ms a turn"


def test_turns_before_and_after_a_compaction_are_not_compared():
    """The turn time falls at turn 4; in both stretches it rises by 100 ms a turn."""
    prefills = [400, 500, 600, 100, 200, 300]
    turns = lane(*[[("prefill", time), ("decode", 50)] for time in prefills])
    assert driver(turns, cuts=[4]) == "driven by prefill: +100 ms of +100 ms a turn"
    assert driver(turns) == ""


def test_without_times_nothing_is_said():
    turns = [replace(each, start=None, end=None) for each in lane(*[[("prefill", 100 * n)] for n in range(1, 6)])]
    assert driver(turns) == ""
    assert driver([]) == ""


def test_steady_turns_have_no_driver():
    assert driver(lane(*[[("prefill", 100), ("tool", 50)]] * 5)) == ""


def test_calls_that_are_never_split_are_driven_by_what_they_are():
    turns = lane(*[[("unsplit", 100 * n), ("tool", 50)] for n in range(1, 6)])
    assert driver(turns) == "driven by unsplit: +100 ms of +100 ms a turn"


def test_of_calls_that_are_only_sometimes_split_nothing_is_said():
    """Prefill is unknown at some turns, and `unsplit` is 0 at the others: neither is a series."""
    turns = lane(*[[("unsplit" if n % 2 else "prefill", 100 * n), ("tool", 50)] for n in range(1, 7)])
    assert driver(turns) == ""


def test_projected_times_give_a_projected_slope():
    turns = [replace(each, provenance=Provenance.PROJECTED) for each in lane(*[[("prefill", 100 * n)] for n in (1, 2)])]
    assert driver(turns) == "driven by prefill: +~100 ms of +~100 ms a turn"

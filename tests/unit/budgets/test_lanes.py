"""Budgets of one lane: judged on that lane's turns, and on nothing where there is no such lane."""

from dataclasses import replace

import pytest

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.budgets.analyses import figures
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.lanes import like, only
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import HEADLINE, Judgement, Ruling
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.testing.builders import recording, tool, turn
from tests.support.plain_runs import MS

SUB = [turn(500, 30, prefill_ms=50, decode_ms=150, tool_ms=20), turn(700, 40, prefill_ms=50, decode_ms=150)]
RECORDED = recording([turn(2000, 60, tools=(tool("ask", 10, turns=SUB),)), turn(9000, 70)], tools=["ask", "map"])
READINGS = assembly.read(RECORDED)
RUN = assembly.from_readings(READINGS, RECORDED, provenance=Provenance.REPLAYED)
FIGURES = figures(RUN, {each.call.record.id: each.prompt for each in READINGS}, counter("chars"))


def verdict(text: str, run: Run = RUN) -> Judgement:
    return judge(parse(text), run, FIGURES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("turns at most 9", 2),
        ("turns at most 9 in lane 2", 2),
        ("calls at most 9", 4),
        ("calls at most 9 in lane 2", 2),
        ("output tokens under 9k", 200),
        ("output tokens under 9k in lane 2", 70),
        ("output tokens under 9k in total in lane 1", 130),
        ("context tokens under 90k at turn 2", 9000),
        ("context tokens under 90k at turn 2 in lane 2", 700),
        ("context tokens under 90k in lane 2", 700),
        ("prefill time under 9 s in lane 2", 100 * MS),
        ("tool time under 9 s in lane 2", 20 * MS),
        ("total under 9 s in lane 2", 420 * MS),
        ("largest step under 90k", 7000),
        ("largest step under 90k in lane 2", 200),
        ("re-read cost under 90k in lane 2", 500),
        ("unused tools at most 9 in lane 1", 1),
    ],
)
def test_a_figure_is_that_of_the_lane_that_is_named(text: str, value: float):
    judgement = verdict(text)
    assert judgement.ruling is Ruling.KEPT
    assert judgement.point is not None
    assert judgement.point.figure.value == value


def test_tool_results_are_those_that_the_lane_was_given():
    main, sub = verdict("tool results at least 0"), verdict("tool results at least 0 in lane 2")
    assert main.point is not None
    assert sub.point is not None
    assert 0 < (sub.point.figure.value or 0) <= 200 < (main.point.figure.value or 0)


def test_a_broken_budget_says_in_which_lane():
    judgement = verdict("context tokens under 600 at every turn in lane 2")
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "700 context tokens at turn 2 in lane 2, budget 600"
    assert "context by turn: 500  700" in judgement.overrun.evidence


@pytest.mark.parametrize(
    "text",
    [
        "turns at most 9 in lane 3",
        "context tokens under 90k at every turn in lane 3",
        "context growth is linear in lane 3",
        "prefix stable in lane 3",
    ],
)
def test_a_lane_that_the_run_does_not_have_is_no_budget_kept(text: str):
    judgement = verdict(text)
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.fails
    assert judgement.reason == "no lane 3: the run has 2 lanes"
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "no lane 3: the run has 2 lanes"


def test_a_turn_that_the_lane_does_not_have_is_said():
    assert verdict("ttft under 9 s at turn 4 in lane 2").reason == "no turn 4: the run has 2 turns"


def test_growth_and_prefix_of_one_lane():
    assert verdict("prefix stable in lane 2").ruling is Ruling.KEPT
    assert verdict("context growth is linear in lane 2").ruling is Ruling.INCONCLUSIVE
    steps = [turn(500 + 100 * n * n, 30, tool_ms=1 if n < 7 else None) for n in range(8)]
    grown = recording([turn(2000, tools=(tool("ask", 10, turns=steps),)), turn(9000)])
    run = assembly.assemble(grown)
    judgement = judge(parse("context growth is linear in lane 2"), run)
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert judgement.overrun.headline.endswith("context growth in lane 2, budget linear")


def test_a_run_cut_short_is_no_improvement_in_any_lane():
    judgement = verdict("output tokens under 9k in lane 2", replace(RUN, recorded_turns=6))
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.reason.startswith("the run made 4 of 6 recorded turns")
    assert verdict("turns at most 9 in lane 2", replace(RUN, recorded_turns=6)).ruling is Ruling.KEPT


def test_a_lanes_phases_sum_to_its_time():
    lane = only(RUN, 2)
    assert lane is not None
    assert sum(lane.phases.values()) == lane.duration
    assert lane.duration == sum(each.duration or 0 for each in RUN.lanes[1].turns)


def test_a_run_that_begins_before_the_first_call_is_told_from_its_only_lane():
    """A tool that ran before the first call is the run's time, and not the lane's."""
    lane = only(RUN, 2)
    assert lane is not None
    whole = replace(lane, start=lane.start - 9 * MS)
    assert like(whole, lane, whole) == lane
    assert like(whole, whole, whole) is whole


def test_the_same_lane_of_another_run_is_found():
    lane = only(RUN, 2)
    assert lane is not None
    assert like(RUN, lane, RUN) == lane
    assert like(RUN, RUN, RUN) is RUN
    assert only(RUN, 3) is None
    assert all(
        len(each.overrun.headline) <= HEADLINE for each in [verdict("total under 1 ms in lane 2")] if each.overrun
    )

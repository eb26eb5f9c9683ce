"""The budgets that runs would keep."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.budgets import suggest
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.headroom import Seen
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Ruling
from pytest_agentlatency.model.run import Lane, Run
from tests.support.plain_runs import grown, run_of, turn, usage
from tests.support.run_strategies import a_few, runs


def suggested(*seen: Run) -> list[str]:
    return [each.phrase.text for each in suggest.suggested([Seen(run, Figures()) for run in seen])]


def test_counts_come_first_and_times_last():
    assert suggested(grown(*range(1000, 7000, 1000))) == [
        "turns at most 8",
        "context tokens under 7,200 at every turn",
        "context growth is linear",
        "ttft under 750 ms at every turn",
        "total under 9 s",
    ]


def test_limits_are_set_by_the_largest_of_several_runs():
    assert suggested(grown(1000), grown(1000, 2000, 2001))[:2] == [
        "turns at most 4",
        "context tokens under 2,500 at every turn",
    ]


def test_calls_are_limited_where_there_are_sub_agents():
    main, side = turn(1), turn(1, lane=2, at=1000)
    assert "calls at most 3" in suggested(run_of(main, lanes=(Lane(1, (main,)), Lane(2, (side,)))))


def test_what_one_run_does_not_know_is_not_suggested():
    assert suggested(grown(1000), run_of(turn(1, used=usage(None)))) == [
        "turns at most 2",
        "ttft under 750 ms at every turn",
        "total under 1.5 s",
    ]


def test_a_run_without_turns_is_suggested_nothing():
    assert suggested(Run()) == []


@a_few
@given(st.lists(runs(), min_size=1, max_size=3))
def test_whatever_is_suggested_can_be_read_and_is_kept_by_every_run(seen: list[Run]):
    for each in suggest.suggested([Seen(run, Figures()) for run in seen]):
        assert parse(each.phrase.text) == each.phrase
        assert {judgement.ruling for judgement in each.judgements} == {Ruling.KEPT}
        assert not each.is_little


@given(st.floats(1, 10**13))
def test_a_limit_is_rounded_up_by_less_than_a_tenth(value: float):
    assert value <= suggest._up(value) < 1.1 * value + 1

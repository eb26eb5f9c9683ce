"""Accepted figures: what counts as worse, what an update refuses, and files that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.budgets import baseline
from pytest_agentlatency.budgets.baseline import Accepted, Baseline, BaselineError
from pytest_agentlatency.budgets.figure import Figure, Unit
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Judgement, Point, Ruling
from pytest_agentlatency.model.provenance import Provenance

MS = 1_000_000
TOKENS, TIME = "context tokens under 20k at turn 3", "total under 10 s"


def judged(text: str, value: float, unit=Unit.TOKENS, ruling=Ruling.KEPT, **figure) -> Judgement:
    return Judgement(parse(text), ruling, point=Point(3, Figure(value, unit, **figure), ruling))


def held(**figures: Accepted) -> Baseline:
    return Baseline(
        "2026-11-30", figures={TOKENS: figures["tokens"]} if "tokens" in figures else {TIME: figures["time"]}
    )


def worse(before: Baseline, judgement: Judgement) -> bool:
    return baseline.movements(before, [judgement])[0].looser


def test_one_token_more_is_worse_and_the_same_is_not():
    before = held(tokens=Accepted(12_000, Unit.TOKENS))
    assert worse(before, judged(TOKENS, 12_001))
    assert not worse(before, judged(TOKENS, 12_000))
    assert not worse(before, judged(TOKENS, 11_000))


def test_of_at_least_less_is_worse():
    text = "cached share at least 50%"
    before = Baseline("", figures={text: Accepted(0.8, Unit.SHARE)})
    assert worse(before, judged(text, 0.7, Unit.SHARE))
    assert not worse(before, judged(text, 0.9, Unit.SHARE))


@pytest.mark.parametrize(
    ("value", "interval", "expected"),
    [(1049, None, False), (1051, None, True), (1300, (1000, 1600), False), (1300, (1100, 1600), True)],
)
def test_a_time_is_worse_beyond_its_tolerance_and_with_its_whole_interval(value, interval, expected):
    before = held(time=Accepted(1000 * MS, Unit.TIME))
    low, high = interval or (None, None)
    ends = {} if low is None else {"low": low * MS, "high": high * MS}
    assert worse(before, judged(TIME, value * MS, Unit.TIME, provenance=Provenance.PROJECTED, **ends)) is expected


def test_a_time_that_must_not_fail_a_test_is_not_worse():
    before = held(time=Accepted(1000 * MS, Unit.TIME))
    assert not worse(before, judged(TIME, 9000 * MS, Unit.TIME, caution="a factor of 3 only"))


def test_an_update_refuses_what_is_worse_and_takes_it_by_name():
    before, after = held(tokens=Accepted(12_000, Unit.TOKENS)), judged(TOKENS, 14_800)
    now = baseline.baseline([after], "2026-11-30", retimed=True)
    refused = baseline.update(before, now, [after], loosen=False)
    assert refused.written is None
    assert refused.failure.startswith("refused to loosen: ")
    assert len(refused.failure.splitlines()[0]) <= 60
    accepted = baseline.update(before, now, [after], loosen=True)
    assert accepted.written == now
    assert accepted.retimed
    assert accepted.lines[0] == f"{TOKENS}: 12,000 -> 14,800, worse"


def test_a_broken_budget_is_never_written():
    after = judged(TOKENS, 24_800, ruling=Ruling.BROKEN)
    now = baseline.baseline([after], "", retimed=False)
    assert baseline.update(Baseline(""), now, [after], loosen=True).written is None


def test_a_baseline_of_another_recording_is_void_and_says_so():
    before, after = held(tokens=Accepted(12_000, Unit.TOKENS)), judged(TOKENS, 14_800)
    settled = baseline.settle(before, baseline.baseline([after], "2026-12-01", retimed=False), [after])
    assert settled.failure == ""
    assert "earlier recording" in settled.lines[0]


def test_a_budget_that_is_new_has_nothing_to_be_worse_than():
    assert baseline.movements(Baseline(""), [judged(TOKENS, 14_800)])[0].old is None
    assert not worse(Baseline(""), judged(TOKENS, 14_800))


figures = st.builds(Accepted, st.floats(0, 1e15), st.sampled_from(Unit))


@given(st.builds(Baseline, st.text(), st.booleans(), st.dictionaries(st.text(), figures)))
def test_what_is_written_is_read_back(known):
    assert baseline.from_dict(baseline.to_dict(known)) == known


@pytest.mark.parametrize("value", [[], {}, {"version": 2}, {"version": 1, "figures": 3}, "x", None])
def test_what_is_no_baseline_is_refused(value):
    with pytest.raises(BaselineError):
        baseline.from_dict(value)

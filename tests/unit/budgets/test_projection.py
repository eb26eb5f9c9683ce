"""Budgets over projected times: the near end of the interval, cautions, and times of before the change."""

from dataclasses import replace

import pytest

from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import LiveCall, replayed
from pytest_agentlatency.analysis.fits import Fit
from pytest_agentlatency.analysis.prefill import LatencyModel, Sample, fit
from pytest_agentlatency.analysis.retiming import retime
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.projection import with_projection
from pytest_agentlatency.budgets.verdict import Ruling
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing.builders import growing, recording, turn, with_longer_system

MS = 1_000_000


def _model() -> LatencyModel:
    found = fit([Sample(0, size, 200 * MS + size * MS // 10) for size in (500, 1000, 2000, 4000, 8000, 16_000, 32_000)])
    assert isinstance(found, LatencyModel)
    return found


KNOWN = Fit(_model(), "a test")
WIDE = Fit(replace(KNOWN.model, covariance=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))), "a guess")
NONE = Fit(None, "2 calls can't tell")


def longer(observed: Recording, tokens: int, fitted=KNOWN):
    """The replay of an agent whose system prompt is so much longer."""
    after = with_longer_system(observed, tokens)
    live = [LiveCall(each.call, each.request, Verdict.DRIFTED) for each in after.attempts]
    found = retime(replayed(observed, live, counter("chars")), lambda _: fitted)
    return found, with_projection(Figures(), found)


def ruled(phrase: str, found, figures):
    return judge(parse(phrase), found.run, figures)


FOUR = recording(growing("linear", 4), model="local")


def test_a_limit_below_the_whole_interval_is_broken():
    found, figures = longer(FOUR, 2000)
    judgement = ruled("total under 3.1 s", found, figures)
    assert judgement.ruling is Ruling.BROKEN
    figure = judgement.point.figure
    assert figure.provenance is Provenance.PROJECTED
    assert figure.low == found.low.duration
    assert figure.high == found.high.duration


def test_a_limit_inside_the_interval_is_advice():
    found, figures = longer(FOUR, 2000)
    inside = (found.low.duration + found.run.duration) / 2 / 1e9
    judgement = ruled(f"total under {inside:.6f} s", found, figures)
    assert judgement.ruling is Ruling.ADVICE
    assert "the limit lies within" in judgement.reason


def test_a_wide_model_never_breaks_a_time_budget():
    found, figures = longer(FOUR, 2000, WIDE)
    judgement = ruled("total under 1 ms", found, figures)
    assert judgement.ruling is Ruling.ADVICE
    assert "agentlatency calibrate" in judgement.reason


def test_a_wide_model_leaves_what_prefill_does_not_touch():
    found, figures = longer(FOUR, 2000, WIDE)
    assert ruled("decode time under 1 ms", found, figures).ruling is Ruling.BROKEN
    assert ruled("tool time under 1 ms", found, figures).ruling is Ruling.BROKEN


@pytest.mark.parametrize(("limit", "ruling"), [("1 ms", Ruling.ADVICE), ("10 min", Ruling.KEPT)])
def test_without_a_model_a_time_says_that_it_is_of_before_the_change(limit, ruling):
    found, figures = longer(FOUR, 2000, NONE)
    judgement = ruled(f"total under {limit}", found, figures)
    assert judgement.ruling is ruling
    assert judgement.reason == "tokens only, the time is from before the change: 2 calls can't tell"


def test_without_a_model_tokens_still_gate():
    found, figures = longer(FOUR, 2000, NONE)
    assert ruled("context tokens under 5k at every turn", found, figures).ruling is Ruling.BROKEN


def test_growth_of_projected_times_is_advice():
    sizes = (1000, 1500, 3000, 6000, 12_000, 24_000, 48_000)
    observed = recording([turn(size, prefill_ms=size / 10) for size in sizes], model="local")
    found, figures = longer(observed, 10, NONE)
    judgement = ruled("turn time growth is constant", found, figures)
    assert judgement.ruling is Ruling.ADVICE
    assert "tokens only" in judgement.reason
    assert all(point.figure.caution.startswith("tokens only") for point in judgement.points)


def test_the_message_names_what_cost_most():
    found, figures = longer(FOUR, 2000)
    evidence = ruled("prefill time under 0.3 s at turn 4", found, figures).overrun.evidence
    line = next(each for each in evidence if each.startswith("turn 4 prefill ~"))
    assert ": system prompt +" in line
    assert line.endswith("tokens at system[0], since turn 1")

"""`agentlatency calibrate` against the simulated model, whose costs are known; absolute times are never asserted."""

import json

import pytest
from click.testing import CliRunner

from pytest_agentlatency.analysis.prefill import LatencyModel, Load, Sample, fit
from pytest_agentlatency.capture import calibrations
from pytest_agentlatency.capture.sweep import Endpoint, Sweep, SweepError, sizes
from pytest_agentlatency.cli import main
from pytest_agentlatency.testing import CostModel, InputTokens, Refuse, Reply, SimulatedModel

COSTS = CostModel(fixed=3_000_000, prefill=60_000, decode=1_000_000, cache="prefix")
FEW = ("--calls", "7", "--least", "200", "--most", "4000")


def run(folder, *arguments, **kwargs):
    return CliRunner().invoke(main, ["calibrate", *arguments, "--output", str(folder)], **kwargs)


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_sweep_recovers_what_a_token_costs(tmp_path, api):
    with SimulatedModel(Reply("Yes, yes, yes."), costs=COSTS) as model:
        url = model.url if api == "anthropic" else model.openai_url
        result = run(tmp_path, "--api", api, "--url", url, "--model", "local", "--yes", *FEW)
        assert result.exit_code == 0, result.output
        served = model.served
    found = calibrations.load(tmp_path / f"{api}-local.json")
    low, high = found.latency.token_interval
    assert low <= 60_000 <= high
    assert (found.provider, found.model, found.tier) == (api, "local", "")
    assert all(each.tokens.read < 20 for each in served), "the nonce stands in front of what a cache could know"
    assert len(served) <= 8


def test_what_it_costs_is_said_first_and_nothing_is_sent_without_a_yes(tmp_path):
    with SimulatedModel(Reply("Yes.")) as model:
        result = run(tmp_path, "--url", model.url, "--model", "local", "--calls", "4", input="n\n")
        assert result.exit_code == 1
        assert "up to 4 calls, about " in result.output
        assert "input tokens" in result.output
        assert not model.requests
    assert not list(tmp_path.iterdir())


def test_the_order_is_mixed_and_the_sizes_are_even_in_their_logarithm():
    found = sizes(5, 1000, 16_000)
    assert found == (1000, 16_000, 2000, 8000, 4000)


def test_a_refusal_ends_with_2_and_the_endpoints_words(tmp_path):
    with SimulatedModel(Reply("Yes."), faults={1: Refuse(401)}) as model:
        result = run(tmp_path, "--url", model.url, "--model", "local", "--yes")
    assert result.exit_code == 2
    assert "answered 401: " in result.output
    assert not list(tmp_path.iterdir())


def test_an_endpoint_that_echoes_the_key_is_told_without_it():
    """In its address, and in what it answers."""
    key = "our-gateway-9f3a7c21e5"
    with (
        SimulatedModel() as model,
        Sweep(Endpoint(f"{model.url}/{key}", "local", key=key), (200,)) as sweep,
        pytest.raises(SweepError, match=r"answered 404: .*the simulated model has no POST /•+/v1/mess") as told,
    ):
        sweep.run()
    assert key in model.requests[0].path
    assert key not in str(told.value)


def test_a_prompt_that_is_too_large_ends_the_larger_ones_only():
    faults = {3: Refuse(400)}  # the warm-up, the smallest, then the largest
    with (
        SimulatedModel(Reply("Yes, yes."), costs=COSTS, faults=faults) as model,
        Sweep(Endpoint(model.url, "local"), sizes(5, 200, 3200)) as sweep,
    ):
        found = sweep.run()
    assert found.samples == 4
    assert sweep.notes == ["3,200 tokens were refused with status 400."]


def test_an_endpoint_that_nobody_listens_at_is_named():
    with (
        Sweep(Endpoint("http://127.0.0.1:9", "local"), [200]) as sweep,
        pytest.raises(SweepError, match=r"127\.0\.0\.1:9"),
    ):
        sweep.run()


def test_a_bad_range_is_refused(tmp_path):
    result = run(tmp_path, "--model", "local", "--least", "500", "--most", "400", "--yes")
    assert result.exit_code == 2
    assert "--most is 400" in result.output


def test_the_simulated_model_takes_a_calibration():
    found = fit([Sample(0, size, 200_000_000 + size * 100_000) for size in (500, 1000, 2000, 4000, 8000, 16_000)])
    assert isinstance(found, LatencyModel)
    simulated = CostModel.from_latency(found)
    for cached, uncached in ((0, 1000), (8000, 500)):
        cost = simulated.cost(InputTokens(uncached, cached), 1)
        expected = found.fixed_ns + found.prefill(Load(cached, uncached))
        assert cost.prefill == pytest.approx(expected, rel=0.01)


def test_the_file_is_plain_json(tmp_path):
    with SimulatedModel(Reply("Yes, yes, yes."), costs=COSTS) as model:
        run(tmp_path, "--url", model.url, "--model", "a/b:c", "--tier", "fast", "--yes", *FEW)
    (path,) = tmp_path.iterdir()
    assert path.name == "anthropic-a-b-c-fast.json"
    assert json.loads(path.read_text())["version"] == 1

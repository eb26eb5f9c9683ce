"""The latency model: identity, signs and units exactly; its intervals in a seeded simulation."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.prefill import LatencyModel, Load, NoFit, Prior, Sample, Shape, cache_doubt, fit

MS = 1_000_000


def truth(cached, uncached, *, fixed=0.4, token=1e-4, attention=30_000):
    """Nanoseconds of a server with known seconds, seconds a token, and N."""
    return round(1e9 * (fixed + token * uncached * (1 + (cached + uncached / 2) / attention)))


def measured(loads, **server):
    return [Sample(cached, uncached, truth(cached, uncached, **server)) for cached, uncached in loads]


SWEEP = [(0, round(500 * 1.6**n)) for n in range(10)]
MODEL = fit(measured(SWEEP))
assert isinstance(MODEL, LatencyModel)

loads = st.builds(Load, st.integers(0, 200_000), st.integers(0, 200_000))
times = st.integers(1, 10**12)


@given(times, loads)
def test_an_unchanged_request_gives_back_its_nanoseconds(recorded, load):
    projected = MODEL.shift(recorded, load, load)
    assert (projected.ns, projected.low, projected.high) == (recorded, recorded, recorded)


@given(times, loads, st.integers(0, 50_000), st.integers(0, 50_000))
def test_more_tokens_never_lower_the_projection(recorded, load, cached, uncached):
    more = Load(load.cached + cached, load.uncached + uncached)
    assert MODEL.shift(recorded, load, more).ns >= recorded
    assert MODEL.shift(recorded, more, load).ns <= recorded


@given(times, loads, st.integers(0, 200_000))
def test_losing_the_cache_never_lowers_the_projection(recorded, load, lost):
    cold = Load(max(0, load.cached - lost), load.uncached + min(lost, load.cached))
    assert MODEL.shift(recorded, load, cold).ns >= recorded


@given(times, loads, loads)
def test_the_projection_lies_in_its_interval_which_is_never_below_what_was_fast(recorded, load, live):
    projected = MODEL.shift(recorded, load, live)
    assert 0 <= projected.low <= projected.ns <= projected.high
    assert projected.again[0] <= projected.low
    assert projected.again[1] >= projected.high
    assert projected.ns >= min(recorded, int(MODEL.fixed_ns))


def test_a_projection_of_fewer_tokens_stops_at_the_fixed_time():
    recorded = truth(0, 1000)
    assert MODEL.shift(recorded, Load(0, 1000), Load(0, 0)).ns == pytest.approx(MODEL.fixed_ns, rel=0.05)
    assert MODEL.shift(recorded, Load(0, 100_000), Load(0, 0)).ns == int(MODEL.fixed_ns)


def test_a_noiseless_sweep_is_projected_to_within_a_few_percent():
    live = MODEL.shift(truth(0, 6000), Load(0, 6000), Load(0, 9000))
    assert live.ns == pytest.approx(truth(0, 9000), rel=0.05)
    assert live.low <= truth(0, 9000) <= live.high


def test_a_cold_sweep_predicts_warm_turns():
    """A law in uncached tokens alone is off by a factor: 512 new tokens on 16k cost far more than on 512."""
    server = {"fixed": 0.02, "token": 4e-4, "attention": 5000}
    model = fit(measured([(0, round(500 * 1.47**n)) for n in range(10)], **server))
    assert isinstance(model, LatencyModel)
    warm = model.predict(Load(16_384, 512)).ns
    assert warm == pytest.approx(truth(16_384, 512, **server), rel=0.2)
    assert warm > 2.5 * model.predict(Load(512, 512)).ns


SMALL_SERVER = {"fixed": 0.002, "token": 4.2e-4, "attention": 2384}
"""llama.cpp on a CPU with a small model: b/c = 4,768, measured by its CPU time on prompts of 0.5k to 16k tokens."""
SEVEN_TURNS = [(0, size) for size in (495, 963, 1512, 2078, 2651, 3202, 3728)]


def test_a_small_servers_dear_attention_shows_in_an_agents_own_turns():
    """A prior that allows published shapes only would project little more than half of what a longer prompt costs."""
    model = fit(measured(SEVEN_TURNS, **SMALL_SERVER))
    assert isinstance(model, LatencyModel)
    for _, size in SEVEN_TURNS[2:]:
        recorded, longer = truth(0, size, **SMALL_SERVER), truth(0, size + 1000, **SMALL_SERVER)
        projected = model.shift(recorded, Load(0, size), Load(0, size + 1000))
        assert projected.ns - recorded == pytest.approx(longer - recorded, rel=0.2)
        assert projected.low <= longer <= projected.high


@pytest.mark.parametrize("sigma", [0.03, 0.15])
def test_a_new_recording_of_the_changed_call_lies_in_its_interval(sigma):
    """Nine times in ten, though both calls have noise of their own; seeded."""
    rng = random.Random(7)  # noqa: S311
    held = 0
    for _ in range(150):
        noise = [rng.lognormvariate(0, sigma) for _ in SEVEN_TURNS]
        calls = [
            Sample(call.cached, call.uncached, round(call.ttft_ns * off))
            for call, off in zip(measured(SEVEN_TURNS, **SMALL_SERVER), noise, strict=True)
        ]
        model = fit(calls)
        assert isinstance(model, LatencyModel)
        recorded = calls[rng.randrange(len(calls))]
        load = Load(0, recorded.uncached + 400)
        again = truth(*load, **SMALL_SERVER) * rng.lognormvariate(0, sigma)
        low, high = model.shift(recorded.ttft_ns, Load(recorded.cached, recorded.uncached), load).again
        held += low <= again <= high
    assert held >= 0.85 * 150


def test_the_attention_term_is_the_law_that_was_measured_on_a_real_server():
    """T = a + b*D + c*(2PD + D^2) with c = b / 2N."""
    cached, new = 7000, 900
    b, c = MODEL.token_ns, MODEL.token_ns / (2 * MODEL.attention_tokens)
    assert MODEL.prefill(Load(cached, new)) == pytest.approx(b * new + c * (2 * cached * new + new * new))


def test_a_wide_quiet_sweep_moves_n_to_where_it_is():
    few, many = fit(measured(SWEEP[::2], attention=8000)), fit(measured(SWEEP * 3, attention=8000))
    assert isinstance(few, LatencyModel)
    assert isinstance(many, LatencyModel)
    assert many.attention_tokens == pytest.approx(8000, rel=0.2)
    assert abs(few.attention_tokens - 60_000) < 60_000 - 8000


def test_a_known_shape_holds_n():
    model = fit(measured(SWEEP, attention=30_000), shape=Shape(17_000, 0.01))
    assert isinstance(model, LatencyModel)
    assert model.attention_tokens == pytest.approx(17_000, rel=0.02)


def test_a_wide_quiet_sweep_gates():
    assert MODEL.gates
    assert MODEL.width <= 1.6


def test_an_agents_own_turns_on_a_hosted_model_do_not_gate():
    """1k tokens are 40 ms there against a noise of hundreds."""
    rng = random.Random(4)  # noqa: S311
    turns = [(10_000 + 2000 * n, rng.randrange(200, 3000)) for n in range(12)]
    noisy = [
        Sample(each.cached, each.uncached, round(each.ttft_ns * rng.lognormvariate(0, 0.25)))
        for each in measured(turns, fixed=2.2, token=4e-5)
    ]
    model = fit(noisy)
    assert isinstance(model, LatencyModel)
    assert not model.gates
    assert model.width > 1.6


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_calls_give_the_prior_which_never_gates(count):
    model = fit(measured(SWEEP[:count]), prior=Prior(token_sd=0.01), shape=Shape(sd=0.01))
    assert isinstance(model, LatencyModel)
    assert model.from_prior
    assert not model.gates
    assert model.fixed_ns == pytest.approx(1e9)
    assert model.token_ns == pytest.approx(1e9 / 15_000)


def test_one_call_slowed_fivefold_hardly_moves_the_slope():
    samples = measured(SWEEP)
    samples[4] = Sample(0, samples[4].uncached, 5 * samples[4].ttft_ns)
    model = fit(samples)
    assert isinstance(model, LatencyModel)
    assert model.token_ns == pytest.approx(MODEL.token_ns, rel=0.25)


def test_equal_calls_tell_nothing_of_the_slope():
    model = fit([Sample(0, 5000, 900 * MS)] * 10)
    assert isinstance(model, LatencyModel)
    assert not model.gates


def test_the_unit_of_the_answer_is_the_unit_of_the_samples():
    """Ten times slower calls under a ten times slower prior: the same model, ten times slower."""
    slow = [Sample(s.cached, s.uncached, 10 * s.ttft_ns) for s in measured(SWEEP)]
    model = fit(slow, prior=Prior(fixed_ns=1e10, token_ns=1e10 / 15_000))
    assert isinstance(model, LatencyModel)
    assert model.fixed_ns == pytest.approx(10 * MODEL.fixed_ns, rel=1e-6)
    assert model.token_ns == pytest.approx(10 * MODEL.token_ns, rel=1e-6)
    assert model.covariance[1][1] == pytest.approx(MODEL.covariance[1][1], rel=1e-6)


@pytest.mark.parametrize("wrong", [Sample(0, 100, 0), Sample(-1, 100, 5), Sample(0, -3, 5)])
def test_a_call_that_cannot_have_been_measured_is_no_fit_and_named(wrong):
    found = fit([*measured(SWEEP), wrong])
    assert isinstance(found, NoFit)
    assert repr(wrong) in found.reason


def hosted(rng, size):
    """Calls of a random server with a quarter of noise; truth of b in nanoseconds; a new call and its load."""
    server = {
        "fixed": math.exp(rng.uniform(-1, 1)),
        "token": math.exp(rng.uniform(math.log(2e-5), math.log(2e-4))),
        "attention": math.exp(rng.uniform(math.log(25e3), math.log(200e3))),
    }
    drawn = [(0, round(math.exp(rng.uniform(math.log(1e3), math.log(3e4))))) for _ in range(size + 1)]
    calls = [Sample(c, u, round(truth(c, u, **server) * rng.lognormvariate(0, 0.25))) for c, u in drawn]
    return calls[:-1], 1e9 * server["token"], calls[-1]


@pytest.mark.parametrize("size", [3, 6, 20])
def test_nine_in_ten_intervals_hold_what_they_promise(size):
    rng = random.Random(20 + size)  # noqa: S311
    slopes = seen = 0
    for _ in range(120):
        calls, slope, probe = hosted(rng, size)
        model = fit(calls)
        assert isinstance(model, LatencyModel)
        low, high = model.token_interval
        slopes += low <= slope <= high
        predicted = model.predict(Load(probe.cached, probe.uncached))
        seen += predicted.low <= probe.ttft_ns <= predicted.high
    assert slopes >= 0.83 * 120
    assert seen >= 0.85 * 120


def test_d9_reuse_pinned_at_an_old_checkpoint_shows_in_the_times():
    """Field note D9: usage says cached, TTFT follows the context all the same: 14 s a turn instead of 0.3 s."""
    turns = [(4000 * n, 300 + 40 * (n % 3)) for n in range(1, 10)]
    pinned = [Sample(c, u, truth(0, c + u, fixed=0.1)) for c, u in turns]
    assert cache_doubt(pinned).startswith("TTFT follows the whole context")


def test_a_cache_that_works_is_not_doubted():
    turns = [(4000 * n, 300 + 900 * (n % 4)) for n in range(1, 10)]
    assert cache_doubt(measured(turns)) == ""


def test_too_few_calls_or_none_cached_raise_no_doubt():
    assert cache_doubt(measured([(4000, 300)] * 3)) == ""
    assert cache_doubt(measured(SWEEP)) == ""

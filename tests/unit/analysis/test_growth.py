"""Growth recovers the law that made a series, raises few false alarms, and says when it can't tell."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.growth import Growth, Law, Step, classify, pooled, satisfies


def noisy(law, turns, *, noise=0.05, seed=1):
    rng = random.Random(seed)  # noqa: S311
    return [law(n) * (1 + rng.uniform(-noise, noise)) for n in range(turns)]


def walk(rng, turns, *, sigma=0.6, spikes=0.08, rises=lambda _: 800.0):
    """A history: each turn adds a lognormal amount, sometimes a tool result four to twelve times as big."""
    series = [2000.0]
    for turn in range(1, turns):
        spike = rng.uniform(4, 12) if rng.random() < spikes else 1
        series.append(series[-1] + rises(turn) * rng.lognormvariate(-sigma * sigma / 2, sigma) * spike)
    return series


@pytest.mark.parametrize("turns", [5, 6, 10, 20, 60])
def test_a_straight_line_is_linear(turns):
    growth = classify([1000 + 800 * n for n in range(turns)])
    assert growth.law is Law.LINEAR
    assert growth.exponent == pytest.approx(1.0)
    assert growth.slope == pytest.approx(800)


@pytest.mark.parametrize("turns", [5, 6, 10, 20, 60])
def test_a_parabola_is_superlinear(turns):
    assert classify([1000 + 80 * n * n for n in range(turns)]).law is Law.SUPERLINEAR


@pytest.mark.parametrize("turns", [5, 8, 20])
def test_doubling_is_superlinear(turns):
    assert classify([500.0 * 2**n for n in range(turns)]).law is Law.SUPERLINEAR


@pytest.mark.parametrize("turns", [6, 10, 20])
def test_a_square_root_is_sublinear_and_passes_as_at_most_linear(turns):
    growth = classify([1000 + 800 * math.sqrt(n) for n in range(turns)])
    assert growth.law is Law.SUBLINEAR
    assert satisfies(growth, at_most=Law.LINEAR) is True


@pytest.mark.parametrize("seed", range(5))
def test_a_level_with_five_percent_noise_is_constant(seed):
    growth = classify(noisy(lambda _: 8000, 12, seed=seed))
    assert growth.law is Law.CONSTANT
    assert "constant" in growth.reason


@pytest.mark.parametrize("seed", range(5))
def test_a_line_with_five_percent_noise_is_not_superlinear(seed):
    assert classify(noisy(lambda n: 1000 + 800 * n, 12, seed=seed)).law is Law.LINEAR


def test_a_big_prompt_with_small_steady_steps_still_grows():
    """A flatness rule of a tenth of the level called such conversations constant."""
    assert classify([20_000 + 120 * n for n in range(10)]).law is Law.LINEAR


def test_a_sawtooth_with_its_compactions_named_is_compacted_and_linear_in_between():
    teeth = [1000, 2000, 3000, 4000, 1200, 2200, 3200, 4200, 1100, 2100, 3100]
    growth = classify(teeth, cuts=[5, 9])
    assert (growth.law, growth.within, growth.cuts) == (Law.COMPACTED, Law.LINEAR, (5, 9))
    assert growth.reason.startswith("compacted at turn 5, 9; in between no evidence of superlinear growth")
    assert satisfies(growth, at_most=Law.LINEAR) is True
    assert satisfies(growth, at_most=Law.CONSTANT) is False
    assert satisfies(growth, exactly=Law.COMPACTED) is True


def test_a_break_without_a_drop_is_no_compaction():
    growth = classify([1000 + 800 * n for n in range(8)], cuts=[4])
    assert (growth.law, growth.cuts) == (Law.LINEAR, ())


def test_a_drop_without_a_break_is_not_taken_for_a_compaction():
    assert classify([1000, 2000, 3000, 1000, 2000, 3000, 4000]).cuts == ()


def test_compaction_does_not_hide_that_each_stretch_explodes():
    tooth = [1000 + 100 * n * n for n in range(7)]
    growth = classify(tooth + tooth, cuts=[8])
    assert growth.law is Law.SUPERLINEAR
    assert growth.cuts == (8,)


def test_three_turns_are_too_few_to_tell():
    growth = classify([1000, 2000, 9000])
    assert growth.law is Law.INCONCLUSIVE
    assert "too few turns" in growth.reason
    assert satisfies(growth, at_most=Law.LINEAR) is None
    assert satisfies(growth, exactly=Law.LINEAR) is None


@pytest.mark.parametrize("series", [[], [5.0], [None, None]])
def test_a_series_with_nothing_to_compare_is_inconclusive(series):
    assert classify(series).law is Law.INCONCLUSIVE


def test_a_smaller_alpha_than_four_increments_can_reach_is_inconclusive_not_linear():
    assert classify([10257, 10452, 11387, 13217, 16209], alpha=0.01).law is Law.INCONCLUSIVE


def test_f1_context_of_an_agent_that_resends_is_linear_and_its_sum_is_quadratic():
    """Field note F1: +600 tokens a step looks harmless a turn and is quadratic in total."""
    context = [2000 + 600 * n for n in range(12)]
    resent = [sum(context[: n + 1]) for n in range(12)]
    assert classify(context).law is Law.LINEAR
    assert classify(resent).law is Law.SUPERLINEAR
    assert satisfies(classify(resent), at_most=Law.LINEAR) is False


def test_f1_with_a_working_cache_the_sum_of_prefill_work_stays_linear():
    work = [2000] + [600] * 11
    assert satisfies(classify([sum(work[: n + 1]) for n in range(12)]), at_most=Law.LINEAR) is True


def test_c3_a_turn_summed_over_hidden_passes_leaves_the_verdict_linear():
    """Field note C3: usage of a turn with server-side search was read 60k + its own; it isn't the size of a context."""
    known = [20_000, 22_000, None, 26_000, 28_000, 30_000]
    growth = classify(known)
    assert growth.law is Law.LINEAR
    assert growth.increments == (2000, 2000, 2000, 2000)
    assert growth.largest_step == Step(4, 4000)


def test_c3_the_four_turns_of_the_report_alone_are_no_alarm():
    assert classify([20_000, 22_000, None, 26_000]).law is Law.INCONCLUSIVE


def test_a_recorded_conversation_that_accelerates_is_superlinear():
    growth = classify([10257, 10452, 11387, 13217, 16209])
    assert growth.law is Law.SUPERLINEAR
    assert growth.p_value == pytest.approx(1 / 24)
    assert growth.increments == (195, 935, 1830, 2992)
    assert growth.reason == (
        "superlinear growth; exponent 2.28, permutation p 0.042, increments 195 935 1,830 2,992, "
        "largest step turn 5 (+2,992)"
    )


def test_one_big_tool_result_is_a_step_not_a_law():
    series = [2000, 2800, 16_111, 16_900, 17_700, 18_500, 19_300, 20_100]
    growth = classify(series)
    assert satisfies(growth, at_most=Law.LINEAR) is True
    assert growth.largest_step == Step(3, 13_311)
    assert growth.maximum == 20_100
    assert growth.median_increment == 800


def test_false_alarms_on_linear_histories_stay_near_alpha():
    rng = random.Random(11)  # noqa: S311
    laws = [classify(walk(rng, rng.choice([6, 10, 20]))).law for _ in range(300)]
    assert laws.count(Law.SUPERLINEAR) / len(laws) <= 0.08


def test_most_accelerating_histories_are_found_at_ten_turns():
    rng = random.Random(12)  # noqa: S311
    laws = [classify(walk(rng, 10, sigma=0.25, spikes=0, rises=lambda turn: 200.0 * turn)).law for _ in range(100)]
    assert laws.count(Law.SUPERLINEAR) / len(laws) >= 0.9


def test_three_short_recordings_decide_together_what_one_cannot():
    recordings = [[1000, 1100, 1500, 2600 + 10 * n] for n in range(3)]
    assert classify(recordings[0]).law is Law.INCONCLUSIVE
    assert pooled(recordings).law is Law.SUPERLINEAR


def test_pooled_recordings_at_different_levels_are_not_one_rising_series():
    recordings = [[1000 * k + 5 * (n % 2) for n in range(6)] for k in (1, 20, 300)]
    assert pooled(recordings).law is Law.CONSTANT


def test_pooled_recordings_keep_their_own_compactions():
    tooth = [1000 + 500 * n for n in range(5)]
    growth = pooled([tooth + tooth, tooth], cuts=[[6], []])
    assert (growth.law, growth.within, growth.cuts) == (Law.COMPACTED, Law.LINEAR, (6,))


series = st.lists(st.integers(0, 10**6), min_size=0, max_size=9)


@given(series, st.integers(1, 1000))
def test_the_unit_of_a_series_does_not_matter(values, scale):
    one, other = classify(values), classify([scale * value for value in values])
    assert (one.law, one.p_value) == (other.law, other.p_value)


@given(series)
def test_an_upper_bound_is_monotone(values):
    growth = classify(values)
    order = [Law.CONSTANT, Law.SUBLINEAR, Law.LINEAR, Law.SUPERLINEAR]
    kept = [satisfies(growth, at_most=law) for law in order]
    assert kept == sorted(kept, key=lambda each: each or False)
    assert kept[-1] in {True, None}


@given(st.integers(0, 10**6), st.integers(5, 9))
def test_a_level_is_constant_whatever_the_level(level, turns):
    assert classify([level] * turns).law is Law.CONSTANT


@pytest.mark.parametrize("turns", [8, 9, 30])
def test_the_same_series_gets_the_same_verdict_every_time(turns):
    history = walk(random.Random(5), turns)  # noqa: S311
    assert classify(history) == classify(history)


def test_a_very_long_session_is_judged_too():
    assert isinstance(classify(walk(random.Random(3), 440)), Growth)  # noqa: S311


def test_a_value_that_is_no_number_is_refused_with_its_turn():
    with pytest.raises(ValueError, match=r"turn 2 of the series is nan; give a finite number, or None"):
        classify([1.0, math.nan, 2.0])


@pytest.mark.parametrize("bounds", [{}, {"at_most": Law.LINEAR, "exactly": Law.LINEAR}, {"at_most": Law.COMPACTED}])
def test_a_bound_that_says_nothing_is_refused(bounds):
    with pytest.raises(ValueError, match="at_most"):
        satisfies(classify([1, 2, 3, 4, 5]), **bounds)

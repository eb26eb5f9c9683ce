"""The three statistics against values from tables and against brute force."""

import math
import random
from itertools import permutations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.trend import mann_kendall, orders, permutation, theil_sen


@pytest.mark.parametrize(("points", "p"), [(3, 1 / 6), (4, 1 / 24), (5, 1 / 120), (6, 1 / 720)])
def test_a_monotone_rise_has_the_probability_of_its_one_order(points, p):
    assert isclose(mann_kendall([range(points)]), p)
    assert orders([range(points)]) == round(1 / p)


@pytest.mark.parametrize(
    ("size", "score", "p"),
    # Upper tail probabilities of Kendall's S, Hollander and Wolfe, "Nonparametric Statistical Methods", table A.30.
    [(4, 4, 0.167), (5, 6, 0.117), (5, 8, 0.042), (6, 9, 0.068), (6, 11, 0.028), (8, 16, 0.031), (10, 23, 0.023)],
)
def test_mann_kendall_agrees_with_the_printed_table(size, score, p):
    pairs = size * (size - 1) // 2
    values = with_inversions(size, (pairs - score) // 2)
    assert mann_kendall([values]) == pytest.approx(p, abs=5e-4)


def with_inversions(size, inversions):
    values = []
    for value in range(size):
        back = min(inversions, len(values))
        values.insert(len(values) - back, value)
        inversions -= back
    return values


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
def test_mann_kendall_is_the_share_of_orders_that_rise_at_least_as_much(values):
    def score(order):
        return sum((b > a) - (b < a) for i, a in enumerate(order) for b in order[i + 1 :])

    every = [score(order) for order in permutations(values)]
    expected = sum(each >= score(values) for each in every) / len(every)
    assert mann_kendall([values]) == pytest.approx(expected)


def test_two_strata_are_never_compared_with_each_other():
    """Each falls; that the second lies higher is no trend."""
    assert mann_kendall([[3, 2, 1], [30, 20, 10]]) == pytest.approx(1.0)
    assert permutation([[3, 2, 1], [30, 20, 10]]).up == 1.0


def test_strata_that_each_rise_decide_together_what_neither_could_alone():
    assert mann_kendall([[1, 2, 3], [5, 6, 7]]) == pytest.approx(1 / 36)
    assert permutation([[1, 2, 3], [5, 6, 7]]).up == pytest.approx(1 / 36)


def test_the_exact_and_the_normal_distribution_meet():
    nearly = [(17 * n) % 101 + n / 20 for n in range(100)]
    exact, normal = mann_kendall([nearly]), mann_kendall([[*nearly, 48]])
    assert exact == pytest.approx(normal, abs=0.02)
    assert 0.001 < exact < 0.999


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_permutation_p_is_the_share_of_orders(values):
    def score(order):
        return sum(index * value for index, value in enumerate(order))

    every = [score(order) for order in permutations(values)]
    tails = permutation([values])
    assert tails.up == pytest.approx(sum(each >= score(values) for each in every) / len(every))
    assert tails.down == pytest.approx(sum(each <= score(values) for each in every) / len(every))


def test_drawn_orders_come_close_to_all_orders():
    """Eight values are drawn, seven enumerated; a stratum of one changes nothing but the way."""
    values = [1.0, 4.0, 2.0, 3.0, 7.0, 5.0, 6.0]
    exact = permutation([values]).up
    drawn = permutation([values, [1.0, 1.0]]).up
    assert drawn == pytest.approx(exact, abs=0.01)


def test_drawn_orders_give_the_same_p_every_time():
    values = [float((7 * n) % 11) for n in range(12)]
    assert permutation([values]) == permutation([values])


def test_drawn_orders_are_those_of_sorting_by_random_numbers_from_one_seed():
    """The definition, spelt out: another way to draw would give old runs other p-values."""
    values = [math.log(1 + (37 * n) % 23) for n in range(12)]
    draw = random.Random(20_260_101).random  # noqa: S311 - repeatable, not secret
    drawn = [sorted(range(12), key=lambda _: draw()) for _ in range(4999)]

    def score(order):
        return sum((place - 5.5) * values[index] for place, index in enumerate(order))

    scores = [*map(score, drawn), score(range(12))]
    assert permutation([values]).up == sum(each >= scores[-1] - 1e-9 for each in scores) / 5000
    assert permutation([values]).down == sum(each <= scores[-1] + 1e-9 for each in scores) / 5000


@pytest.mark.parametrize("strata", [[[3.0] * 40], [[3.0] * 40, [7.5]], [[], [0.0, 0.0]]])
def test_values_that_are_all_equal_have_no_trend_in_any_order(strata):
    assert permutation(strata) == (1.0, 1.0)


def test_theil_sen_ignores_a_spike_and_honours_gaps_between_times():
    assert theil_sen([1, 2, 3, 4, 5], [10, 20, 30, 999, 50]) == 10
    assert theil_sen([1, 2, 5], [0, 3, 12]) == 3
    assert theil_sen([1], [5]) == 0.0

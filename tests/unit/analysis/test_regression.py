"""The fit's numbers against closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.regression import Point, Prior, fit, inverse, quadratic


def constant(count):
    """A model of one parameter, the same for every observation."""
    return lambda logs: [Point(math.exp(logs[0]), (1.0,))] * count


def test_without_observations_to_speak_of_the_prior_stands():
    found = fit([8.0], constant(1), Prior((math.log(2.0),), (1e-6,)))
    assert math.exp(found.logs[0]) == pytest.approx(2.0)


def test_equal_observations_under_a_wide_prior_are_found():
    found = fit([8.0] * 5, constant(5), Prior((0.0,), (100.0,)))
    assert math.exp(found.logs[0]) == pytest.approx(8.0)


def test_one_outlier_among_ten_hardly_moves_the_fit():
    """A mean of logarithms would be off by 26 %."""
    found = fit([1.0] * 9 + [10.0], constant(10), Prior((0.0,), (100.0,)))
    assert math.exp(found.logs[0]) == pytest.approx(1.0, abs=0.03)


def test_more_observations_leave_less_doubt():
    few, many = (fit([3.0, 4.0] * n, constant(2 * n), Prior((1.0,), (1.0,))) for n in (2, 20))
    assert many.covariance[0][0] < few.covariance[0][0] / 5


def test_a_perfect_fit_through_few_points_is_not_believed():
    assert fit([8.0] * 3, constant(3), Prior((0.0,), (1.0,))).scale > 0.1


def test_a_start_far_away_is_left_behind():
    found = fit([1e9] * 6, constant(6), Prior((0.0,), (10.0,)))
    assert math.exp(found.logs[0]) == pytest.approx(1e9, rel=0.01)


@given(st.lists(st.floats(-3, 3), min_size=9, max_size=9))
def test_an_inverse_undoes_its_matrix(numbers):
    rows = [numbers[i : i + 3] for i in (0, 3, 6)]
    matrix = tuple(
        tuple(sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) + (i == j) for j in range(3)) for i in range(3)
    )
    product = [[sum(matrix[i][k] * inverse(matrix)[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    assert product == [[pytest.approx(float(i == j), abs=1e-6) for j in range(3)] for i in range(3)]


def test_the_variance_of_a_sum_counts_the_covariance_twice():
    assert quadratic(((4.0, 1.0), (1.0, 9.0)), (1, 1)) == 15

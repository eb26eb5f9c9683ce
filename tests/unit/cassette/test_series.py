import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import series


@settings(deadline=None)
@given(st.lists(st.integers() | st.sampled_from([0, 127]), max_size=30).map(tuple))
def test_any_series_comes_back(values):
    assert series.read(series.write(values), limit=30) == values


def test_equal_neighbours_are_folded():
    assert series.write([288, 35, *[127] * 10]) == "288 35 127*10"


def test_a_lone_number_needs_no_quotes():
    assert series.write([5]) == 5


@pytest.mark.parametrize("line", ["0*999999999999", "1*6", "1 2 3 4 5 6", "3*0", "3*-1", "x", "1*", "1**2"])
def test_a_line_that_is_no_series_or_too_long_is_refused_before_it_is_built(line):
    with pytest.raises(ValueError, match=r"."):
        series.read(line, limit=5)

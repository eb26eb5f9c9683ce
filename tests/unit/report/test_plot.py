from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.report import plot


def test_a_straight_line_lies_on_its_curve():
    lines = plot.fit([100, 200, 300, 400], 1.0, 40)
    assert "".join(lines).count("*") == 4
    assert "o" not in "".join(line.partition("|")[2] for line in lines)
    assert lines[0].startswith("400 |")
    assert lines[-2].startswith("100 |*")
    assert lines[-1].split() == ["turn", "1", "4"]


def test_a_value_off_the_curve_is_told_apart():
    drawn = "".join(line.partition("|")[2] for line in plot.fit([0, 100, 0, 100], 1.0, 40))
    assert drawn.count("o") == 2
    assert drawn.count(".") == 2


def test_a_turn_without_a_value_leaves_a_gap_of_values_only():
    drawn = "".join(line.partition("|")[2] for line in plot.fit([100, None, 300], 1.0, 40))
    assert drawn.count("*") == 2
    assert drawn.count(".") == 1


def test_a_series_that_does_not_rise_is_not_drawn():
    assert plot.fit([300, 200, 100], 1.0, 40) == []
    assert plot.fit([100], 1.0, 40) == []
    assert plot.fit([None, None], 1.0, 40) == []


@given(st.lists(st.none() | st.integers(0, 10**7), max_size=60), st.floats(0.05, 5), st.integers(40, 200))
def test_no_drawing_is_wider_than_asked_for(values, exponent, width):
    assert all(len(line) <= width for line in plot.fit(values, exponent, width))

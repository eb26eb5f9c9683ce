from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.report.layout import Column, grid

KEY = Column("turn", ("1", "2", "run"))
TIMES = [Column("total", ("10", "200", "210")), Column("prefill", ("5", "100", "105"))]
WORD = Column("request", ("same", "other", ""), group=1, left=True)


def test_columns_stand_side_by_side_when_they_fit():
    assert grid([KEY], [*TIMES, WORD], 80, rule_before=2) == [
        "turn  total  prefill  request",
        "-----------------------------",
        "   1     10        5  same",
        "   2    200      100  other",
        "-----------------------------",
        " run    210      105",
    ]


def test_groups_go_below_each_other_when_they_do_not_fit():
    lines = grid([KEY], [*TIMES, WORD], 28)
    assert lines[0] == "turn  total  prefill"
    assert lines[5:7] == ["", "turn  request"]


def test_a_group_that_is_too_wide_is_packed_in_order():
    assert [line for line in grid([KEY], TIMES, 14) if "turn" in line] == ["turn  total", "turn  prefill"]


@settings(deadline=None)
@given(st.lists(st.text("abc", max_size=30), max_size=6), st.integers(1, 60))
def test_no_line_is_wider_than_allowed_and_no_header_is_lost(headers: list[str], width: int):
    lines = grid([KEY], [Column(header, ("x", "y", "z")) for header in headers], width)
    assert all(len(line) <= width for line in lines)
    if width >= 40:
        assert all(header in "\n".join(lines) for header in headers)

"""How much room a figure leaves, and when that is too little to trust."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.headroom import LEAST, Seen, little, room, spread
from pytest_agentlatency.budgets.phrase import Bound, parse
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from tests.support.plain_runs import laid_out, run_of, turn


def taking(ms: float) -> Run:
    return laid_out([("prefill", ms)])


def bound(text: str) -> Bound:
    phrase = parse(text)
    assert isinstance(phrase, Bound)
    return phrase


@pytest.mark.parametrize(
    ("text", "value", "part"),
    [
        ("total under 60 s", 40e9, 0.5),
        ("total under 60 s", 80e9, -0.25),
        ("cached share over 50%", 0.75, 0.5),
        ("turns is 8", 8, None),
        ("retries at most 0", 0, None),
    ],
)
def test_room_is_a_part_of_the_figure(text: str, value: float, part: float | None):
    assert room(bound(text), value) == part


@pytest.mark.parametrize(("ms", "part"), [(1100, 0.0), (1000, 0.1), (960, 0.146), (916, None), (1101, None)])
def test_a_measured_time_with_under_a_fifth_of_room_is_little(ms: float, part: float | None):
    """Field note B26: 1.1 s are 20% above 916.7 ms; and what is broken isn't kept with little room."""
    found = little(judge(parse("total under 1.1 s"), taking(ms)))
    assert found == (None if part is None else pytest.approx(part, abs=0.001))


def test_counts_and_replayed_times_are_exact():
    replayed = run_of(turn(1, [("prefill", 1000)], provenance=Provenance.REPLAYED), provenance=Provenance.REPLAYED)
    for text, run in [("turns at most 1", taking(1000)), ("total under 1.1 s", replayed), ("prefix stable", replayed)]:
        assert little(judge(parse(text), run)) is None


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_of_any_runs_the_worst_decides_the_room(times: list[int]):
    found = spread(parse("total under 60 s"), [Seen(taking(ms), Figures()) for ms in times])
    assert found.values == tuple(sorted(ms * 1_000_000 for ms in times))
    assert found.kept == sum(ms <= 60_000 for ms in times)
    assert found.room == pytest.approx(60_000 / max(times) - 1)
    assert found.is_little == (0 <= 60_000 / max(times) - 1 < LEAST)
    assert found.quantile(0) == found.values[0]
    assert found.quantile(1) == found.values[-1]


def test_a_quantile_is_a_value_that_was_seen():
    found = spread(parse("total under 60 s"), [Seen(taking(ms), Figures()) for ms in range(1, 11)])
    assert found.quantile(0.9) == 9_000_000
    assert found.median == 5_500_000

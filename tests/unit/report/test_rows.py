import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Drift, Verdict
from pytest_agentlatency.report.rows import call_cell, phase_cells, rounded, total_cell, verdict_cell
from tests.support.plain_runs import MS, call, run_of, turn, usage


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**13), min_size=1), st.sampled_from([1, 1000, MS]))
def test_rounded_parts_sum_to_the_rounded_sum_and_none_moves_by_a_whole_unit(parts: list[int], scale: int):
    whole = rounded(parts, scale)
    assert sum(whole) == (sum(parts) + scale // 2) // scale
    assert all(abs(shown * scale - part) < scale for shown, part in zip(whole, parts, strict=True))


def test_three_phases_of_a_third_of_a_millisecond_show_as_one_in_all():
    assert rounded([400_000, 400_000, 400_000], MS) == [1, 0, 0]


def test_cells_of_a_turn_sum_to_its_total():
    made = turn(1, [("prefill", 100.4), ("decode", 200.4), ("tool", 0.4)])
    cells = phase_cells(made, MS)
    assert (cells[Phase.PREFILL], cells[Phase.DECODE], cells[Phase.TOOL]) == ("101  33%", "200  67%", "0  <1%")
    assert total_cell(made, MS) == "301"
    assert cells[Phase.RETRY] == "-"


def test_an_unsplit_call_has_neither_prefill_nor_decode():
    cells = phase_cells(turn(1, [("unsplit", 900), ("tool", 100)], streamed=False), MS)
    assert (cells[Phase.PREFILL], cells[Phase.DECODE], cells[Phase.UNSPLIT]) == ("n/a", "n/a", "900  90%")


def test_prefill_of_a_run_with_an_unsplit_call_is_a_lower_bound_without_a_share():
    run = run_of(turn(1), turn(2, [("unsplit", 900)], at=1000, streamed=False))
    assert phase_cells(run, MS)[Phase.PREFILL] == "≥500"


@pytest.mark.parametrize(("provenance", "mark"), [("projected", "~"), ("estimated", "≈"), ("replayed", "")])
def test_cells_carry_the_mark_of_their_provenance(provenance: str, mark: str):
    made = turn(1, provenance=Provenance(provenance))
    assert total_cell(made, MS) == f"{mark}1,000"
    assert call_cell(made, made.call.ttft, MS) == f"{mark}500"
    assert phase_cells(made, MS)[Phase.PREFILL] == f"{mark}500  50%"


def test_what_the_live_request_is_to_the_recorded_one():
    drift = Drift(usage(1000).context, usage(2240).context)
    assert verdict_cell(call(1, usage(1))) == ""
    assert verdict_cell(call(1, usage(1), verdict=Verdict.IDENTICAL)) == "identical"
    assert verdict_cell(call(1, usage(1), verdict=Verdict.DRIFTED, drift=drift)) == "drifted +1,240"

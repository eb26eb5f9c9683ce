import json
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Drift, Run, Verdict
from pytest_agentlatency.report.summary import Entry, entry, lines
from tests.support.plain_runs import grown, run_of, turn, usage
from tests.support.run_strategies import a_few, runs


def made(test: str, run: Run, *texts: str, mode: str = "replayed") -> Entry:
    return entry(test, mode, run, [judge(parse(text), run) for text in texts])


DRIFTED = run_of(turn(1, verdict=Verdict.IDENTICAL), turn(2, at=1000, verdict=Verdict.DRIFTED), recorded_turns=5)
ENTRIES = [
    made("test_b", grown(1000, 2000), "turns at most 1", "ttft under 1 s", "prefix stable", "context growth is linear"),
    made("test_a", DRIFTED, "turns at most 2"),
    made("test_c", grown(1000), mode="recorded"),
]


def test_a_session_in_a_few_lines():
    assert lines(ENTRIES) == [
        "3 runs: 1 recorded, 2 replayed",
        "budgets: 2 kept, 1 broken, 1 not measured, 1 inconclusive",
        "calls: 1 identical, 1 drifted",
        "1 run shorter than recorded: test_a (2/5 turns)",
    ]


def test_verbose_adds_a_line_a_test():
    all_rulings = "1 kept, 1 broken, 1 not measured, 1 inconclusive"
    assert lines(ENTRIES, 1)[4:] == [
        "  test_a: replayed, 2 turns, 2.00 s, context 2,000; 1 kept; 1 drifted",
        f"  test_b: replayed, 2 turns, 2.00 s, context 2,000; {all_rulings}; 2 turns, budget 1",
        "  test_c: recorded, 1 turn, 1.00 s, context 1,000; no budgets",
    ]


def test_a_measured_time_that_is_kept_with_little_room_is_named():
    """Field note B26."""
    told = [made("test_b", grown(1000), "total under 1.1 s", "turns at most 1", mode="recorded")]
    assert lines(told)[-1] == "kept with little headroom, and measured: test_b ('total under 1.1 s' by 10%)"
    assert lines([made("test_b", grown(1000), "total under 1.5 s", mode="recorded")])[-1] == "budgets: 1 kept"


def changed(provenance: Provenance, *caution: str) -> Mapping[str, int]:
    """What the growth of turn times is counted as; the caution is that of turn 2."""
    drift = Drift(usage(2000).context, usage(2500).context)
    run = run_of(turn(1), turn(2, at=1000, drift=drift, verdict=Verdict.DRIFTED, provenance=provenance))
    figures = Figures(caution=lambda _, at, __: next(iter(caution), "") if at and at.number == 2 else "")
    return entry("test_a", "replayed", run, [judge(parse("turn time growth is linear"), run, figures)]).basis


def test_growth_over_the_time_of_a_changed_call_that_no_model_speaks_for_is_called_that():
    assert changed(Provenance.REPLAYED, "2 calls can't tell") == {"recorded times of changed requests": 1}
    assert changed(Provenance.REPLAYED) == {"recorded times": 1}
    assert changed(Provenance.PROJECTED, "the model is too wide") == {"projected times": 1}


def test_a_session_without_runs_says_nothing():
    assert lines([], 2) == []


def test_what_does_not_occur_is_not_said():
    assert lines([made("test_c", grown(1000), mode="live")]) == ["1 run: 1 live"]


@a_few
@given(runs())
def test_an_entry_of_every_run_survives_the_way_from_a_worker(run: Run):
    one = made("test_x", run, "turns at most 3", "total under 1 s")
    assert Entry.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert lines([one], 1)


def test_an_entry_of_a_newer_version_is_read():
    one = ENTRIES[0]
    assert Entry.from_json({**one.to_json(), "colour": "blue"}) == one


def test_of_many_tests_without_a_budget_a_few_are_named_and_the_first_is_shown_what_it_would_keep():
    phrases = "turns at most 8\nprefix stable"
    many = [replace(made(f"test_{number}", grown(1000)), offered=phrases) for number in reversed(range(7))]
    assert lines(many)[1:] == [
        "7 tests without a budget: test_0, test_1, test_2, test_3, test_4 and 2 more",
        "the first would keep:",
        "    @pytest.mark.latency_budget(",
        '        "turns at most 8",',
        '        "prefix stable",',
        "    )",
    ]

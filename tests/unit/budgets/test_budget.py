from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.breaks import Break, Reason
from pytest_agentlatency.analysis.prefix import TurnPrefix, stable
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figure, Figures, ToolResult, Unit
from pytest_agentlatency.budgets.nearest import _examples
from pytest_agentlatency.budgets.phrase import Bound, Comparison, Limit, parse
from pytest_agentlatency.budgets.subjects import registry
from pytest_agentlatency.budgets.verdict import HEADLINE, Judgement, Ruling
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.model.usage import Tokens
from tests.support.plain_runs import MS, grown, laid_out, run_of, turn, usage
from tests.support.run_strategies import a_few, runs

EVEN = grown(1000, 2000, 3000, 4000, 5000, 6000)
"""Six turns of 1 s, half of it prefill."""


def verdict(text: str, run: Run = EVEN, figures: Figures | None = None) -> Judgement:
    return judge(parse(text), run, figures)


@pytest.mark.parametrize(
    ("at_limit", "past_it"),
    [
        ("context tokens under 6000 at turn 6", "context tokens under 5999 at turn 6"),
        ("context tokens < 6000", "context tokens < 5999"),
        ("turns at most 6", "turns at most 5"),
        ("turns at least 6", "turns at least 7"),
        ("turns is 6", "turns is 7"),
        ("calls <= 6", "calls <= 5"),
        ("prefill share under 50% at turn 6", "prefill share under 49.99% at turn 6"),
        ("total under 6 s", "total under 5.999999 s"),
        ("ttft under 500 ms", "ttft under 499.999999 ms"),
        ("output tokens over 240", "output tokens over 241"),
    ],
)
def test_a_value_equal_to_its_limit_is_kept_and_one_more_is_not(at_limit: str, past_it: str):
    assert verdict(at_limit).ruling is Ruling.KEPT
    assert verdict(at_limit).point is not None
    assert verdict(at_limit).point.headroom == 0
    assert verdict(past_it).ruling is Ruling.BROKEN


@a_few
@given(
    st.sampled_from(sorted({each.name for each in registry().values() if each.of_context is None})),
    runs(),
    st.integers(0, 10**13),
    st.integers(0, 10**13),
)
def test_a_looser_limit_never_breaks_what_a_tighter_one_keeps(name: str, run: Run, one: int, other: int):
    tight, loose = sorted([one, other])
    template = parse(next(text for text in _examples() if text.startswith(f"{name} ")))
    assert isinstance(template, Bound)
    unit = registry()[name].unit
    for comparison, first, second in [(Comparison.AT_MOST, tight, loose), (Comparison.AT_LEAST, loose, tight)]:
        harder = judge(replace(template, comparison=comparison, limit=Limit(first, unit)), run)
        easier = judge(replace(template, comparison=comparison, limit=Limit(second, unit)), run)
        if harder.ruling is Ruling.KEPT:
            assert easier.ruling is Ruling.KEPT
        if easier.ruling is Ruling.BROKEN:
            assert harder.ruling is Ruling.BROKEN


@a_few
@given(st.sampled_from(_examples()), runs())
def test_every_budget_can_be_judged_on_every_run(text: str, run: Run):
    judgement = judge(parse(text), run)
    assert judgement == judge(parse(text), run)
    assert (judgement.overrun is None) == (judgement.ruling is Ruling.KEPT)
    if judgement.overrun:
        assert 0 < len(judgement.overrun.headline) <= HEADLINE
    if judgement.ruling is Ruling.NOT_MEASURED:
        assert judgement.reason


def test_the_worst_turn_decides_and_every_turn_is_kept_as_evidence():
    run = laid_out([("prefill", 600), ("decode", 400)], [("prefill", 900), ("decode", 100)], [("decode", 1000)])
    judgement = verdict("prefill share under 50% at every turn", run)
    assert judgement.point is not None
    assert (judgement.point.turn, judgement.point.figure.value) == (2, 0.9)
    assert [point.ruling for point in judgement.points] == [Ruling.BROKEN, Ruling.BROKEN, Ruling.KEPT]


def test_the_turn_closest_to_the_limit_gives_the_headroom():
    judgement = verdict("context tokens under 7k after turn 3")
    assert judgement.point is not None
    assert (judgement.point.turn, judgement.point.headroom) == (6, 1000)
    assert [point.turn for point in judgement.points] == [4, 5, 6]


def test_a_turn_that_the_run_does_not_have_says_so():
    judgement = verdict("prefill share under 50% at turn 6", grown(1, 2, 3, 4, 5))
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.fails
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "no turn 6: the run has 5 turns"


def test_a_scope_without_any_turn_is_not_kept_in_silence():
    judgement = verdict("context tokens under 20k after turn 6")
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.reason == "nothing from turn 7: the run has 6 turns"


def test_one_broken_turn_breaks_the_budget_though_another_is_not_measured():
    run = run_of(turn(1, [("prefill", 900), ("decode", 100)]), turn(2, [("unsplit", 900)], at=1000, streamed=False))
    assert verdict("prefill share under 50% at every turn", run).ruling is Ruling.BROKEN
    assert verdict("prefill share under 95% at every turn", run).ruling is Ruling.NOT_MEASURED


@pytest.mark.parametrize("more", [{"streamed": False}, {"flags": frozenset({"buffered"})}, {}])
@pytest.mark.parametrize("text", ["prefill share under 99%", "ttft under 1 min", "decode time under 1 min at turn 1"])
def test_what_cannot_be_measured_fails_instead_of_passing(text: str, more: dict):
    judgement = verdict(text, run_of(turn(1, [("unsplit", 900)], **more)))
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.fails


def test_zero_milliseconds_are_a_value():
    run = run_of(turn(1, [("prefill", 0), ("decode", 5)]))
    assert verdict("ttft under 1 ms", run).ruling is Ruling.KEPT
    assert verdict("ttft at least 1 ms", run).ruling is Ruling.BROKEN


# --- a run shorter than its recording


SHORT = grown(1000, 2000, recorded_turns=5)


@pytest.mark.parametrize("text", ["total under 60 s", "output tokens under 1k", "prefill share under 90%"])
def test_a_run_cut_short_is_no_improvement(text: str):
    judgement = verdict(text, SHORT)
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.reason.startswith("the run made 2 of 5 recorded turns")


def test_a_run_cut_short_can_still_be_too_slow():
    assert verdict("total under 1 s", SHORT).ruling is Ruling.BROKEN


def test_turns_and_calls_of_a_run_cut_short_are_what_was_made():
    assert verdict("turns at most 2", SHORT).ruling is Ruling.KEPT
    assert verdict("calls at most 1", SHORT).ruling is Ruling.BROKEN


def test_turns_that_a_run_cut_short_did_not_make_are_not_evaluated():
    assert verdict("ttft under 1 s at turn 4", SHORT).reason == "no turn 4: the run made 2 of 5 recorded turns"
    assert verdict("ttft under 1 s at every turn", SHORT).reason == "the run made 2 of 5 recorded turns"


# --- projections


def projected(*, context: int = 1000) -> Run:
    return run_of(
        turn(1, provenance=Provenance.PROJECTED, used=usage(context, provenance=Provenance.PROJECTED)),
        provenance=Provenance.PROJECTED,
    )


def within(low: float, high: float) -> Figures:
    return Figures(interval=lambda *_: (low * MS, high * MS))


def test_projected_tokens_gate():
    assert verdict("context tokens under 999 at turn 1", projected()).ruling is Ruling.BROKEN


def test_projected_time_without_an_interval_is_advice():
    judgement = verdict("ttft under 400 ms", projected())
    assert judgement.ruling is Ruling.ADVICE
    assert not judgement.fails
    assert judgement.reason == "projected without an interval: no reason to fail"
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "~500 ms ttft at turn 1, budget 400 ms"


def test_projected_time_breaks_a_budget_only_with_its_whole_interval():
    assert verdict("ttft under 400 ms", projected(), within(401, 600)).ruling is Ruling.BROKEN
    assert verdict("ttft under 400 ms", projected(), within(400, 600)).ruling is Ruling.ADVICE
    assert verdict("ttft over 600 ms", projected(), within(401, 599)).ruling is Ruling.BROKEN
    assert verdict("ttft over 600 ms", projected(), within(401, 600)).ruling is Ruling.ADVICE


def test_a_replayed_time_gates():
    run = run_of(turn(1, provenance=Provenance.REPLAYED), provenance=Provenance.REPLAYED)
    assert verdict("ttft under 400 ms", run).ruling is Ruling.BROKEN


# --- only what was measured


def under(provenance: Provenance) -> Run:
    """A run whose times and usage are of one provenance, as a session of that kind gives it."""
    known = Provenance.MEASURED if provenance is Provenance.REPLAYED else provenance  # the usage that was recorded
    return run_of(turn(1, used=usage(900, provenance=known), provenance=provenance), provenance=provenance)


MEASURED_PHRASES = [
    "measured total under 60 s",
    "measured ttft under 60 s",
    "measured context under 20k",
    "measured turns at most 8",
]


@pytest.mark.parametrize("text", MEASURED_PHRASES)
@pytest.mark.parametrize("provenance", [Provenance.MEASURED, Provenance.SERVER])
def test_measured_figures_keep_a_budget_that_wants_them(text: str, provenance: Provenance):
    """Field note E2."""
    assert verdict(text, under(provenance)).ruling is Ruling.KEPT


@pytest.mark.parametrize("text", MEASURED_PHRASES)
@pytest.mark.parametrize(
    "provenance", [Provenance.REPLAYED, Provenance.PROJECTED, Provenance.ESTIMATED, Provenance.UNKNOWN]
)
def test_other_figures_never_do(text: str, provenance: Provenance):
    """Field note E2: an error, not a pass."""
    judgement = verdict(text, under(provenance))
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.fails
    assert verdict(text.removeprefix("measured "), under(provenance)).ruling is Ruling.KEPT


def test_a_replayed_figure_is_told_with_what_would_measure_it():
    judgement = verdict("measured total under 60 s", under(Provenance.REPLAYED))
    assert judgement.point is not None
    assert (judgement.point.figure.value, judgement.point.figure.provenance) == (1000 * MS, Provenance.REPLAYED)
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "not measured but replayed: total"
    assert judgement.overrun.evidence == ("replayed, and the budget wants it measured",)
    assert judgement.overrun.next_step.startswith("run it with --latency-mode=live")


def test_an_estimate_is_told_to_be_one_in_every_mode():
    figures = Figures(results=lambda _: [ToolResult(1, "search", 300)])
    judgement = verdict("measured tool results under 2k", grown(1000), figures)
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "not measured but estimated: tool result tokens"
    assert judgement.overrun.next_step.startswith("leave 'measured' out")


def test_a_total_of_fewer_turns_is_told_to_be_that_though_measured_figures_are_wanted():
    judgement = verdict("measured total under 60 s", SHORT)
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "not measured: total"
    assert judgement.reason.startswith("the run made 2 of 5 recorded turns")


def test_growth_that_wants_measured_times_is_not_judged_on_replayed_ones():
    live = grown(*[1000] * 8)
    replayed = replace(
        live,
        lanes=(replace(live.lanes[0], turns=tuple(replace(t, provenance=Provenance.REPLAYED) for t in live.turns)),),
        provenance=Provenance.REPLAYED,
    )
    assert verdict("measured turn time growth is linear", live).ruling is Ruling.KEPT
    for text in ("measured turn time growth is linear", "measured context growth is linear"):
        assert verdict(text, replayed).ruling is Ruling.NOT_MEASURED
        assert verdict(text.removeprefix("measured "), replayed).ruling is Ruling.KEPT


# --- growth


@pytest.mark.parametrize(
    ("contexts", "kept", "broken"),
    [
        ([1000 + 700 * t for t in range(8)], ["linear", "at most linear", "exactly linear"], ["constant"]),
        ([1000 + 3 * (-1) ** t for t in range(8)], ["constant", "linear"], ["exactly linear"]),
        ([1000 * 2**t for t in range(8)], [], ["constant", "linear", "at most linear"]),
        ([1000 + 100 * t * t for t in range(8)], [], ["linear"]),
    ],
)
def test_context_growth_is_an_upper_bound(contexts: list[int], kept: list[str], broken: list[str]):
    run = grown(*contexts)
    assert [verdict(f"context growth is {law}", run).ruling for law in kept] == [Ruling.KEPT] * len(kept)
    assert [verdict(f"context growth is {law}", run).ruling for law in broken] == [Ruling.BROKEN] * len(broken)


def test_growth_over_a_run_cut_short_says_so():
    judgement = verdict("context growth is linear", replace(EVEN, recorded_turns=9))
    assert judgement.ruling is Ruling.KEPT
    assert judgement.reason.endswith("; the run made 6 of 9 recorded turns")


def test_three_turns_are_too_few_to_tell_growth():
    judgement = verdict("context growth is linear", grown(1000, 2000, 3000))
    assert judgement.ruling is Ruling.INCONCLUSIVE
    assert not judgement.fails


def test_a_linear_context_read_anew_each_turn_is_superlinear_work_in_total():
    contexts = [2000 + 800 * t for t in range(10)]
    uncached = grown(*contexts)
    steps = [turn(1, used=usage(2000))]
    steps += [turn(t + 1, used=usage(c, cached=c - 800), at=1000 * t) for t, c in enumerate(contexts) if t]
    text = "cumulative prefill growth is at most linear"
    assert verdict("context growth is linear", uncached).ruling is Ruling.KEPT
    assert verdict(text, uncached).ruling is Ruling.BROKEN
    assert verdict(text, run_of(*steps)).ruling is Ruling.KEPT


def test_a_compaction_is_allowed_where_the_history_was_cut():
    contexts = [1000, 2000, 3000, 4000, 5000, 6000, 1500, 2500, 3500, 4500, 5500]
    judgement = verdict("context growth is linear", grown(*contexts), Figures(cuts=lambda _: (7,)))
    assert judgement.ruling is Ruling.KEPT


def test_growth_of_a_series_nobody_measured_fails():
    judgement = verdict("tool result growth is linear")
    assert judgement.ruling is Ruling.NOT_MEASURED
    assert judgement.reason == "the tokens of tool results were not counted"


# --- prefix


def _break(turn: int, reason: Reason) -> TurnPrefix:
    found = Break(turn, reason, "system[0]", 12, "today is Monday", "today is Tuesday", "text differs", Tokens(2000), 0)
    return TurnPrefix(turn, Tokens(10), Tokens(2010), found)


PREFIXES = [_break(3, Reason.SYSTEM_CHANGED), _break(5, Reason.TOOLS_CHANGED)]
BREAKS = Figures(stability=lambda _, except_turns: stable(PREFIXES, except_turns))


def test_a_broken_prefix_names_turn_and_reason():
    judgement = verdict("prefix stable", figures=BREAKS)
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "2 prefix breaks, first at turn 3: system_changed"
    assert judgement.overrun.evidence[:2] == (
        "turn 3: system_changed at system[0], text differs: 2,000 tokens to read again",
        "  'today is Monday' became 'today is Tuesday'",
    )


def test_expected_breaks_are_left_out():
    judgement = verdict("prefix stable except turns 3, 5", figures=BREAKS)
    assert judgement.ruling is Ruling.KEPT
    assert judgement.reason == "allowed to break: turn 3 (system_changed), turn 5 (tools_changed)"
    judgement = verdict("prefix stable except turns 3", figures=BREAKS)
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "1 prefix break, first at turn 5: tools_changed"


def test_a_prefix_that_nobody_compared_fails():
    assert verdict("prefix stable").ruling is Ruling.NOT_MEASURED


# --- tool results


def test_results_as_a_share_of_the_context():
    figures = Figures(held=lambda _run, turn, _tool: Figure(200 * turn.number + 1, Unit.TOKENS, Provenance.ESTIMATED))
    judgement = verdict("tool 'search' results at most 20% of context", figures=figures)
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert "budget 20% of context" in judgement.overrun.headline

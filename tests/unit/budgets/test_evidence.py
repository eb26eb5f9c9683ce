import pytest

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figure, Figures, ToolResult, Unit
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Overrun, headline
from pytest_agentlatency.model.run import Difference, Drift, Run, Verdict
from tests.support.plain_runs import grown, laid_out, run_of, turn, usage


def told(text: str, run: Run, figures: Figures | None = None) -> Overrun:
    overrun = judge(parse(text), run, figures).overrun
    assert overrun is not None
    return overrun


SLOW = laid_out(*[[("prefill", 100 * 2**t), ("decode", 400), ("tool", 100, "search")] for t in range(6)])
RESULTS = Figures(
    results=lambda _: [ToolResult(2, "search", 3100)],
    held=lambda *_: Figure(900, Unit.TOKENS),
    unused_tools=lambda _: ["map"],
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("prefill share under 50% at turn 6", "86% prefill at turn 6, budget 50%"),
        ("prefill time under 1 s", "6.30 s prefill, budget 1.00 s"),
        ("ttft under 800 ms at every turn", "3.20 s ttft at turn 6, budget 800 ms"),
        ("turns at most 5", "6 turns, budget 5"),
        ("turns at least 7", "6 turns, budget at least 7"),
        ("turns is 7", "6 turns, budget exactly 7"),
        ("context under 4k after turn 2", "6,000 context tokens at turn 6, budget 4,000"),
        ("cached share over 80% at turn 2", "0.0% cached at turn 2, budget at least 80%"),
        ("tool 'search' time under 50 ms", "600 ms tool 'search', budget 50 ms"),
        ("tool results under 2k tokens each", "≈3,100 tool result tokens in one, budget 2,000"),
        (
            "tool 'x' results at most 9% of context at turn 1",
            "90% tool 'x' result tokens at turn 1, budget 9.0% of context",
        ),
        ("unused tools at most 0", "1 unused tools, budget 0"),
        ("request bytes at most 1 bytes at turn 2", "2 bytes request bytes at turn 2, budget 1 bytes"),
        ("kv cache under 2 GB at turn 2", "not measured: kv cache at turn 2"),
        ("turn time growth is linear", "t^2.73 superlinear turn time growth, budget linear"),
    ],
)
def test_headlines_put_the_numbers_first(text: str, line: str):
    assert told(text, SLOW, RESULTS).headline == line


def test_a_value_that_looks_like_its_limit_is_shown_with_more_digits():
    run = laid_out([("prefill", 50.3), ("decode", 49.7)])
    assert told("prefill share under 50%", run).headline == "50.3% prefill, budget 50%"
    assert told("total under 99.9999 ms", run).headline == "100 ms total, budget 99.9999 ms"


def test_a_long_tool_name_does_not_push_the_limit_out():
    line = told(f"tool '{'x' * 70}' time at least 1 s", SLOW).headline
    assert line == f"0 ms tool '{'x' * 19}…', budget at least 1.00 s"


def test_headline_leaves_out_the_place_before_the_name():
    assert headline("61% ", "prefill", " at turn 6", ", budget 50%") == "61% prefill at turn 6, budget 50%"
    assert headline("61% ", "p" * 60, " at turn 6", ", budget 50%") == "61%, budget 50%"
    assert headline("61% ", "p" * 30, " at turn 600000000", ", budget 50%") == f"61% {'p' * 30}, budget 50%"


def test_evidence_gives_the_parts_the_limit_and_where_the_number_comes_from():
    overrun = told("prefill share under 50% at turn 6", SLOW)
    assert overrun.evidence[0] == "turn 6: 86% (3.20 s of 3.70 s), limit 50% inclusive, measured"
    assert overrun.evidence[1] == "context by turn: 1,000  2,000  3,000  4,000  5,000  6,000"


def test_evidence_lists_the_five_worst_turns():
    evidence = told("context under 1 at every turn", grown(*range(1000, 13000, 1000))).evidence
    assert [line.split(":")[0] for line in evidence[:6]] == [
        "turn 12",
        "turn 11",
        "turn 10",
        "turn 9",
        "turn 8",
        "and 7 more",
    ]
    assert "…" in evidence[6]


def test_evidence_names_what_a_drifted_turn_changed():
    drift = Drift(usage(10_000).context, usage(11_240).context, Difference("messages[0].content[0].text", "a", "b"))
    run = run_of(turn(1, used=usage(11_240), drift=drift, verdict=Verdict.DRIFTED))
    evidence = told("context under 11k at turn 1", run).evidence
    assert "turn 1 differs from the recording: +1,240 tokens, first at messages[0].content[0].text" in evidence


def test_the_context_is_no_evidence_of_a_slow_tool():
    assert not any("context" in line for line in told("tool time under 1 ms", SLOW).evidence)


def test_growth_evidence_of_turn_times_names_the_phase_that_drives_them():
    # slopes of 100 * 2**t over 1 to 5 turns: 100 150 200 233 300 375 400 467 ...; the eighth of fifteen is the median
    assert told("turn time growth is linear", SLOW).evidence[1] == "driven by prefill: +467 ms of +467 ms a turn"


def test_growth_evidence_gives_exponent_and_chance():
    # turn times of 100 * 2**t + 500: area 41.5 / 155, and 155 / 41.5 - 1 = 2.73
    line = told("turn time growth is linear", SLOW).evidence[0]
    assert "2.73" in line
    assert "permutation" in line

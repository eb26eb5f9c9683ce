from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.nearest import _examples
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import HEADLINE, Judgement
from pytest_agentlatency.model.recording import Facts
from pytest_agentlatency.model.run import Change, Drift, Retiming, Run, Verdict
from pytest_agentlatency.report.failure import budgets, message, sections
from tests.support.plain_runs import grown, run_of, turn, usage
from tests.support.run_strategies import a_few, runs

RUN = grown(1000, 2000, 3000, 4000, 5000, 6000, facts=Facts(recorded="2026-03-01T10:00:00Z"))


def judged(*texts: str, run: Run = RUN) -> list[Judgement]:
    return [judge(parse(text), run) for text in texts]


def test_one_broken_budget():
    assert message(judged("prefill share under 40% at turn 6", "turns at most 8"), RUN).splitlines() == [
        "50% prefill at turn 6, budget 40%",
        "",
        "'prefill share under 40% at turn 6': 50% prefill at turn 6, budget 40%",
        "  turn 6: 50% (500 ms of 1.00 s), limit 40% inclusive, measured",
        "  context by turn: 1,000  2,000  3,000  4,000  5,000  6,000",
        "",
        "next step: shrink the context: it grew from 1,000 to 6,000 tokens over 6 turns; summarise or drop",
        "  older turns",
        "recorded 2026-03-01T10:00:00Z",
    ]


def test_no_line_is_wider_than_100_columns_and_no_word_is_lost():
    path = "messages[2].content[0]"
    drift = Drift(
        usage(1154).context,
        usage(1370).context,
        changes=tuple(Change("result of search", path, 216 - n, 2) for n in range(5)),
    )
    run = run_of(
        turn(1), turn(2, at=1000, drift=drift, verdict=Verdict.DRIFTED, retimed=Retiming(30, 64, 60, 70, (50, 80)))
    )
    phrase = "context tokens under 1k at turn 2"
    text = message(judged(phrase, run=run), run)
    assert max(map(len, text.splitlines())) <= 100
    told = "result of search +216 tokens at messages[2].content[0], since turn 2, and 4 more pieces"
    assert told in " ".join(text.split())
    long = "ttft under 0.001 ms at turns 1, 2 and 11, 12, 13, 14, 15, 16, 17, 18, 19, 20"
    for title, section in sections(run, judged(long, run=run)):
        assert max(map(len, section.splitlines())) <= 100, title


def test_of_several_the_broken_come_before_the_unmeasured_and_share_one_next_step():
    text = message(judged("prefix stable", "ttft under 1 ms at turn 9", "calls at most 5", "turns at most 5"), RUN)
    assert text.startswith("6 calls, budget 5 (+3 more)\n")
    assert text.count("next step:") == 1
    assert "'prefix stable': not measured: prefix" in text


def test_evidence_that_several_budgets_share_is_told_once():
    text = message(judged("prefill share under 1% at turn 6", "ttft under 1 ms at turn 6"), RUN)
    assert text.count("context by turn") == 1


def test_kept_and_inconclusive_budgets_say_nothing_unless_strict():
    run = grown(1000, 2000, 3000)
    judgements = judged("turns at most 8", "context growth is linear", run=run)
    assert message(judgements, run) == ""
    assert message(judgements, run, strict=True).startswith("inconclusive: context growth, budget linear\n")


@a_few
@given(st.lists(st.sampled_from(_examples()), max_size=5), runs())
def test_every_run_and_budget_gives_a_message_whose_first_line_survives_a_summary(texts: list[str], run: Run):
    judgements = judged(*texts, run=run)
    text = message(judgements, run)
    assert bool(text) == any(each.fails for each in judgements)
    assert len(text.split("\n")[0]) <= HEADLINE
    assert len(budgets(judgements)) == len(texts)


def test_sections_are_the_table_and_the_budgets():
    found = dict(
        sections(RUN, judged("turns at most 8", "ttft under 1 ms", "prefix stable", "context growth is linear"))
    )
    assert list(found) == ["latency: turns and phases", "latency: budgets"]
    assert found["latency: turns and phases"].startswith("turn  total")
    lines = found["latency: budgets"].splitlines()
    assert lines[0] == "kept          turns at most 8: 6, headroom 2 (measured)"
    assert lines[1] == "broken        ttft under 1 ms: 500 ms at turn 1 (measured)"
    assert lines[2] == "not measured  prefix stable: the requests' prefixes were not compared"
    assert lines[3].startswith("kept          context growth is linear: no evidence of superlinear growth")


def test_little_headroom_of_a_measured_time_is_marked():
    """Field note B26."""
    first, second = budgets(judged("total under 6.3 s", "total under 9 s"))
    assert first.endswith(": 6.00 s, headroom 300 ms, only 5.0% of the figure: it may break next time (measured)")
    assert second == "kept          total under 9 s: 6.00 s, headroom 3.00 s (measured)"


def test_without_budgets_there_is_the_table_only():
    assert [title for title, _ in sections(RUN, [])] == ["latency: turns and phases"]

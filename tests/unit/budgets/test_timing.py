from pytest_agentlatency.budgets.figure import Figure, Unit
from pytest_agentlatency.budgets.subjects import Question, registry
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from tests.support.plain_runs import MS, grown, laid_out, run_of, turn, usage

SEARCH = [("prefill", 600), ("decode", 200), ("tool", 150, "search"), ("tool", 50, "calc")]


def ask(name: str, run: Run, at: int | None = None, **more) -> Figure:
    return registry()[name].measure(Question(run, run.turn(at) if at else None, **more))


def test_shares_and_times_of_a_turn_and_of_the_run():
    run = laid_out(SEARCH, [("prefill", 900), ("overhead", 100)])
    assert ask("prefill share", run, 1).value == 0.6
    assert ask("prefill share", run, 2).value == 0.9
    assert ask("prefill share", run).value == 0.75
    assert ask("prefill time", run).value == 1500 * MS
    assert ask("total", run).value == 2000 * MS
    assert ask("turn time", run, 2).value == 1000 * MS


def test_one_tools_time_is_told_from_the_others():
    run = laid_out(SEARCH, SEARCH)
    assert ask("tool time", run, tool="search").value == 300 * MS
    assert ask("tool time", run, 1, tool="calc").value == 50 * MS
    assert ask("tool share", run, 1, tool="search").value == 0.15
    assert ask("tool time", run, tool="unheard of").value == 0


def test_a_phase_that_did_not_occur_is_zero_and_not_missing():
    assert ask("retry time", grown(1), 1).value == 0


def test_figures_of_one_call():
    made = turn(1, [("prefill", 400), ("decode", 780)], used=usage(10, output=40))
    run = run_of(made)
    assert ask("ttft", run, 1).value == 400 * MS
    assert ask("time to first output", run, 1).value == 400 * MS
    assert ask("tpot", run, 1).value == 20 * MS  # 780 ms over 39 steps, as MLPerf defines it


def test_a_call_that_was_not_streamed_has_no_prefill():
    run = run_of(turn(1), turn(2, [("unsplit", 900)], at=1000, streamed=False))
    assert ask("prefill share", run, 2) == Figure(None, Unit.SHARE, Provenance.UNKNOWN, "the call was not streamed")
    assert ask("prefill share", run).reason == "turn 2: the call was not streamed"
    assert ask("ttft", run, 2).reason == "the call was not streamed"
    assert ask("turn time", run, 2).value == 900 * MS


def test_a_call_buffered_by_a_proxy_has_no_prefill():
    run = run_of(turn(1, [("unsplit", 900)], flags=frozenset({"buffered"})))
    for name in ("prefill share", "prefill time", "decode share", "ttft"):
        assert ask(name, run, 1).reason == "the stream was buffered on the way"


def test_a_call_without_any_token_has_no_ttft():
    run = run_of(turn(1, [("unsplit", 900)]))
    assert ask("ttft", run, 1).value is None
    assert ask("ttft", run, 1).reason == "the call gave no token"


def test_a_recording_without_times_says_so():
    run = Run(lanes=grown(1, 2).lanes)
    assert ask("total", run).reason == "no timings: they were not recorded"
    assert ask("prefill share", run).reason == "no timings: they were not recorded"


def test_one_output_token_has_no_time_per_token():
    assert ask("tpot", run_of(turn(1, used=usage(10, output=1))), 1).value is None

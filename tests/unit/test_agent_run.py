"""The plain figures are those of the run, and the same that budgets judge."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from pytest_agentlatency.agent_run import AgentRun
from pytest_agentlatency.analysis.growth import Law
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.testing.builders import growing, recording, tool, turn
from tests.support.resend import resend
from tests.support.sessions import replaying


@contextmanager
def replayed(observed, change=lambda _, body: body):
    with replaying(Document(observed)) as session:
        run = AgentRun(session)
        resend(observed, change)
        yield run


def multi_pass(observed, call):
    """The recording with searches of the server's own in the usage of one call."""

    def changed(attempt):
        if attempt.call != call:
            return attempt
        own = b'"usage": {"server_tool_use": {"web_search_requests": 2}, "input_tokens": 50000, "passes": '
        marked = [chunk.replace(b'"usage": {"input_tokens": ', own) for chunk in attempt.response.chunks]
        return replace(attempt, response=replace(attempt.response, chunks=tuple(marked)))

    return replace(observed, attempts=tuple(changed(each) for each in observed.attempts))


def test_times_are_the_recorded_ones_in_seconds():
    with replayed(recording([turn(2000, prefill_ms=200, decode_ms=500, tool_ms=100), turn(3000)])) as run:
        assert run.turn(1).ttft == 0.2
        assert run.turn(1).time("decode") == 0.5
        assert run.turn(1).share("tool") == 0.125
        assert run.turn(1).duration == 0.8
        assert run.duration == 1.5
        assert run.time("prefill") == 0.4


def test_tokens_are_those_of_the_recorded_usage():
    turns = [turn(2000, 60, tool_ms=1), turn(3000, cached=1500, written=100)]
    with replayed(recording(turns)) as run:
        assert [each.context_tokens for each in run.turns] == [2000, 3000]
        assert run.turn(1).output_tokens == 60
        assert run.turn(2).cached_share == 0.5
        assert run.turn(2).prefill_work == 1500
        assert run.cached_share == 0.3  # 1,500 of 5,000


def test_steps_are_how_much_the_context_rose():
    with replayed(recording([turn(2000, tool_ms=1), turn(3500, tool_ms=1), turn(4000)])) as run:
        assert [each.step for each in run.turns] == [None, 1500, 500]
        assert run.largest_step == 1500


def test_results_are_counted_by_tool_at_the_turn_that_brought_them():
    turns = [
        turn(2000, tools=(tool("search", 1),)),
        turn(4000, tools=(tool("refund", 1),)),
        turn(5000),
    ]
    with replayed(recording(turns)) as run:
        assert run.turn(1).tool_result_tokens() == 0
        search, refund = run.turn(2).tool_result_tokens("search"), run.turn(3).tool_result_tokens("refund")
        # what the context grew by, but for the answer before it
        assert 1850 < search <= 2000
        assert 850 < refund <= 1000
        assert run.turn(2).tool_result_tokens("refund") == 0
        assert run.tool_result_tokens() == search + refund
        assert run.tool_result_tokens(each=True) == search


def test_what_is_sent_again_is_the_context_of_the_turn_before_and_more():
    with replayed(recording(growing("linear", 3))) as run:
        assert [each.reread_tokens for each in run.turns] == [0, 2000, 3000]
        assert run.reread_tokens == 5000


def test_tools_that_nobody_called_are_named():
    with replayed(recording(growing("linear", 3), tools=["search", "refund"])) as run:
        assert run.unused_tools == ("refund",)


@pytest.mark.parametrize(
    ("series", "law"),
    [
        ("context", Law.LINEAR),
        ("cumulative prefill", Law.SUPERLINEAR),  # without a cache, every turn prefills everything
        ("output", Law.CONSTANT),
        ("tool result", Law.CONSTANT),
        ("turn time", Law.CONSTANT),
    ],
)
def test_each_series_has_a_law(series, law):
    with replayed(recording(growing("linear", 8))) as run:
        assert run.growth(series).law is law


def test_a_cache_makes_the_cumulative_prefill_linear():
    sizes = [2000 + 1000 * number for number in range(8)]
    turns = [turn(size, cached=size - 1000, tool_ms=1 if size < sizes[-1] else None) for size in sizes]
    with replayed(recording(turns)) as run:
        assert run.growth("cumulative prefill").law is Law.LINEAR


def test_turn_times_are_classified_in_milliseconds():
    with replayed(recording([turn(2000 * n, prefill_ms=100 * n, tool_ms=1) for n in range(1, 7)])) as run:
        assert run.growth("turn time").increments[:4] == (100, 100, 100, 100)


@pytest.mark.parametrize(
    ("phase", "figure"), [("prefill", "prefill_ms"), ("tool", "tool_ms"), ("overhead", "overhead_ms")]
)
def test_a_run_that_gets_slower_shows_which_phase_does(phase, figure):
    """Field note F9: "slower as it goes" has three causes, and each turn's phases tell them apart."""
    turns = [turn(2000 + 500 * number, **{"tool_ms": 50, figure: 100 * number}) for number in range(1, 8)]
    with replayed(recording(turns)) as run:
        assert run.growth("turn time").law is Law.LINEAR
        found = {each: {one.time(each) for one in run.turns} for each in ("prefill", "decode", "tool", "overhead")}
    assert [each for each, times in found.items() if len(times) > 1] == [phase]


@pytest.mark.parametrize(
    ("phase", "figure"), [("prefill", "prefill_ms"), ("tool", "tool_ms"), ("overhead", "overhead_ms")]
)
def test_the_phase_that_makes_turns_slower_is_named_with_its_slope(phase, figure):
    """Field note F9: three sessions that get slower by about 450 ms a turn, 410 ms of it in one phase."""
    others = {name: 20 for name in ("prefill_ms", "tool_ms", "overhead_ms") if name != figure}
    turns = [
        turn(2000 + 500 * n, **{figure: 410 * n} | {name: rise * n for name, rise in others.items()})
        for n in range(1, 9)
    ]
    with replayed(recording(turns)) as run:
        assert run.growth("turn time").driver == f"driven by {phase}: +410 ms of +450 ms a turn"
        assert run.growth("context").driver == ""


def test_a_turn_of_several_passes_has_no_context_and_keeps_its_number():
    """Its usage sums the passes: 50,000 tokens at turn 3 are no step of the context."""
    with replayed(multi_pass(recording(growing("linear", 6)), call=3)) as run:
        assert run.turn(3).context_tokens is None
        assert run.turn(3).step is None
        growth = run.growth("context")
        assert growth.law is Law.LINEAR
        assert growth.maximum == 7000
        assert growth.increments == (1000, 1000, 1000, 1000)  # across turn 3, the mean of two


def test_a_series_that_is_none_is_refused_with_those_that_are():
    with (
        replayed(recording([turn(2000)])) as run,
        pytest.raises(ValueError, match="growth of 'tokens' is not known: allowed are 'context', 'cumulative pre"),
    ):
        run.growth("tokens")


def test_a_sub_agents_lane_has_figures_of_its_own():
    turns = [turn(2000, tools=(tool("ask", 10, turns=[turn(500), turn(700)]),)), turn(3000)]
    with replayed(recording(turns)) as run:
        assert run.turn(2, lane=2).context_tokens == 700
        assert run.turn(1, lane=2).step is None
        assert run.turn(2, lane=2).step == 200
        assert run.turn(2, lane=2).tool_result_tokens() == 0
        assert run.turn(2, lane=2).reread_tokens == 500
        assert run.figure("re-read cost", lane=2) == 500
        assert run.figure("output tokens", lane=2) == run.turn(1, lane=2).output_tokens * 2
        assert run.growth("context", lane=2).increments == (200,)
        with pytest.raises(IndexError, match="no lane 3: the run has 2 lane"):
            run.figure("re-read cost", lane=3)


def test_it_is_known_whether_a_figure_was_asked_for():
    with replayed(recording([turn(2000)])) as run:
        with run.tool("search"), run.pause("approval"):
            run.delivered()
        assert not run.consulted
        assert run.turn(1).ttft
        assert run.consulted


def test_without_recorded_times_a_time_is_none_and_a_count_is_there():
    with replayed(recording([turn(2000)], timed=False)) as run:
        assert run.turn(1).ttft is None
        assert run.duration is None
        assert run.turn(1).context_tokens == 2000


def test_a_changed_request_is_counted_as_it_is_now():
    observed = recording(growing("linear", 3))
    with replayed(observed, lambda _, body: body.replace(b"You are an agent.", b"You are an agent." * 100)) as run:
        assert run.turn(1).verdict == "drifted"
        assert run.turn(1).context_tokens > 2200


def test_any_subject_of_a_budget_can_be_asked():
    with replayed(recording([turn(2000, tool_ms=1), turn(3000)])) as run:
        assert run.figure("turns") == 2
        assert run.figure("ttft", run.turn(1).details) == 200_000_000
        with pytest.raises(ValueError, match="'ttft' has no value over the run"):
            run.figure("ttft")
        with pytest.raises(KeyError):
            run.figure("speed")


def test_a_turn_that_is_not_there_is_refused():
    with replayed(recording([turn(2000)])) as run, pytest.raises(IndexError, match=r"no turn 2: lane 1 has 1 turn"):
        run.turn(2)

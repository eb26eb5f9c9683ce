"""Field note B18: what the model gave first and what the user got first are two moments, and both are kept."""

import asyncio
import threading
from dataclasses import replace
from functools import partial

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.agent_run import AgentRun
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import LiveCall, replayed
from pytest_agentlatency.analysis.fits import Fit
from pytest_agentlatency.analysis.prefill import Sample, fit
from pytest_agentlatency.analysis.retiming import retime
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Ruling
from pytest_agentlatency.capture import session as sessions
from pytest_agentlatency.capture.recorder import Recorder
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.cassette import document as documents
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Facts, Outcome, Request
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import FakeClock, Reply, SimulatedModel, strategies
from pytest_agentlatency.testing.builders import recording, tool, turn, with_longer_system
from tests.support.run_strategies import a_few
from tests.support.sessions import PLAN, replaying

MS = 1_000_000
ASK = Request("POST", "http://model/v1/messages", (), b"{}")
TOLD = fit([Sample(0, size, 200 * MS + size * MS // 10) for size in (500, 1000, 2000, 4000, 8000, 16_000, 32_000)])
KNOWN = Fit(TOLD, "a test")


@pytest.fixture
def clock():
    return FakeClock()


def gated(url, hand_over, clock, *, system="You are an agent.", question="hello", hold=3):
    """An agent that lets nothing through before it has seen `hold` pieces, and takes 100 ms over each."""
    messages = [{"role": "user", "content": question}]
    with (
        anthropic.Anthropic(base_url=url, api_key="x") as client,
        client.messages.stream(model="m", max_tokens=90, system=system, messages=messages) as events,
    ):
        clock.advance(ms=200)
        for number, _ in enumerate(events.text_stream, 1):
            clock.advance(ms=100)
            if number >= hold:
                hand_over()


@pytest.fixture
def recorded(clock, monkeypatch):
    """Two turns behind the gate, recorded from a model on loopback; nothing moves the run's clock but the agent."""
    with SimulatedModel(Reply("abcdefghijklmnopqrst")) as model:
        with monkeypatch.context() as patch:
            patch.setattr(sessions, "Recorder", partial(Recorder, clock))
            with Session(PLAN) as session:
                run = AgentRun(session)
                gated(model.url, run.delivered, clock)
                gated(model.url, run.delivered, clock, question="and then?", hold=5)
        yield session, model


def replay(document, model, hand_over=None):
    """The same agent against the recording; the finished session and its figures."""
    with replaying(document) as session:
        run = AgentRun(session)
        told = hand_over or run.delivered
        gated(model.url, told, FakeClock())
        gated(model.url, told, FakeClock(), question="and then?", hold=5)
    return session, run


def test_behind_a_gate_of_three_chunks_the_user_waits_as_much_longer(recorded):
    run = AgentRun(recorded[0])
    assert (run.turn(1).ttft, run.turn(1).delivered) == (0.2, 0.5)


def test_a_replay_gives_the_recorded_moment_to_the_nanosecond(recorded):
    """Through the disk's format; what the replayed agent does with its own hand-over changes nothing."""
    session, model = recorded
    before = session.told().run
    replaying_, _ = replay(session.document(), model)
    after = replaying_.told().run
    assert [call.delivered for call in after.calls] == [call.delivered for call in before.calls] == [500 * MS, 700 * MS]
    assert [call.ttft for call in after.calls] == [200 * MS] * 2
    assert replaying_.notes == ()


def test_a_recording_without_the_moment_makes_it_unknown_and_never_zero(recorded):
    session, model = recorded
    document = session.document()
    calls = tuple(replace(each, delivered=None) for each in document.recording.calls)
    older = replace(document, recording=replace(document.recording, calls=calls))
    assert b"delivered" not in documents.dumps(older)
    again, run = replay(older, model)
    assert [call.delivered for call in again.told().run.calls] == [None, None]
    assert run.details.calls[0].delivered is None
    (note,) = again.notes
    assert note.startswith("the agent hands its output on at ")
    assert "delivered is unknown there" in note
    judged = judge(parse("delivered under 800 ms at turn 1"), again.told().run)
    assert judged.ruling is Ruling.NOT_MEASURED
    assert judged.reason == (
        "turn 1: the agent didn't call agent_run.delivered() in this turn when it was recorded; record it again"
    )


def test_an_agent_that_hands_nothing_over_any_more_is_told(recorded):
    session, model = recorded
    again, _ = replay(session.document(), model, hand_over=lambda: None)
    assert [call.delivered for call in again.told().run.calls] == [500 * MS, 700 * MS]
    (note,) = again.notes
    assert "doesn't call agent_run.delivered() at " in note


def test_before_any_call_it_belongs_to_no_turn_and_is_noted():
    with Session(PLAN) as session:
        run = AgentRun(session)
        run.delivered()
    assert session.recording().calls == ()
    assert session.notes == (
        "agent_run.delivered() was called before the first model call: it belongs to no turn, and no figure holds it",
    )


def test_a_figure_asked_for_before_the_hand_over_is_not_kept(clock):
    """Figures are those of the run so far."""
    recorder = Recorder(clock)
    recorder.open_call()
    seen = recorder.events
    recorder.deliver()
    assert recorder.events != seen


# --- whose turn it is


def calls(recorder):
    return [call.delivered for call in recorder.recording(Facts()).calls]


def test_the_first_of_a_turn_counts(clock):
    recorder = Recorder(clock)
    recorder.open_attempt(recorder.open_call(), ASK)
    for _ in range(3):
        clock.advance(ms=10)
        recorder.deliver()
    recorder.open_call()
    recorder.deliver()
    assert calls(recorder) == [10 * MS, 30 * MS]


def test_another_thread_may_tell_it(clock):
    """A queue stands between the reader and the one who hands on."""
    recorder = Recorder(clock)
    recorder.open_attempt(recorder.open_call(), ASK)
    thread = threading.Thread(target=recorder.deliver)
    thread.start()
    thread.join()
    assert calls(recorder) == [0]


def test_behind_a_sub_agents_calls_it_is_still_the_agents_own_turn(clock):
    recorder = Recorder(clock)
    recorder.open_call()
    with recorder.tool("ask"):
        recorder.open_call()
        clock.advance(ms=5)
        recorder.deliver()
    clock.advance(ms=5)
    recorder.deliver()
    assert calls(recorder) == [10 * MS, 5 * MS]


def test_in_a_tool_without_calls_it_is_the_turn_that_asked_for_the_tool(clock):
    recorder = Recorder(clock)
    recorder.open_call()
    with recorder.tool("show"):
        clock.advance(ms=5)
        recorder.deliver()
    assert calls(recorder) == [5 * MS]


def test_of_agents_side_by_side_each_hands_on_its_own(clock):
    recorder = Recorder(clock)

    async def agent(wait):
        attempt = recorder.open_attempt(recorder.open_call(), ASK)
        for _ in range(wait):
            await asyncio.sleep(0)
        clock.advance(ms=1)
        recorder.deliver()
        attempt.finish(Outcome.COMPLETE)

    async def main():
        await asyncio.gather(agent(1), agent(3), agent(2))

    asyncio.run(main())
    assert calls(recorder) == [1 * MS, 3 * MS, 2 * MS]


def test_a_call_of_an_earlier_run_is_nobodys(clock):
    first = Recorder(clock)
    first.open_attempt(first.open_call(), ASK)
    second = Recorder(clock)
    second.deliver()
    assert second.handed_over_early
    assert calls(first) == [None]


# --- on another clock


def handed_over(observed, *moments):
    return replace(
        observed,
        calls=tuple(replace(call, delivered=moment) for call, moment in zip(observed.calls, moments, strict=True)),
    )


def longer_by(observed, tokens):
    """The run as it is projected for a system prompt that is longer, beside the recorded one."""
    now = with_longer_system(observed, tokens)
    live = [LiveCall(each.call, each.request, Verdict.DRIFTED) for each in now.attempts]
    told = replayed(observed, live, counter("chars"))
    return told.run, retime(told, lambda _: KNOWN).run


def test_a_longer_prefill_moves_it_as_far_as_the_first_token():
    observed = recording([turn(2000, prefill_ms=300, decode_ms=500, tool_ms=50), turn(3000)])
    second = observed.calls[1].entered
    was, now = longer_by(handed_over(observed, 450 * MS, second + 900 * MS), 5000)
    for number in (1, 2):
        old, new = was.turn(number).call, now.turn(number).call
        assert new.ttft > old.ttft + 100 * MS
        assert new.delivered - new.ttft == old.delivered - old.ttft
    assert now.turn(1).call.record.delivered == now.turn(1).call.milestones.delivered


def test_handed_on_while_a_tool_runs_it_keeps_its_distance_from_the_answer():
    observed = recording([turn(2000, prefill_ms=300, decode_ms=500, tools=(tool("check", 400),)), turn(3000)])
    was, now = longer_by(handed_over(observed, 1000 * MS, None), 5000)
    old, new = was.turn(1).call, now.turn(1).call
    assert new.delivered - new.milestones.end == old.delivered - old.milestones.end
    assert new.delivered > old.delivered
    assert now.turn(2).call.delivered is None


def test_handing_on_moves_nothing_else():
    observed = recording([turn(2000, prefill_ms=300, decode_ms=500, tool_ms=50), turn(3000)])
    _, without = longer_by(observed, 5000)
    _, run = longer_by(handed_over(observed, 450 * MS, None), 5000)
    assert [each.segments for each in run.turns] == [each.segments for each in without.turns]


@a_few
@given(strategies.recordings(whole=True, retries=False), st.data())
def test_in_any_run_it_stays_behind_the_token_that_it_followed(observed, data):
    """Other stamps don't notice it, and a longer prefill never brings it forward."""
    waits = st.none() | st.integers(0, 10**9)
    moments = [Ns(call.entered + wait) if (wait := data.draw(waits)) is not None else None for call in observed.calls]
    _, without = longer_by(observed, 3000)
    was, now = longer_by(handed_over(observed, *moments), 3000)
    assert now.segments == without.segments
    for old, new in zip(was.calls, now.calls, strict=True):
        before, after = old.milestones, new.milestones
        assert (before.delivered is None) == (after.delivered is None)
        if before.delivered is not None:
            assert after.delivered >= before.delivered
        if before.delivered is not None and before.first_token is not None and old.streamed:
            assert (after.delivered >= after.first_token) or before.delivered < before.first_token


# --- as a figure


def test_it_is_judged_and_told_with_what_was_held_back():
    observed = recording([turn(2000, prefill_ms=300, decode_ms=500)])
    run = replayed(
        handed_over(observed, 700 * MS),
        [LiveCall(1, observed.attempts[0].request, Verdict.IDENTICAL)],
        counter("chars"),
    ).run
    assert judge(parse("delivered under 700 ms at turn 1"), run).ruling is Ruling.KEPT
    broken = judge(parse("delivered under 500 ms"), run)
    assert broken.overrun.headline == "700 ms delivered at turn 1, budget 500 ms"
    assert broken.overrun.evidence[0].startswith("turn 1: 700 ms (400 ms behind the first token), limit 500 ms")


def test_it_needs_no_stream():
    """A whole answer is handed on too."""
    observed = recording([turn(2000, streamed=False)])
    run = replayed(
        handed_over(observed, 900 * MS),
        [LiveCall(1, observed.attempts[0].request, Verdict.IDENTICAL)],
        counter("chars"),
    ).run
    assert run.turn(1).call.ttft is None
    assert run.turn(1).call.delivered == 900 * MS

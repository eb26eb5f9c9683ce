"""What an agent meets in a replay: the recorded answers, at their boundaries, with their ends, in no time."""

import asyncio
import contextlib
import re
import time

import anthropic
import anyio.to_thread
import httpx
import httpx2
import pytest

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import CostModel, Cut, Refuse, Reply, SimulatedModel, Stall
from tests.support.agents import HTTP, loop, loop_async, searches
from tests.support.sessions import record, record_async, replaying

MS = 1_000_000
NOWHERE = "https://model.invalid"
HELLO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def recorded():
    with SimulatedModel(searches(5), costs=CostModel(prefill=20_000, decode=2 * MS)) as model:
        return record(loop, model.url)[1]


def ask(url, **options):
    with anthropic.Anthropic(base_url=url, api_key="x", **options) as client, client.messages.stream(**HELLO) as events:
        return events.get_final_text()


def test_the_same_agent_gets_the_same_run_to_the_nanosecond(recorded):
    """Field note B23: a replayed TTFT is the recorded one, never ~0 by accident."""
    with replaying(recorded) as session:
        assert loop(NOWHERE) == "It was found."
    run, was = session.told().run, assemble(recorded.recording)
    assert run.phases == was.phases
    assert [turn.segments for turn in run.turns] == [turn.segments for turn in was.turns]
    assert [turn.call.ttft for turn in run.turns] == [turn.call.ttft for turn in was.turns]
    assert {turn.call.verdict for turn in run.turns} == {Verdict.IDENTICAL}
    assert run.provenance is Provenance.REPLAYED
    assert session.problems() == ()


def test_chunks_come_at_their_recorded_boundaries():
    with SimulatedModel(Reply("hello there, this is a longer answer")) as model:
        _, document = record(ask, model.url)
    with replaying(document), httpx2.Client() as client:
        request = document.recording.attempts[0].request
        with client.stream("POST", request.url, content=request.body, headers=[*request.headers]) as response:
            chunks = list(response.iter_raw())
    assert tuple(chunks) == document.recording.attempts[0].response.chunks


def test_a_long_run_replays_without_waiting(recorded):
    """Field note E2: ninety recorded seconds cost far less than they lasted."""
    with SimulatedModel(Reply("hello"), faults={1: Refuse(429, retry_after=2000 * MS)}) as model:
        _, document = record(ask, model.url)
    started = time.perf_counter_ns()
    with replaying(document) as session:
        assert ask(NOWHERE) == "hello"
    took = time.perf_counter_ns() - started
    run = session.told().run
    assert run.duration > 2000 * MS
    assert took < run.duration, "the SDK's backoff must not be slept again"
    assert run.turn(1).call.retries == 1


def test_a_recorded_failure_is_raised_again_by_its_name():
    cut = {1: Cut(after=3)}
    with SimulatedModel(Reply("a longer answer than that"), faults=cut) as model:
        _, document = record(_failing, model.url)
    with replaying(document):
        kind = _failing(NOWHERE)
    assert kind in {"RemoteProtocolError", "ReadError", "APIConnectionError", "APIError"}
    assert kind == _last


_last = ""


def _failing(url):
    global _last  # noqa: PLW0603  # what the recording run saw, for the replay to equal
    try:
        ask(url, max_retries=0)
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__
        _last = _last or kind
        return kind
    return "no error"


def test_exhausted_retries_are_the_same_error():
    faults = {number: Refuse(529, retry_after=1 * MS) for number in (1, 2, 3)}

    def agent(url):
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask(url)
        return caught.value.status_code

    with SimulatedModel(Reply("hello"), faults=faults) as model:
        session, document = record(agent, model.url)
    assert session.result == 529
    with replaying(document) as replay:
        assert agent(NOWHERE) == 529
    assert replay.told().run.turn(1).call.retries == 2
    assert replay.problems() == ()


def test_an_answer_that_was_not_read_to_its_end_cannot_be_read_on():
    """The SDK takes a short stream for a success: it must not get one."""

    def first_event(url):
        with anthropic.Anthropic(base_url=url, api_key="x") as client, client.messages.stream(**HELLO) as events:
            return next(iter(events)).type

    with SimulatedModel(Reply("hello there"), faults={1: Stall(60_000 * MS, before=5)}) as model:
        _, document = record(first_event, model.url)
    with replaying(document) as session:
        assert first_event(NOWHERE) == "message_start"
    assert session.problems() == ()
    with replaying(document) as session, pytest.raises(RunFailedError, match="reads on where the recorded run stopped"):
        ask(NOWHERE)


def test_a_call_that_the_cassette_does_not_hold_fails_at_once_with_its_own_message(recorded):
    """Not as the SDK's `Connection error.`, and not after its retries."""
    with replaying(recorded) as session:
        loop(NOWHERE)
        with pytest.raises(RunFailedError, match="model call 6"):
            ask(NOWHERE)
    assert len(session.recorder.recording(recorded.recording.facts).attempts) == 6
    assert "--latency-mode=record" in session.problems()[0]


def test_an_unmatched_call_says_what_it_would_cost(recorded):
    """Field note A8: nearest call, path of the first difference, snippets, tokens; under 15 lines."""
    with replaying(recorded) as session:
        loop(NOWHERE)
        with pytest.raises(RunFailedError) as failed:
            loop(NOWHERE, question="Where is it? " + "Look again. " * 200)
    message = str(failed.value)
    assert "nearest recorded call: lane 1, turn 1" in message
    assert "first difference: messages[0].content" in message
    assert re.search(r"as a change of it: ~\+\d{3} tokens of context", message)
    assert message.count("\n") < 14
    assert len(session.problems()) == 1


def test_an_agent_that_swallows_everything_is_told_on(recorded):
    with replaying(recorded) as session:
        loop(NOWHERE)
        with contextlib.suppress(BaseException):
            ask(NOWHERE)
    assert len(session.problems()) == 1


def test_a_changed_request_is_played_on_and_its_tokens_are_judged_as_they_are_now(recorded):
    """Field note A1: 2,000 characters more in the system prompt are drift in every turn, not silence."""
    more = " Be careful with everything." * 72
    with replaying(recorded) as session:
        loop(NOWHERE, system="You are an agent." + more)
    run, was = session.told().run, assemble(recorded.recording)
    assert {turn.call.verdict for turn in run.turns} == {Verdict.DRIFTED}
    for now, before in zip(run.turns, was.turns, strict=True):
        added = now.call.usage.context - before.call.usage.context
        assert added == now.call.drift.delta
        assert len(more) / 8 < added < len(more) / 2, "a token is some characters of English, whoever counts"
        assert now.call.usage.provenance is Provenance.PROJECTED
        assert now.call.usage.output == before.call.usage.output
        assert now.call.drift.difference.path == "system"


def test_a_strict_session_refuses_drift(recorded):
    with replaying(recorded, strict=True) as session, pytest.raises(RunFailedError, match="strict"):
        loop(NOWHERE, system="You are another agent.")
    assert session.problems()


def test_a_shorter_run_is_told_and_its_time_is_that_of_what_it_made(recorded):
    """Field note A20."""
    with replaying(recorded) as session, anthropic.Anthropic(base_url=NOWHERE, api_key="x") as client:
        request = recorded.recording.attempts[0].request
        client.post("/v1/messages", cast_to=HTTP.Response, content=request.body)
    run, was = session.told().run, assemble(recorded.recording)
    assert len(run.turns) == 1
    assert run.recorded_turns == 5
    assert run.duration < was.duration
    assert session.unused() == 4


def test_async_agents_too(recorded):
    with replaying(recorded) as session:
        assert asyncio.run(loop_async(NOWHERE)) == "It was found."
    assert {turn.call.verdict for turn in session.told().run.turns} == {Verdict.IDENTICAL}


async def _race(url):
    """Two agents at once; the order in which they finish is part of what the agent does."""
    order = []

    async def one(name):
        await loop_async(url, question=f"Task {name}", system=f"You are agent {name}.")
        order.append(name)

    await asyncio.gather(one("slow"), one("quick"))
    return order


def test_concurrent_agents_finish_in_the_recorded_order():
    def script(asked):
        return searches(2 if "quick" in asked.system else 6)(asked)

    with SimulatedModel(script, costs=CostModel(decode=2 * MS)) as model:
        session, document = asyncio.run(record_async(_race, model.url))
    assert session.result == ["quick", "slow"]
    for _ in range(5):
        with replaying(document) as replay:
            assert asyncio.run(_race(NOWHERE)) == ["quick", "slow"]
        assert replay.problems() == ()


@pytest.mark.parametrize("in_a_thread", [asyncio.to_thread, anyio.to_thread.run_sync], ids=["asyncio", "anyio"])
def test_an_agent_in_a_thread_before_its_first_call_is_not_overtaken(in_a_thread):
    """The SDKs begin with one; the other agent's call has virtualised the loop by then."""

    async def race(url):
        order = []

        async def one(name, prepared):
            if prepared:
                await in_a_thread(time.sleep, 0.05)
            await loop_async(url, question=f"Task {name}", system=f"You are agent {name}.")
            order.append(name)

        await asyncio.gather(one("slow", prepared=False), one("quick", prepared=True))
        return order

    def script(asked):
        return searches(2 if "quick" in asked.system else 6)(asked)

    with SimulatedModel(script, costs=CostModel(prefill=0, decode=8 * MS)) as model:
        session, document = asyncio.run(record_async(race, model.url))
    assert session.result == ["quick", "slow"]
    with replaying(document):
        assert asyncio.run(race(NOWHERE)) == ["quick", "slow"]


@pytest.mark.parametrize("family", [httpx, httpx2])
def test_both_families_are_answered(family):
    with SimulatedModel(Reply("hello")) as model:
        _, document = record(family.post, f"{model.url}/v1/messages", json=HELLO)
    with replaying(document) as session:
        response = family.post(f"{NOWHERE}/v1/messages", json=HELLO)
    assert response.json()["content"][0]["text"] == "hello"
    assert response.http_version == "HTTP/1.1"
    assert session.problems() == ()


def test_a_run_without_any_model_call_says_so(recorded):
    """Field note A3: an armed session that saw nothing is no success."""
    with replaying(recorded) as session:
        pass
    assert "no model call was observed" in session.problems()[0]


def test_a_run_is_told_once_as_long_as_nothing_new_is_played(recorded):
    """A long run's requests take longer to read than to replay."""
    with replaying(recorded) as session:
        before = session.told()
        assert session.told() is before
        loop(NOWHERE)
        after = session.told()
    assert after is not before
    assert len(after.run.turns) == 5
    assert session.told() is after

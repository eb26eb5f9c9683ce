"""Sub-agents side by side: who is answered with what doesn't depend on who comes first. Field note A5."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_agentlatency.testing import CostModel, Reply, SimulatedModel, ToolUse
from tests.support.agents import loop, loop_async
from tests.support.sessions import record, record_async, replaying

AGENTS = [f"Task {number}" for number in range(5)]
REPLAYS = 50


def script(asked):
    """Each agent's own answer, after as many turns as its number says."""
    task = int(asked.messages[0]["content"].split()[-1])
    if asked.turn <= task % 3:
        return Reply("Looking.", tool_calls=[ToolUse("search", {"query": f"{task}, {asked.turn}"})])
    return Reply(f"Answer {task}.")


async def side_by_side(url, order=AGENTS, system="You work."):
    answers = await asyncio.gather(*(loop_async(url, question=task, system=system) for task in order))
    return dict(zip(order, answers, strict=True))


def paired(session):
    """Which recorded call answered which request, and how."""
    return {played.request.body: (played.match.record.id, played.match.verdict) for played in session._player.played}


@pytest.fixture(scope="module")
def recorded():
    with SimulatedModel(script, costs=CostModel(fixed=2_000_000, decode=300_000)) as model:
        session, document = asyncio.run(record_async(side_by_side, model.url))
        yield model, session.result, document


def test_fifty_replays_in_any_order_pair_alike(recorded):
    model, answers, document = recorded
    asked = len(model.requests)
    assert answers == {task: f"Answer {task.split()[-1]}." for task in AGENTS}
    seen, timelines, shuffle = [], [], random.Random(7)  # noqa: S311  # the same shuffles every time
    for _ in range(REPLAYS):
        order = shuffle.sample(AGENTS, len(AGENTS))
        with replaying(document) as session:
            assert asyncio.run(side_by_side(model.url, order)) == answers
            seen.append(paired(session))
            timelines.append(session.told().run.segments)
        assert session.problems() == ()
    assert all(each == seen[0] for each in seen)
    assert all(each == timelines[0] for each in timelines)
    assert {verdict.value for _, verdict in seen[0].values()} == {"identical"}
    assert len(model.requests) == asked


def test_drifted_agents_pair_alike_too(recorded):
    """A changed prompt leaves lane and turn to go by."""
    model, answers, document = recorded
    seen, shuffle = [], random.Random(11)  # noqa: S311
    for _ in range(10):
        with replaying(document) as session:
            changed = side_by_side(model.url, shuffle.sample(AGENTS, len(AGENTS)), "You work with care.")
            assert asyncio.run(changed) == answers
            seen.append(paired(session))
        assert session.problems() == ()
    assert all(each == seen[0] for each in seen)
    assert {verdict.value for _, verdict in seen[0].values()} == {"drifted"}


def test_threads_pair_alike(recorded):

    model, answers, document = recorded
    seen, shuffle = [], random.Random(13)  # noqa: S311
    for _ in range(10):
        order = shuffle.sample(AGENTS, len(AGENTS))
        with replaying(document) as session, ThreadPoolExecutor(len(AGENTS)) as pool:
            found = pool.map(lambda task: loop(model.url, question=task, system="You work."), order)
            assert dict(zip(order, found, strict=True)) == answers
        assert session.problems() == ()
        seen.append(paired(session))
    assert all(each == seen[0] for each in seen)


def test_equal_requests_are_answered_first_in_first_out():
    """Five equal questions: each recorded answer is given once."""

    def same(url):
        return [loop(url, question="The same?") for _ in AGENTS]

    with SimulatedModel([Reply(f"Answer {number}.") for number in range(5)]) as model:
        session, document = record(same, model.url)
        with replaying(document) as again:
            assert same(model.url) == session.result == [f"Answer {number}." for number in range(5)]
        assert again.problems() == ()


def test_a_thread_that_outlives_its_test_is_told_there(suite):
    """Field note A6: its calls are neither the next test's nor on their way to the model."""
    suite.written()
    suite.write("""
import threading

go, done = threading.Event(), threading.Event()

def late(url):
    go.wait(10)
    try:
        loop(url, question="Late.")
    except BaseException:
        pass
    done.set()

@pytest.fixture
def agent(url):
    thread = threading.Thread(target=late, args=(url,), daemon=True)
    thread.start()
    yield lambda: loop(url)
    go.set()
    done.wait(10)
    thread.join()

@pytest.mark.agent_latency
def test_agent(agent):
    agent()
""")
    asked = suite.received
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["1 model call(s) after the test's body*"])
    assert suite.received == asked

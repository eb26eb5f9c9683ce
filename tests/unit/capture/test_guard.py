"""What a replayed run leaves at work stays cut off from the model, and nobody else does."""

import asyncio
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import anyio
import anyio.to_thread
import httpx2
import pytest

from pytest_agentlatency.capture import guard, origin
from pytest_agentlatency.capture.origin import Origin
from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.testing import Reply, SimulatedModel
from tests.support.sessions import record, replaying

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def call(url):
    return httpx2.post(f"{url}/v1/messages", json=BODY).json()["content"]


async def call_later(url, go):
    await anyio.to_thread.run_sync(go.wait)
    async with httpx2.AsyncClient() as client:
        return (await client.post(f"{url}/v1/messages", json=BODY)).json()["content"]


@pytest.fixture
def model():
    with SimulatedModel(Reply("hello")) as running:
        yield running


@pytest.fixture
def recorded(model):
    return record(call, model.url)[1]


@pytest.fixture(autouse=True)
def _alone():
    """What the tests of this process left before is no part of this."""
    kept = guard._standing[:]
    guard._standing.clear()
    yield
    for barrier in guard._standing:
        barrier._stack.close()
    guard._standing[:] = kept


class Late:
    """Something that waits until its test is over, and then calls the model."""

    def __init__(self, start):
        self.go, self.told = threading.Event(), []
        self._join = start(self._work)

    def _work(self, ask):
        self.go.wait(30)
        try:
            self.told.append(ask())
        except BaseException as error:  # noqa: BLE001  # it is looked at by the test
            self.told.append(error)

    def ends(self):
        self.go.set()
        self._join()
        return self.told[0]


def in_a_thread(ask):
    def start(work):
        thread = threading.Thread(target=work, args=(ask,), name="late", daemon=True)
        thread.start()
        return thread.join

    return start


def test_a_thread_that_goes_on_after_its_replay_is_refused(model, recorded):
    asked = len(model.requests)
    with replaying(recorded):
        call(model.url)
        late = Late(in_a_thread(lambda: call(model.url)))
    refused = late.ends()
    assert isinstance(refused, RunFailedError)
    assert "It is the thread 'late', which tests/test_agent.py::test_agent left at work: end it in" in str(refused)
    assert len(model.requests) == asked


def test_meanwhile_the_rest_of_the_process_is_free(model, recorded):
    with replaying(recorded):
        call(model.url)
        late = Late(in_a_thread(lambda: call(model.url)))
    assert call(model.url) == [{"type": "text", "text": "hello"}]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(call, model.url).result()
    assert isinstance(late.ends(), RunFailedError)


def test_a_pools_thread_is_refused_in_the_work_of_the_test_and_free_in_the_next(model, recorded):
    pool = ThreadPoolExecutor(1)
    with replaying(recorded):
        call(model.url)
        late = Late(lambda work: pool.submit(work, lambda: call(model.url)).result)
    assert isinstance(late.ends(), RunFailedError)
    assert pool.submit(call, model.url).result()
    pool.shutdown()


def test_a_pool_that_has_nothing_to_do_is_nobodys(model, recorded):
    pool = ThreadPoolExecutor(1)
    with replaying(recorded):
        pool.submit(call, model.url).result()
    assert guard._standing == []
    assert pool.submit(call, model.url).result()
    pool.shutdown()


@pytest.mark.parametrize("begun", ["just now", "and waits"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_runs_to_its_own_end_is_the_tests(model, recorded, backend, begun):
    """It may sleep when the test ends, as a loop does that waits for anybody's work."""
    go, told = threading.Event(), []

    def work():
        try:
            told.append(anyio.run(call_later, model.url, go, backend=backend))
        except BaseException as error:  # noqa: BLE001
            told.append(error)

    asked = len(model.requests)
    with replaying(recorded):
        call(model.url)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while begun == "and waits" and not origin._at_rest(origin._whole(thread)):
            pass
    go.set()
    thread.join()
    assert "left at work" in repr(told[0])  # in whatever group its client raises it
    assert len(model.requests) == asked


def test_many_tests_that_leave_threads_leave_one_barrier(model, recorded):
    """Wrappers around wrappers would fill the stack."""
    lates = []
    for _ in range(5):
        with replaying(recorded):
            call(model.url)
            lates.append(Late(in_a_thread(lambda: call(model.url))))
    assert len(guard._standing) == 1
    (barrier,) = guard._standing
    assert len(barrier._guards) == 5
    assert all(isinstance(late.ends(), RunFailedError) for late in lates)
    with replaying(recorded):
        call(model.url)
        last = Late(in_a_thread(lambda: call(model.url)))
    assert len(barrier._guards) == 1
    assert isinstance(last.ends(), RunFailedError)


def test_without_anything_left_the_process_is_as_it_was(model, recorded):
    before = socket.socket.connect, socket.getaddrinfo
    with replaying(recorded):
        assert (socket.socket.connect, socket.getaddrinfo) != before
        call(model.url)
    assert (socket.socket.connect, socket.getaddrinfo) == before


def test_what_a_recording_leaves_is_not_held_back(model):
    """It talked to the model all along; its calls are told where they belong to no run."""
    pool = ThreadPoolExecutor(1)

    def agent(url):
        call(url)
        return Late(lambda work: pool.submit(work, lambda: call(model.url)).result)

    session, _ = record(agent, model.url)
    assert not isinstance(session.result.ends(), BaseException)
    pool.shutdown()


def test_a_thread_that_has_just_been_started_is_left_too(monkeypatch):
    """It has not come to its own function when the test ends."""
    mine, served = threading.Thread(target=call), threading.Thread(target=time.sleep)  # as uvloop's, in C
    begun = Origin()
    begun.begin()
    about_to = SimpleNamespace(f_code=threading.Thread.run.__code__, f_back=None)
    monkeypatch.setattr(origin, "_others", lambda: {each: [about_to] for each in (mine, served)})
    assert list(begun.left().work) == [mine]


def test_a_thread_is_seen_whole_while_its_coroutines_come_and_go():
    """One that is suspended while the frames are read has no caller, and would pass for the thread's beginning."""
    over = False

    async def turn():
        while not over:
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(3)))

    thread, interval = threading.Thread(target=lambda: asyncio.run(turn())), sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1e-6)
    try:
        began = {origin._whole(thread)[-1] for _ in range(5000)}
    finally:
        sys.setswitchinterval(interval)
        over = True
        thread.join()
    assert [each.f_code.co_name for each in began] == ["_bootstrap"]

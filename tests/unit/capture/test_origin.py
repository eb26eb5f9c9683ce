"""Calls from threads: of this run, from wherever they are made; or of what an earlier test left running."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import httpx2
import pytest
import trio

from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import Reply, SimulatedModel
from tests.support.sessions import record, record_async, replaying

SAID = "thread 'left over', which was at work before this test began"


def call(url, text="hi"):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return httpx2.post(f"{url}/v1/messages", json=body).json()["content"]


@pytest.fixture
def model():
    with SimulatedModel(Reply("hello")) as running:
        yield running


@pytest.fixture
def left_over(model):
    """A thread of an earlier test that makes a call when it is asked to; what became of it."""
    asked, told = Queue(), Queue()

    def work():
        while (text := asked.get()) is not None:
            try:
                told.put(call(model.url, text))
            except BaseException as error:  # noqa: BLE001  # it is looked at by the test
                told.put(error)

    thread = threading.Thread(target=work, name="left over", daemon=True)
    thread.start()

    def ask(text):
        asked.put(text)
        return told.get(timeout=30)

    yield ask
    asked.put(None)
    thread.join()


def eight(url, pool):
    return sorted(map(str, pool.map(lambda number: call(url, f"task {number}"), range(8))))


def test_eight_calls_of_a_pool_are_eight_exchanges(model):
    """Field note A6."""
    with ThreadPoolExecutor(4) as pool:
        session, document = record(eight, model.url, pool)
    assert len(document.recording.attempts) == len(document.recording.calls) == 8
    assert not session.problems()
    with replaying(document) as again, ThreadPoolExecutor(4) as pool:
        assert eight(model.url, pool) == session.result
    assert again.verdicts[Verdict.IDENTICAL] == 8


def test_a_pool_that_serves_every_test_is_no_stranger(model):
    with ThreadPoolExecutor(4) as pool:
        record(eight, model.url, pool)
        session, document = record(eight, model.url, pool)
        assert len(document.recording.attempts) == 8
        assert not session.problems()


def test_a_call_of_an_earlier_tests_thread_is_named_and_not_filed(model, left_over):
    def agent():
        call(model.url)
        left_over("from an earlier test")

    session, document = record(agent)
    assert len(document.recording.attempts) == 1
    assert any(SAID in problem for problem in session.problems())


def test_in_a_replay_it_is_refused_and_takes_no_answer(model, left_over):
    _, document = record(call, model.url)
    before = len(model.requests)
    with replaying(document) as session:
        assert SAID in str(left_over("hi"))
        call(model.url)
    assert len(model.requests) == before
    assert session.verdicts[Verdict.IDENTICAL] == 1
    assert any(SAID in problem for problem in session.problems())


def test_work_that_is_handed_over_in_the_tests_context_is_the_tests(model):
    asked, done = Queue(), threading.Event()

    def worker():
        while (work := asked.get()) is not None:
            work()
            done.set()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()

    def agent():
        context = contextvars.copy_context()
        asked.put(lambda: context.run(call, model.url))
        assert done.wait(30)

    session, document = record(agent)
    asked.put(None)
    thread.join()
    assert len(document.recording.attempts) == 1
    assert not session.problems()


def test_an_event_loop_in_a_thread_serves_every_test(model):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def work():
        async with httpx2.AsyncClient() as client:
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            return (await client.post(f"{model.url}/v1/messages", json=body)).status_code

    def agent():
        return asyncio.run_coroutine_threadsafe(work(), loop).result(30)

    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)
    for _ in range(2):
        session, document = record(agent)
        assert len(document.recording.attempts) == 1
        assert not session.problems()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_loop_of_trio_in_a_thread_serves_every_test(model):
    ready, stop = Queue(), trio.Event()

    async def serve():
        ready.put(trio.lowlevel.current_trio_token())
        await stop.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), daemon=True)
    thread.start()
    token = ready.get(timeout=30)

    async def work():
        async with httpx2.AsyncClient() as client:
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            return (await client.post(f"{model.url}/v1/messages", json=body)).status_code

    trio.from_thread.run(trio.sleep, 0.05, trio_token=token)
    session, document = record(lambda: trio.from_thread.run(work, trio_token=token))
    trio.from_thread.run_sync(stop.set, trio_token=token)
    thread.join()
    assert len(document.recording.attempts) == 1
    assert not session.problems()


def test_threads_that_async_code_hands_work_to_are_the_tests(model):
    async def agent():
        await asyncio.gather(*(asyncio.to_thread(call, model.url, f"task {number}") for number in range(4)))

    session, document = asyncio.run(record_async(agent))
    assert len(document.recording.attempts) == 4
    assert not session.problems()

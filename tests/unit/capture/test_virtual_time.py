"""Time in a replay: jumps where nothing is to be waited for, stands still where real work is, and is given back."""

import asyncio
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest

from pytest_agentlatency.capture import virtual_time
from pytest_agentlatency.capture.virtual_time import VirtualTime
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import CostModel, SimulatedModel
from tests.support.agents import loop_async, searches
from tests.support.sessions import record, record_async, replaying

MS, S = 1_000_000, 1_000_000_000
HOUR = 3600 * S


@pytest.fixture
def virtual():
    """Virtual time in whatever loop the test runs its agents in; given back at the end."""
    with ExitStack() as stack:
        yield installed(stack)


def installed(stack):
    time_ = VirtualTime()
    time_.install(stack)
    return time_


def run(main):
    """In a loop of its own; how many real seconds it took."""
    started = time.monotonic()
    result = asyncio.run(main())
    return result, time.monotonic() - started


def test_an_hour_is_no_time_at_all(virtual):
    async def main():
        await virtual.pace().until_async(HOUR)
        return asyncio.get_running_loop().time()

    _, took = run(main)
    assert took < 5


def test_the_clock_has_moved_by_what_was_waited_for(virtual):
    async def main():
        pace = virtual.pace()
        await pace.until_async(HOUR)
        await pace.until_async(2 * HOUR)
        return asyncio.get_running_loop().time() - pace.begin

    moved, _ = run(main)
    assert moved == pytest.approx(7200)


def test_an_answer_due_in_the_past_is_there_at_once(virtual):
    async def main():
        pace = virtual.pace()
        await pace.until_async(HOUR)
        before = asyncio.get_running_loop().time()
        await pace.until_async(HOUR // 2)
        return asyncio.get_running_loop().time() - before

    assert run(main)[0] == 0


def test_sleeps_of_tools_inside_each_other_cost_no_real_time(virtual):
    async def tool(depth):
        await asyncio.sleep(600)
        if depth:
            await asyncio.gather(tool(depth - 1), tool(depth - 1))

    async def main():
        pace = virtual.pace()
        await tool(4)
        return asyncio.get_running_loop().time() - pace.begin

    moved, took = run(main)
    assert moved == pytest.approx(3000), "what overlaps is not added up"
    assert took < 5


def test_tasks_meet_in_the_order_of_their_times(virtual):
    async def main():
        seen = []

        async def agent(name, *offsets):
            pace = virtual.pace()
            for offset in offsets:
                await pace.until_async(offset * S)
                seen.append((offset, name))

        await asyncio.gather(agent("slow", 3, 8, 9), agent("fast", 1, 2, 4), agent("late", 7))
        return seen

    assert run(main)[0] == sorted(run(main)[0])


def test_a_thread_is_waited_for_while_time_stands_still(virtual):
    """A timeout of a second around a tool that takes less in real time doesn't fire, whatever else is due."""

    async def main():
        await virtual.pace().until_async(S)
        async with asyncio.timeout(1):
            await asyncio.to_thread(time.sleep, 0.2)
        return "in time"

    assert run(main)[0] == "in time"


def test_a_thread_of_anyio_is_waited_for_too(virtual):
    """Frameworks run synchronous tools there, past the loop's executor."""

    async def main():
        await virtual.pace().until_async(S)
        with anyio.fail_after(1):
            await anyio.to_thread.run_sync(time.sleep, 0.2)
        return "in time"

    assert run(main)[0] == "in time"


@pytest.mark.parametrize("seconds", [0.2, 1.3])
def test_a_timeout_around_a_subprocess_does_not_fire_before_its_time(virtual, monkeypatch, seconds):
    monkeypatch.setattr(virtual_time, "IO_GRACE_S", 0.5)

    async def main():
        await virtual.pace().until_async(S)
        async with asyncio.timeout(60):
            program = f"import time; time.sleep({seconds}); print('done')"
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
        return out

    assert run(main)[0] == b"done\n"


def test_a_process_that_serves_all_along_does_not_hold_time(virtual, monkeypatch):
    """As an MCP server over stdio does."""
    monkeypatch.setattr(virtual_time, "IO_GRACE_S", 0.1)

    async def main():
        await virtual.pace().until_async(S)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        await virtual.pace().until_async(HOUR)
        process.stdin.write(b"\n")
        await process.communicate()

    assert run(main)[1] < 10


def test_a_hung_thread_still_meets_its_timeout(virtual, monkeypatch):
    monkeypatch.setattr(virtual_time, "HOLD_S", 0.2)
    release = threading.Event()

    async def main():
        await virtual.pace().until_async(S)
        try:
            async with asyncio.timeout(3600):
                await asyncio.to_thread(release.wait)
        except TimeoutError:
            return "timed out"
        finally:
            release.set()

    result, took = run(main)
    assert result == "timed out"
    assert took < 10


def test_a_thread_that_waits_in_the_background_holds_time_once(virtual, monkeypatch):
    """A listener in the executor would otherwise make each of many waits as long as the hold."""
    monkeypatch.setattr(virtual_time, "HOLD_S", 0.3)
    release = threading.Event()

    async def main():
        pace = virtual.pace()
        listener = asyncio.get_running_loop().run_in_executor(None, release.wait)
        for number in range(50):
            await pace.until_async(number * S)
        release.set()
        await listener

    assert run(main)[1] < 10


def test_a_socket_that_answers_soon_is_waited_for_and_an_idle_one_is_not(virtual, monkeypatch):
    monkeypatch.setattr(virtual_time, "IO_GRACE_S", 0.5)
    ours, theirs = socket.socketpair()

    async def main():
        await virtual.pace().until_async(S)
        reader, writer = await asyncio.open_connection(sock=ours)
        threading.Timer(0.1, theirs.sendall, [b"answer"]).start()
        async with asyncio.timeout(30):
            answer = await reader.read(6)
        for _ in range(20):
            await asyncio.sleep(3600)
        writer.close()
        await writer.wait_closed()
        return answer

    answer, took = run(main)
    theirs.close()
    assert answer == b"answer"
    assert took < 10


def test_closing_the_executor_does_not_run_into_its_own_guard(virtual):
    """From Python 3.12, asyncio.run joins the executor's threads under a timeout of five minutes, and warns."""

    async def main():
        await virtual.pace().until_async(S)
        await asyncio.to_thread(int)
        threading.Timer(0.2, released.set).start()
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, released.wait)

    released = threading.Event()
    run(main)
    assert released.is_set()


def test_pending_timers_keep_their_order_when_time_is_given_back():
    async def main():
        seen, loop = [], asyncio.get_running_loop()
        with ExitStack() as stack:
            await installed(stack).pace().until_async(HOUR)
            for delay in (0.03, 0.01, 0.02):
                loop.call_later(delay, seen.append, delay)
            before = loop.time()
        assert loop.time() == pytest.approx(before, abs=5)
        await asyncio.sleep(0.1)
        return seen

    assert asyncio.run(main()) == [0.01, 0.02, 0.03]


def test_time_is_real_again_afterwards():
    async def main():
        with ExitStack() as stack:
            await installed(stack).pace().until_async(HOUR)
        started = time.monotonic()
        await asyncio.sleep(0.1)
        await asyncio.to_thread(int)
        return time.monotonic() - started

    assert asyncio.run(main()) >= 0.1


def test_a_loop_is_as_it_was_afterwards():
    async def main():
        loop = asyncio.get_running_loop()
        names = set(vars(loop))
        with ExitStack() as stack:
            installed(stack).pace()
        return set(vars(loop)) - names

    assert asyncio.run(main()) == {"time"}, "which goes on from the virtual time"


def test_one_loop_serves_several_runs_one_after_the_other():
    async def main():
        loop = asyncio.get_running_loop()
        moments = []
        for _ in range(3):
            with ExitStack() as stack:
                await installed(stack).pace().until_async(HOUR)
            moments.append(loop.time())
            await asyncio.sleep(0)
        return moments

    moments = asyncio.run(main())
    assert moments == sorted(moments)
    assert moments[2] - moments[0] >= 7200


def test_a_loop_that_was_closed_in_the_meantime_is_no_trouble(virtual):
    async def main():
        await virtual.pace().until_async(S)

    for _ in range(2):
        asyncio.run(main())
    virtual.restore()


def test_under_trio_answers_come_at_once(virtual):
    async def main():
        pace = virtual.pace()
        await pace.until_async(HOUR)
        return anyio.current_time()

    before = time.monotonic()
    anyio.run(main, backend="trio")
    assert time.monotonic() - before < 10


def test_another_loops_implementation_is_left_alone(virtual, monkeypatch):
    monkeypatch.setattr(asyncio, "get_running_loop", object)
    assert virtual.pace().loop is None


COSTS = CostModel(fixed=3 * MS, decode=1 * MS)


async def five(url):
    async def agent(number):
        await loop_async(url, question=f"Task {number}", system=f"You are agent {number}.")
        order.append(number)

    order: list[int] = []
    await asyncio.gather(*map(agent, range(5)))
    return order


def test_five_concurrent_agents_of_twenty_calls_replay_in_one_order():
    with SimulatedModel(searches(20), costs=COSTS) as model:
        _, document = asyncio.run(record_async(five, model.url))
    runs = []
    for _ in range(3):
        with replaying(document) as session:
            order = asyncio.run(five(model.url))
        assert session.verdicts[Verdict.IDENTICAL] == 100
        runs.append((order, [played.match.record.id for played in session._player.played]))
    assert runs[0] == runs[1] == runs[2]


def test_a_recorded_minute_replays_in_no_time():
    slow = CostModel(fixed=20 * S, decode=1 * MS)
    with SimulatedModel(searches(3), costs=slow, time_scale=0.002) as model:
        _, document = asyncio.run(record_async(loop_async, model.url))
    stretched = _stretched(document, 500)
    started = time.monotonic()
    with replaying(stretched) as session:
        asyncio.run(loop_async(model.url))
    assert session.told().run.duration > 50 * S
    assert time.monotonic() - started < 20


def _stretched(document, factor):
    """Every stamp later by a factor."""

    def later(value):
        return tuple(map(later, value)) if isinstance(value, tuple) else None if value is None else value * factor

    def stamps(one):
        return replace(one, **{name: later(getattr(one, name)) for name in one.__dataclass_fields__})

    attempts = tuple(replace(each, stamps=stamps(each.stamps)) for each in document.recording.attempts)
    calls = tuple(
        replace(each, entered=later(each.entered), returned=later(each.returned)) for each in document.recording.calls
    )
    return replace(document, recording=replace(document.recording, attempts=attempts, calls=calls))


@pytest.fixture(scope="module")
def served():
    with SimulatedModel(searches(3), costs=COSTS) as model:
        _, document = record(lambda: asyncio.run(loop_async(model.url)))
    return model.url, document


@pytest.mark.asyncio
async def test_a_loop_of_the_function(served):
    url, document = served
    with replaying(document) as session:
        await loop_async(url)
    assert session.verdicts[Verdict.IDENTICAL] == 3


@pytest.mark.parametrize("time_", ["first", "second"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_loop_of_the_module(served, time_):
    url, document = served
    before = asyncio.get_running_loop().time()
    with replaying(document) as session:
        await loop_async(url)
    await asyncio.sleep(0.01)
    assert session.verdicts[Verdict.IDENTICAL] == 3
    assert asyncio.get_running_loop().time() > before


@pytest.mark.anyio
async def test_loops_of_anyio(served, anyio_backend_name):  # asyncio, trio
    url, document = served
    with replaying(document) as session:
        await loop_async(url)
    assert session.verdicts[Verdict.IDENTICAL] == 3


def test_a_synchronous_agent_in_a_thread_of_an_async_test(virtual):
    with ThreadPoolExecutor(1) as pool:

        async def main():
            await virtual.pace().until_async(S)
            return await asyncio.get_running_loop().run_in_executor(pool, sum, [1, 2])

        assert run(main)[0] == 3

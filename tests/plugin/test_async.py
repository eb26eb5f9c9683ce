"""Sync and async tests, clients and fixtures, whatever runs the loop. Field note A29."""

import pytest

from tests.support.agents import searches

ASYNCIO = """
pytestmark = pytest.mark.agent_latency

@pytest.mark.asyncio
async def test_async_client(agent_run, url):
    assert await loop_async(url) == "It was found."
    assert agent_run.calls == 3

@pytest.mark.asyncio
async def test_sync_client_in_a_running_loop(agent_run, url):
    assert loop(url) == "It was found."

@pytest.mark.asyncio
async def test_sync_client_in_a_thread(agent_run, url):
    assert await asyncio.to_thread(loop, url) == "It was found."

def test_sync(agent_run, url):
    assert loop(url) == "It was found."

def test_a_loop_of_its_own(agent_run, url):
    assert asyncio.run(loop_async(url)) == "It was found."
    assert agent_run.calls == 3
"""


def both_ways(suite, source, *options, passed=1):
    """Record, replay twice, and see that only the recording asked the model."""
    suite.write(source)
    suite.record(*options)
    asked = suite.received
    assert asked
    for _ in range(2):
        suite.run(*options).assert_outcomes(passed=passed)
    assert suite.received == asked


def test_pytest_asyncio_strict(suite):
    both_ways(suite, ASYNCIO, "--asyncio-mode=strict", passed=5)


def test_pytest_asyncio_auto(suite):
    both_ways(suite, ASYNCIO.replace("@pytest.mark.asyncio\n", ""), "--asyncio-mode=auto", passed=5)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio(suite, backend):
    both_ways(
        suite,
        f"""
import anyio.to_thread

pytestmark = [pytest.mark.agent_latency, pytest.mark.anyio]

@pytest.fixture
def anyio_backend():
    return "{backend}"

async def test_async_client(agent_run, url):
    assert await loop_async(url) == "It was found."
    assert agent_run.calls == 3

async def test_sync_client_in_a_running_loop(url):
    assert loop(url) == "It was found."

async def test_sync_client_in_a_thread(url):
    assert await anyio.to_thread.run_sync(loop, url) == "It was found."

async def test_a_task_group(agent_run, url):
    async with anyio.create_task_group() as group:
        for name in "ab":
            group.start_soon(lambda name=name: loop_async(url, question=name))
    assert agent_run.calls == 6
""",
        "-p",
        "no:asyncio",
        passed=4,
    )


@pytest.mark.parametrize("scope", ["function", "class", "module", "session"])
def test_loops_that_outlive_a_test(suite, scope):
    """A replay's virtual time ends with its test; the loop goes on for the next one, a plain one in between."""
    both_ways(
        suite,
        f"""
import time

class TestAll:
    @pytest.mark.agent_latency
    @pytest.mark.asyncio(loop_scope="{scope}")
    async def test_first(self, url):
        assert await loop_async(url) == "It was found."

    @pytest.mark.asyncio(loop_scope="{scope}")
    async def test_plain(self):
        before, real = asyncio.get_running_loop().time(), time.monotonic()
        await asyncio.sleep(0.03)
        assert time.monotonic() - real >= 0.02, "the loop's time is real again"
        assert asyncio.get_running_loop().time() - before >= 0.02
        await asyncio.to_thread(time.sleep, 0.01)

    @pytest.mark.agent_latency
    @pytest.mark.asyncio(loop_scope="{scope}")
    async def test_second(self, url):
        assert await loop_async(url, question="And the other?") == "It was found."
""",
        passed=3,
    )


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_async_generator_fixtures_that_call_the_model(suite, mode):
    both_ways(
        suite,
        """
import anthropic
import pytest_asyncio

@pytest_asyncio.fixture
async def agent(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
        warm = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "plan"}])
        assert warm.content
        yield client

@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(agent, agent_run):
    await agent.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
    assert agent_run.calls == 2
""",
        f"--asyncio-mode={mode}",
    )


def test_one_client_for_a_whole_module(suite):
    """A shared connection pool is no way past the seam."""
    both_ways(
        suite,
        """
import anthropic
import pytest_asyncio

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as shared:
        yield shared

@pytest.mark.agent_latency
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("town", ["Hamburg", "Bremen"])
async def test_agent(client, town):
    await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": town}])
""",
        passed=2,
    )


def test_a_thread_pool(suite):
    """Field note A6: every call is seen, and each gets its own answer."""
    both_ways(
        suite,
        """
from concurrent.futures import ThreadPoolExecutor

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: loop(url, question=f"Task {number}"), range(8)))
    assert answers == ["It was found."] * 8
    assert agent_run.calls == 24
""",
    )


def test_sub_agents_side_by_side_have_a_lane_each(suite):
    suite.serve(searches(2))
    both_ways(
        suite,
        """
@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(agent_run, url):
    questions = [f"Task {number}" for number in range(5)]
    await asyncio.gather(*(loop_async(url, question=question, system=f"You do {question}.") for question in questions))
    assert [len(lane.turns) for lane in agent_run.details.lanes] == [2] * 5
""",
    )


def test_tools_that_wait_cost_no_time_in_a_replay(suite):
    """Sleeps of async tools pass in virtual time; a deadline of the agent's own still comes."""
    suite.written("""
@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(url):
    await loop_async(url)
""")
    suite.write("""
import time

@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(url):
    real = time.monotonic()
    await loop_async(url)
    await asyncio.sleep(3600)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(600):
            await asyncio.Event().wait()
    assert time.monotonic() - real < 600
""")
    suite.run().assert_outcomes(passed=1)

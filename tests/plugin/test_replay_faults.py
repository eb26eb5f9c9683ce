"""What went wrong in the recorded run goes wrong again in the same way, after as many attempts."""

import re

import pytest

from pytest_agentlatency.testing import Blank, Cut, Drop, ErrorEvent, Refuse, Reply, SlowHeaders, Stall, ping
from tests.support.agents import searches
from tests.support.suite import interactions

MS = 1_000_000
TELLS = """
import anthropic
import json
from pathlib import Path

def told(work):
    try:
        return ["answered", work()]
    except Exception as error:
        causes = []
        while error is not None and type(error).__module__.partition(".")[0] in ("anthropic", "httpx", "httpx2"):
            causes.append([type(error).__module__.partition(".")[0], type(error).__name__, str(error)])
            error = error.__cause__
        return causes

def work(url):
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        pieces = []
        try:
            with client.messages.stream(
                model="m", max_tokens=50, messages=[{{"role": "user", "content": "hi"}}]
            ) as stream:
                for text in stream.text_stream:
                    pieces.append(text)
        except BaseException:
            Path("pieces.json").write_text(json.dumps(pieces))
            raise
        Path("pieces.json").write_text(json.dumps(pieces))
        return "".join(pieces)

async def work_async(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
        pieces = []
        try:
            async with client.messages.stream(
                model="m", max_tokens=50, messages=[{{"role": "user", "content": "hi"}}]
            ) as stream:
                async for text in stream.text_stream:
                    pieces.append(text)
        finally:
            Path("pieces.json").write_text(json.dumps(pieces))
        return "".join(pieces)

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    outcome = told(lambda: {work})
    attempts = [len(call.attempts) for call in agent_run.details.calls]
    Path("told.json").write_text(json.dumps([outcome, attempts]))
"""
FAULTS = {
    "429, then an answer": ({1: Refuse(429, retry_after=1 * MS)}, [2]),
    "500, 529, then an answer": ({1: Refuse(500, retry_after=1 * MS), 2: Refuse(529, retry_after=1 * MS)}, [3]),
    "529 until the SDK gives up": ({n: Refuse(529, retry_after=1 * MS) for n in (1, 2, 3)}, [3]),
    "400, which is not retried": ({1: Refuse(400)}, [1]),
    "the connection ends without an answer": ({n: Drop() for n in (1, 2, 3)}, [3]),
    "a stream that ends mid-way": ({1: Cut(after=5)}, [1]),
    "a stream that is reset mid-way": ({1: Cut(after=5, reset=True)}, [1]),
    "an error inside the stream": ({1: ErrorEvent(after=5)}, [1]),
    "an answer of no bytes": ({1: Blank()}, [1]),
    "pings in the stream": ({1: [ping(1), ping(4)]}, [1]),
}


# The one word that differs: a cassette keeps ids of requests hashed, and newer SDKs put theirs into the message.
REQUEST_ID = re.compile(r"request_id: [^,)]+")


def outcome(suite):
    told, pieces = (suite.path / "told.json").read_text(), (suite.path / "pieces.json").read_text()
    return REQUEST_ID.sub("request_id: …", told), pieces


@pytest.mark.parametrize("work", ["work(url)", "asyncio.run(work_async(url))"], ids=["sync", "async"])
@pytest.mark.parametrize("fault", FAULTS)
def test_it_goes_wrong_again_in_the_same_way(suite, fault, work):
    """Same classes and words down the chain of causes, same text before it, same number of attempts."""
    faults, attempts = FAULTS[fault]
    suite.serve(Reply("abcdefghijklmnopqrstuvwxyz"), faults=faults)
    suite.written(TELLS.format(work=work))
    recorded = outcome(suite)
    assert recorded[0].endswith(f"{attempts}]")
    for name in ("told.json", "pieces.json"):
        (suite.path / name).unlink()
    asked = suite.received
    suite.run().assert_outcomes(passed=1)
    assert outcome(suite) == recorded
    assert suite.received == asked
    assert len(interactions(suite.cassette())) == attempts[0]


def test_one_attempt_more_than_recorded_fails_at_once(suite):
    """Another SDK's settings: there is no fourth answer."""
    suite.serve(Reply("hello"), faults={n: Refuse(529, retry_after=1 * MS) for n in (1, 2)})
    source = """
import anthropic

@pytest.mark.agent_latency
def test_agent(url):
    try:
        loop(url, max_retries=1)
    except anthropic.APIStatusError:
        pass
"""
    suite.written(source)
    suite.write(source.replace("max_retries=1", "max_retries=2"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["model call 1 made 3 attempts; the recorded one made 2."])


EARLY = """
import anthropic

def read(url, pieces):
    with anthropic.Anthropic(base_url=url, api_key="x") as client, client.messages.stream(
        model="m", max_tokens=50, messages=[{{"role": "user", "content": "hi"}}]
    ) as stream:
        for number, text in enumerate(stream.text_stream, 1):
            if number == pieces:
                return

@pytest.mark.agent_latency
def test_agent(url):
    read(url, {pieces})
"""


def test_an_answer_left_early_replays_as_far_as_it_was_read(suite):
    suite.serve(Reply("abcdefghijklmnopqrstuvwxyz" * 20), tokens_per_event=1)
    suite.written(EARLY.format(pieces=2))
    suite.run().assert_outcomes(passed=1)


def test_an_answer_left_early_cannot_be_read_on(suite):
    """The SDK would take a short stream for a whole one."""

    suite.serve(Reply("abcdefghijklmnopqrstuvwxyz"), faults={1: Stall(500 * MS, before=6)})
    suite.written(EARLY.format(pieces=2))
    suite.write(EARLY.format(pieces=99))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the agent reads on where the recorded run stopped reading*"])


GIVES_UP = """
@pytest.mark.agent_latency
def test_agent(url):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await loop_async(url)
    asyncio.run(main())
"""
WAITS = """
@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(url):
    await loop_async(url)
"""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Stall(5_000 * MS, before=2), "the agent reads on where the recorded run stopped reading*"),
        (SlowHeaders(5_000 * MS), "the agent waits for an answer where the recorded run gave up waiting*"),
    ],
    ids=["in the answer", "before the answer"],
)
def test_a_call_that_was_given_up_is_given_up_again(suite, fault, said):
    """A deadline around the call: it comes in the replay, too. An agent without one is told, and not left hanging."""
    suite.serve(searches(1), faults={1: fault})
    suite.written(GIVES_UP)
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 1
    suite.write(WAITS)
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])

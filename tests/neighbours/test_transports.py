"""Model calls through other people's transports: aiohttp behind an httpx face, mocks, and stacks that aren't seen."""

import asyncio
import time

import anthropic
import httpx
import httpx_aiohttp
import pytest
import requests
import respx

from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import CostModel, Cut, Reply, SimulatedModel
from tests.support.agents import HTTP, TOOLS, answered, results, searches
from tests.support.sessions import record, record_async, replaying

MS = 1_000_000
FIVE = CostModel(prefill=0, fixed=100 * MS, decode=100 * MS)
ASK = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3},
}  # fmt: skip


async def through_aiohttp(url, **options):
    """The SDK's own client on aiohttp; when each text came."""
    client = anthropic.AsyncAnthropic(
        base_url=url, api_key="x", http_client=anthropic.DefaultAioHttpClient(), **options
    )
    async with client, client.messages.stream(**ASK) as stream:
        return [time.perf_counter() async for event in stream if event.type == "text"]


async def loop_through_aiohttp(url):
    async with anthropic.AsyncAnthropic(
        base_url=url, api_key="x", http_client=anthropic.DefaultAioHttpClient()
    ) as client:
        messages = [{"role": "user", "content": "Where?"}]
        while True:
            async with client.messages.stream(model="m", max_tokens=99, tools=TOOLS, messages=messages) as stream:
                message = await stream.get_final_message()
            if message.stop_reason != "tool_use":
                return message.content[-1].text
            messages += [answered(message), results(message, "found")]


def test_aiohttp_behind_httpx_is_one_exchange_with_its_chunks_when_they_came():
    """Field note A4; vcrpy's stub of aiohttp would have read the whole body before it handed it on."""
    with SimulatedModel(Reply("abcdefghijklmnopqrst"), costs=FIVE) as model:
        session, document = asyncio.run(record_async(through_aiohttp, model.url))
    (attempt,) = document.recording.attempts
    assert document.others == ()
    assert attempt.stamps.arrived[-1] - attempt.stamps.arrived[0] >= 350 * MS
    assert session.result[-1] - session.result[0] >= 0.35
    assert session.told().run.turn(1).call.splits


def test_it_replays_without_a_connection():
    with SimulatedModel(searches(3)) as model:
        _, document = asyncio.run(record_async(loop_through_aiohttp, model.url))
    assert len(document.recording.attempts) == 3
    with replaying(document) as session:
        assert asyncio.run(loop_through_aiohttp(model.url)) == "It was found."
    assert session.verdicts[Verdict.IDENTICAL] == 3
    assert not session.problems()


def test_a_stream_cut_under_aiohttp_is_recorded_and_replayed_as_an_error():
    failures = (anthropic.APIError, HTTP.HTTPError)
    with SimulatedModel(Reply("abcdefghijkl"), faults={1: Cut(after=4)}) as model:

        async def agent():
            with pytest.raises(failures) as caught:
                await through_aiohttp(model.url, max_retries=0)
            return caught.value

        session, document = asyncio.run(record_async(agent))
    with replaying(document) as again:
        assert type(asyncio.run(agent())) is type(session.result)
    assert not again.problems()


def test_the_other_familys_aiohttp_face():
    async def agent(url):
        async with httpx_aiohttp.HttpxAiohttpClient() as client:
            return (await client.post(f"{url}/v1/messages", json=ASK)).json()["content"]

    with SimulatedModel(Reply("hello")) as model:
        session, document = asyncio.run(record_async(agent, model.url))
    assert len(document.recording.attempts) == 1
    assert document.others == ()
    with replaying(document):
        assert asyncio.run(agent(model.url)) == session.result


def test_a_model_call_through_requests_names_the_stack_that_is_not_seen():
    with SimulatedModel(Reply("hello")) as model:
        session, document = record(lambda: requests.post(f"{model.url}/v1/messages", json=ASK, timeout=9))
    assert document.recording.attempts == ()
    assert any("through requests, an HTTP stack that can't be timed" in problem for problem in session.problems())


def test_a_model_call_that_moved_to_requests_is_refused_in_replay():
    with SimulatedModel(Reply("hello")) as model:
        _, document = record(lambda: httpx.post(f"{model.url}/v1/messages", json=ASK))
        with replaying(document) as session, pytest.raises(BaseException, match="requests"):
            requests.post(f"{model.url}/v1/messages", json=ASK, timeout=9)
        assert len(model.requests) == 1
    assert any("requests" in problem for problem in session.problems())


class Retrying(HTTP.BaseTransport):
    """A user's own, around the library's."""

    def __init__(self):
        self.inner = HTTP.HTTPTransport()

    def handle_request(self, request):
        response = self.inner.handle_request(request)
        if response.status_code == 529:
            response.close()
            return self.inner.handle_request(request)
        return response

    def close(self):
        self.inner.close()


def test_a_wrapping_transport_replays():
    def agent(url):
        with anthropic.Anthropic(base_url=url, api_key="x", http_client=HTTP.Client(transport=Retrying())) as client:
            return client.messages.create(**ASK).content[0].text

    with SimulatedModel(Reply("hello")) as model:
        _, document = record(agent, model.url)
    assert len(document.recording.attempts) == 1
    with replaying(document) as session:
        assert agent(model.url) == "hello"
    assert session.verdicts[Verdict.IDENTICAL] == 1


@respx.mock
def test_what_respx_answers_is_recorded_like_any_answer():
    respx.post("https://model.example/v1/messages").mock(return_value=httpx.Response(200, json=ANSWER))
    session, document = record(lambda: httpx.post("https://model.example/v1/messages", json=ASK).json())
    assert session.told().run.turn(1).call.usage.context == 7
    with replaying(document):
        assert httpx.post("https://model.example/v1/messages", json=ASK).json() == session.result


def test_pytest_httpx_answers_a_tool_beside_a_recorded_model(suite):
    suite.write("""
import httpx
import respx

@pytest.mark.httpx_mock(should_mock=lambda request: request.url.host == "weather.example")
@pytest.mark.agent_latency
def test_agent(agent_run, url, httpx_mock):
    httpx_mock.add_response(json={"weather": "fine"})
    assert httpx.get("https://weather.example/today").json() == {"weather": "fine"}
    assert loop(url) == "It was found."

def test_mocked(httpx_mock):
    httpx_mock.add_response(text="x")
    assert httpx.get("https://other.example").text == "x"

@respx.mock
def test_respx():
    respx.get("https://other.example").mock(return_value=httpx.Response(200, text="y"))
    assert httpx.get("https://other.example").text == "y"
""")
    suite.record()
    before = suite.received
    suite.run().assert_outcomes(passed=3)
    assert suite.received == before


def test_a_model_call_that_pytest_httpx_took_was_not_observed(suite):
    suite.write("""
import httpx

@pytest.mark.agent_latency
def test_agent(agent_run, url, httpx_mock):
    httpx_mock.add_response(json={})
    httpx.post(url + "/v1/messages", json={"model": "m", "messages": []})
""")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no model call was observed*"])

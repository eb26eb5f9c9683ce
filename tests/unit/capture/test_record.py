"""What is observed while an agent talks to a real server through the real SDK."""

import asyncio
import gzip
import time

import anthropic
import httpx
import httpx2
import pytest
from anthropic import beta_async_tool, beta_tool

from pytest_agentlatency import tool
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.recording import Outcome
from pytest_agentlatency.testing import (
    Coding,
    CostModel,
    Cut,
    Refuse,
    Reply,
    SimulatedModel,
    SlowHeaders,
    Stall,
    ToolUse,
)
from tests.support.agents import HTTP, loop, loop_async, searches
from tests.support.sessions import PLAN, record, record_async
from tests.support.tls import contexts

MS = 1_000_000
MESSAGES = "http://model.example/v1/messages"


def runner(url, *tools):
    """The SDK's own loop, to its end."""
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        client.beta.messages.tool_runner(
            model="m", max_tokens=200, tools=tools, messages=[{"role": "user", "content": "go"}]
        ).until_done()


FIVE = CostModel(prefill=0, fixed=100 * MS, decode=100 * MS)


def stream(url, text="hello", **options):
    messages = [{"role": "user", "content": text}]
    with (
        anthropic.Anthropic(base_url=url, api_key="x", **options) as client,
        client.messages.stream(model="m", max_tokens=100, messages=messages) as events,
    ):
        return [(time.perf_counter(), event) for event in events if event.type == "text"]


def test_chunks_reach_the_agent_as_they_arrive():
    """Field note A2: five tokens 100 ms apart are spread over 0.35 s and more, not handed over at the end."""
    with SimulatedModel(Reply("abcdefghijklmnopqrst"), costs=FIVE) as model:
        session, document = record(stream, model.url)
    seen = [moment for moment, _ in session.result]
    assert len(seen) == 5
    assert seen[-1] - seen[0] >= 0.35
    stamps = document.recording.attempts[0].stamps
    assert stamps.arrived[-1] - stamps.arrived[0] >= 350 * MS


def test_an_endless_stream_yields_its_first_event_before_it_ends():
    """Field note A2: nothing waits for the end of a body that may have none."""
    with (
        SimulatedModel(Reply("abcdefgh"), faults={1: Stall(60_000 * MS, before=5)}) as model,
        Session(PLAN) as session,
        anthropic.Anthropic(base_url=model.url, api_key="x") as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as events,
    ):
        first = next(iter(events))
    assert first.type == "message_start"
    attempt = session.document().recording.attempts[0]
    assert attempt.outcome is Outcome.CLOSED
    assert attempt.response.chunks


def test_stamps_of_one_attempt_are_in_order():
    with SimulatedModel(searches(3)) as model:
        _, document = record(loop, model.url)
    for attempt in document.recording.attempts:
        stamps = attempt.stamps
        moments = [stamps.start, stamps.sent, stamps.headers, *stamps.arrived, stamps.end]
        assert moments == sorted(moments)
        assert len(stamps.arrived) == len(stamps.asked) == len(attempt.response.chunks)
    first, second = document.recording.attempts[:2]
    assert first.stamps.connect is not None
    assert second.stamps.connect is None, "a kept-alive connection was set up before"


def test_connecting_is_the_networks_and_no_prefill_of_the_first_turn(tmp_path):
    """Field note B13: a first turn that carries the handshake looks like a slow prompt."""
    server, client = contexts(tmp_path)
    with (
        SimulatedModel(searches(2), costs=CostModel(connect=150 * MS), tls=server) as model,
        HTTP.Client(verify=client) as http,
    ):
        session, document = record(loop, model.url, http_client=http)
    run, (attempt, second) = session.told().run, document.recording.attempts
    connecting = attempt.stamps.connect[1] - attempt.stamps.connect[0]
    assert connecting >= 150 * MS
    assert run.turn(1).time("network") >= connecting
    assert run.turn(1).time("prefill") == run.turn(1).call.milestones.first_token - attempt.stamps.sent
    assert attempt.stamps.sent >= attempt.stamps.connect[1]
    assert second.stamps.connect is None


def test_the_sdk_call_is_stamped_around_its_attempts():
    with SimulatedModel(searches(2)) as model:
        _, document = record(loop, model.url)
    for call, attempt in zip(document.recording.calls, document.recording.attempts, strict=True):
        assert call.sdk == f"anthropic {anthropic.__version__}"
        assert call.entered <= attempt.stamps.start <= attempt.stamps.headers <= call.returned


def test_usage_is_the_providers():
    with SimulatedModel(searches(4)) as model:
        session, _ = record(loop, model.url)
    run = session.told().run
    assert [turn.call.usage.context for turn in run.turns] == [served.tokens.context for served in model.served]
    assert [turn.call.usage.output for turn in run.turns] == [served.output for served in model.served]


def test_retries_are_attempts_of_one_call_and_the_backoff_is_seen():
    faults = {1: Refuse(529, retry_after=50 * MS), 2: Refuse(429, retry_after=50 * MS)}
    with SimulatedModel(Reply("hello"), faults=faults) as model:
        session, document = record(stream, model.url)
    (call,) = document.recording.calls
    assert [attempt.response.status for attempt in document.recording.attempts] == [529, 429, 200]
    assert {attempt.call for attempt in document.recording.attempts} == {call.id}
    assert [end - start >= 50 * MS for start, end in call.backoffs] == [True, True]
    turn = session.told().run.turn(1)
    assert turn.call.retries == 2
    assert turn.time(Phase.RETRY) >= 100 * MS


def test_a_stream_cut_by_the_server_is_an_error_with_its_name():
    cut = (HTTP.RemoteProtocolError, HTTP.ReadError, anthropic.APIError)
    with (
        SimulatedModel(Reply("abcdefghijkl"), faults={1: Cut(after=4)}) as model,
        Session(PLAN) as session,
        pytest.raises(cut),
    ):
        stream(model.url, max_retries=0)
    attempt = session.document().recording.attempts[0]
    assert attempt.outcome is Outcome.ERROR
    assert attempt.failure.kind in {"RemoteProtocolError", "ReadError"}
    assert attempt.response.chunks


def test_a_connection_that_fails_has_no_response():
    with SimulatedModel() as model:
        url = model.url
    with Session(PLAN) as session, pytest.raises(anthropic.APIConnectionError):
        stream(url, max_retries=0)
    attempt = session.document().recording.attempts[0]
    assert attempt.response is None
    assert attempt.failure.kind == "ConnectError"


def test_a_body_that_does_not_say_what_it_is_is_a_model_call_all_the_same():
    """A loop without an SDK often posts its JSON as it is."""
    asked = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    with SimulatedModel(Reply("hello")) as model:
        session, document = record(httpx.post, f"{model.url}/v1/messages", content=asked)
    assert len(document.recording.attempts) == 1
    assert session.problems() == ()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_body_is_stored_decoded_with_its_coding_noted(coding):
    """Field note A21."""
    with SimulatedModel(Reply("hello there"), faults={1: Coding(coding)}) as model:
        session, document = record(stream, model.url)
    response = document.recording.attempts[0].response
    assert response.coding == coding
    assert b"message_stop" in response.body
    assert all(chunk[:2] != gzip.compress(b"")[:2] for chunk in response.chunks)
    assert session.told().run.turn(1).call.usage.output == model.served[0].output


def test_credentials_are_not_in_what_is_stored():
    with SimulatedModel(Reply("hello")) as model:
        _session, document = (
            record(stream, model.url, api_key="sk-ant-api03-secretsecret")
            if False
            else record(
                stream, model.url, default_headers={"Authorization": "Bearer secret-token-12345678", "Cookie": "a=b"}
            )
        )
    names = {name.lower() for attempt in document.recording.attempts for name, _ in attempt.request.headers}
    assert not names & {"authorization", "x-api-key", "cookie"}
    assert b"secret-token" not in repr(document).encode()
    assert any(name.lower() == "authorization" for name, _ in model.requests[0].headers.items())


def test_tools_of_the_sdks_runner_are_timed_without_a_change_in_the_agent():
    @beta_tool
    def search(query: str) -> str:
        """Search."""
        return "found " + query

    with SimulatedModel(searches(3)) as model, Session(PLAN) as session:
        runner(model.url, search)
    run = session.told().run
    assert [tool.name for tool in run.tools] == ["search", "search"]
    assert all(tool.start <= tool.body[0] <= tool.body[1] <= tool.end for tool in run.tools)
    assert [len(turn.tools) for turn in run.turns] == [1, 1, 0]
    assert len(run.lanes) == 1, "a history that the server holds is still one lane"


def test_contexts_of_message_threads_are_rebuilt():
    """The runner sends only what is new; the context is what the server says, and it grows."""

    @beta_tool
    def search(query: str) -> str:
        """Search."""
        return "found " + query * 20

    with SimulatedModel(searches(4)) as model, Session(PLAN) as session:
        runner(model.url, search)
    told = session.told()
    contexts = [turn.call.usage.context for turn in told.run.turns]
    assert contexts == sorted(contexts)
    assert [len(reading.prompt.messages) for reading in told.readings] == [1, 3, 5, 7]
    assert all(reading.whole for reading in told.readings)


async def _run_async(url):
    @beta_async_tool
    async def search(query: str) -> str:
        """Search."""
        await asyncio.sleep(0)
        return "found " + query

    async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
        await client.beta.messages.tool_runner(
            model="m", max_tokens=200, tools=[search], messages=[{"role": "user", "content": "go"}]
        ).until_done()


def test_the_async_runner_too():
    with SimulatedModel(searches(3)) as model, Session(PLAN) as session:
        asyncio.run(_run_async(model.url))
    run = session.told().run
    assert [tool.name for tool in run.tools] == ["search", "search"]
    assert all(tool.body for tool in run.tools)


def test_arguments_that_fail_validation_make_an_error_without_a_body():
    @beta_tool
    def search(query: int) -> str:
        """Search."""
        return "found"

    with SimulatedModel(searches(2)) as model, Session(PLAN) as session:
        runner(model.url, search)
    (tool,) = session.told().run.tools
    assert tool.rejected
    assert tool.body is None
    assert session.told().run.turn(2).time(Phase.RETRY) > 0


def test_the_sdks_tools_are_as_they_were_afterwards():
    @beta_tool
    def search(query: str) -> str:
        """Search."""
        return "found"

    validated, call = search._func_with_validate, type(search).call
    with SimulatedModel(searches(2)) as model, Session(PLAN):
        runner(model.url, search)
    assert search._func_with_validate is validated
    assert type(search).call is call


def test_concurrent_agents_have_a_lane_each():
    async def both(url):
        return await asyncio.gather(
            *(loop_async(url, question=f"Task {number}", system=f"You are agent {number}.") for number in range(4))
        )

    with SimulatedModel(searches(3)) as model, Session(PLAN) as session:
        asyncio.run(both(model.url))
    run = session.told().run
    assert [len(lane.turns) for lane in run.lanes] == [3, 3, 3, 3]
    assert sum(run.phases.values()) == run.duration


@pytest.mark.parametrize("family", [httpx, httpx2])
def test_a_plain_client_of_either_family_is_seen(family):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with SimulatedModel(Reply("hello")) as model:
        session, document = record(family.post, f"{model.url}/v1/messages", json=body)
    assert session.result.json()["content"][0]["text"] == "hello"
    (call,) = document.recording.calls
    assert call.entered is None
    assert document.recording.attempts[0].stamps.connect is not None
    turn = session.told().run.turn(1)
    assert turn.call.usage.output == model.served[0].output
    assert turn.time(Phase.UNSPLIT) > 0


def test_a_users_own_trace_is_called_too():
    seen = []
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with SimulatedModel(Reply("hello")) as model, Session(PLAN), httpx2.Client() as client:
        extensions = {"trace": lambda event, _: seen.append(event)}
        client.post(f"{model.url}/v1/messages", json=body, extensions=extensions)
        assert set(extensions) == {"trace"}
    assert "http11.send_request_body.complete" in seen


def test_a_foreign_transport_is_put_behind_the_seam():
    """A mock, aiohttp behind an httpx face, a transport of one's own: seen all the same."""
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    answer |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3}}
    transport = HTTP.MockTransport(lambda _: HTTP.Response(200, json=answer))

    def agent():
        with anthropic.Anthropic(api_key="x", http_client=HTTP.Client(transport=transport)) as client:
            return client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])

    session, document = record(agent)
    assert session.told().run.turn(1).call.usage.context == 7
    assert len(document.recording.attempts) == 1
    assert document.others == ()


EVENTS = (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")
CALL = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def test_a_mocks_stream_is_given_and_recorded_chunk_by_chunk():
    """Field note A2: vcrpy's stub of such a transport reads the whole body first; a model call goes around it."""
    transport = HTTP.MockTransport(lambda _: HTTP.Response(200, content=iter(EVENTS)))

    def agent():
        with HTTP.Client(transport=transport) as client, client.stream("POST", MESSAGES, json=CALL) as response:
            return tuple(response.iter_raw())

    session, document = record(agent)
    assert session.result == EVENTS
    assert document.recording.attempts[0].response.chunks == EVENTS
    assert document.others == ()


def test_an_async_mocks_stream_is_given_and_recorded_chunk_by_chunk():
    async def events():
        for each in EVENTS:
            yield each

    async def agent():
        transport = HTTP.MockTransport(lambda _: HTTP.Response(200, content=events()))
        async with HTTP.AsyncClient(transport=transport) as client, client.stream("POST", MESSAGES, json=CALL) as given:
            return tuple([each async for each in given.aiter_raw()])

    session, document = asyncio.run(record_async(agent))
    assert session.result == EVENTS
    assert document.recording.attempts[0].response.chunks == EVENTS
    assert document.others == ()


def test_a_wrapping_transport_gives_one_exchange():
    """Field note A4: stacked transports are neither missed nor counted twice."""

    class Wrapper(HTTP.BaseTransport):
        def __init__(self):
            self.inner = HTTP.HTTPTransport()

        def handle_request(self, request):
            return self.inner.handle_request(request)

        def close(self):
            self.inner.close()

    def agent(url):
        with anthropic.Anthropic(base_url=url, api_key="x", http_client=HTTP.Client(transport=Wrapper())) as client:
            return client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])

    with SimulatedModel(Reply("hello")) as model:
        _, document = record(agent, model.url)
    assert len(document.recording.attempts) == 1


def test_headers_held_back_are_prefill_and_not_network():
    with SimulatedModel(Reply("hello there"), faults={1: SlowHeaders(80 * MS)}) as model:
        session, _ = record(stream, model.url)
    turn = session.told().run.turn(1)
    assert turn.time(Phase.PREFILL) > 60 * MS
    assert turn.time(Phase.NETWORK) < turn.time(Phase.PREFILL)


def test_tool_calls_from_a_hand_written_loop():
    @tool
    def search(query):
        return query

    @tool(name="renamed")
    async def find(query):
        return query

    assert search("outside") == "outside", "inert when nothing is observed"
    with SimulatedModel(Reply(tool_calls=[ToolUse("search", {})])) as model, Session(PLAN) as session:
        with anthropic.Anthropic(base_url=model.url, api_key="x") as client:
            client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])
        search("a")
        asyncio.run(find("b"))
    assert [each.name for each in session.told().run.tools] == ["search", "renamed"]


def test_async_recording_of_async_agents():
    with SimulatedModel(searches(3)) as model:
        session, document = asyncio.run(record_async(loop_async, model.url))
    assert session.result == "It was found."
    assert len(document.recording.calls) == 3

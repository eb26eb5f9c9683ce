"""Bodies from a server to the agent, to disk, and to the agent again: the same bytes at the same boundaries."""

import asyncio
import json
import time

import httpx
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.model.recording import Outcome
from tests.support.bytes_server import serving
from tests.support.sessions import record, record_async, replaying
from tests.support.wire import bedrock_stream

MS = 1_000_000
ASK = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
DELTA = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "höi"}})
SSE = f"event: content_block_delta\ndata: {DELTA}\n\n".encode()
PATHS = {"ndjson": "/api/chat", "aws event stream": "/model/m/converse-stream"}
BODIES = {
    "sse": [SSE, SSE, b'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    "sse with crlf": [SSE.replace(b"\n", b"\r\n")] * 3,
    "sse with cr": [SSE.replace(b"\n", b"\r")] * 3,
    "sse with comments": [b": keep-alive\n\n", SSE, b":\n\n", SSE],
    "sse with multi-line data": [b'event: x\ndata: {"type":\ndata: "ping"}\nid: 7\nretry: 10\n\n', SSE],
    "sse with a mark of byte order": [b"\xef\xbb\xbf", SSE],
    "sse that ends in the middle of an event": [SSE, SSE[:20]],
    "sse at every byte": [SSE[at : at + 1] for at in range(len(SSE))],
    "many events in one piece": [SSE * 40],
    "json": [json.dumps({"type": "message", "content": "höi"}, indent=1).encode()],
    "json that is none": [b'{"type": "mess'],
    "ndjson": [b'{"message":{"content":"h"},"done":false}\n', b'{"done":true}\n'],
    "aws event stream": list(bedrock_stream(("messageStart", {"role": "assistant"}), ("messageStop", {})).chunks),
    "no text at all": [bytes(range(256)), b"\x00" * 9, b"\r\n\r\n", b"\xff\xfe"],
    "what yaml might take for its own": [b"---\n", b"- !!x/y:z\n", b"...\n", b"\t\x85\xe2\x80\xa8 \n  end: 3\n"],
    "nothing": [],
}


def read(url, family=httpx2, path="/v1/messages"):
    """The chunks of a decoded body, and what came with it."""
    with family.Client() as client, client.stream("POST", url + path, json=_asked(path)) as response:
        return list(response.iter_bytes()), response.http_version, response.headers.get("content-type")


async def read_async(url, family=httpx2, path="/v1/messages"):
    async with family.AsyncClient() as client, client.stream("POST", url + path, json=_asked(path)) as response:
        chunks = [chunk async for chunk in response.aiter_bytes()]
        return chunks, response.http_version, response.headers.get("content-type")


def _asked(path):
    return {"messages": [{"role": "user", "content": [{"text": "hi"}]}]} if "converse" in path else ASK


@pytest.mark.parametrize("family", [httpx, httpx2])
@pytest.mark.parametrize("kind", BODIES)
def test_bodies_and_boundaries_come_back(kind, family):
    path = PATHS.get(kind, "/v1/messages")
    with serving(BODIES[kind]) as url:
        session, document = record(read, url, family, path)
    chunks, *head = session.result
    assert b"".join(chunks) == b"".join(BODIES[kind])
    assert document.recording.attempts[0].response.chunks == tuple(chunks)
    with replaying(document):
        again, *head_again = read(url, family, path)
    assert again == chunks
    assert head_again == head


@pytest.mark.parametrize("kind", ["sse with crlf", "sse at every byte", "no text at all"])
def test_bodies_and_boundaries_come_back_to_async_agents(kind):
    with serving(BODIES[kind]) as url:
        session, document = asyncio.run(record_async(read_async, url))
    with replaying(document):
        assert asyncio.run(read_async(url)) == session.result
    assert b"".join(session.result[0]) == b"".join(BODIES[kind])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("kind", ["sse", "json", "no text at all"])
def test_coded_bodies_are_stored_decoded_and_never_announced_again(kind, coding):
    """Field note A21: what decodes them may be gone when they are replayed."""
    with serving(BODIES[kind], coding=coding) as url:
        session, document = record(read, url)
    response = document.recording.attempts[0].response
    assert response.coding == coding
    assert response.body == b"".join(BODIES[kind])
    with replaying(document):
        again = read(url)
    assert b"".join(again[0]) == b"".join(session.result[0]) == b"".join(BODIES[kind])
    with replaying(document), httpx2.stream("POST", url + "/v1/messages", json=ASK) as replayed:
        replayed.read()
        assert not {"content-encoding", "content-length", "transfer-encoding"} & set(replayed.headers)


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_stream_that_dies_gives_what_came_and_the_same_exception(ending):
    def agent(url):
        seen = []
        with httpx2.Client() as client, client.stream("POST", url + "/v1/messages", json=ASK) as response:
            try:
                seen.extend(response.iter_bytes())
            except httpx2.TransportError as error:
                return seen, type(error), str(error)
        return seen, None, ""

    with serving([SSE, SSE, SSE[:9]], ending=ending, gap=20 * MS) as url:
        session, document = record(agent, url)
    assert session.result[1] is not None
    assert document.recording.attempts[0].outcome is Outcome.ERROR
    with replaying(document):
        assert agent(url) == session.result


def test_allowed_headers_and_the_http_version_come_back():
    headers = {"request-id": "req_1", "retry-after": "3", "set-cookie": "a=b", "x-secret": "s"}

    def agent(url):
        response = httpx2.post(url + "/v1/messages", json=ASK)
        return response.http_version, response.status_code, response.reason_phrase, dict(response.headers)

    with serving([SSE], headers=headers) as url:
        session, document = record(agent, url)
    with replaying(document):
        *head, kept = agent(url)
    assert head == list(session.result[:3])
    assert kept["retry-after"] == "3"
    assert kept["request-id"].startswith("sha256:")
    assert not {"set-cookie", "x-secret"} & set(kept)


def test_an_early_close_replays_what_was_read():
    def agent(url):
        with httpx2.Client() as client, client.stream("POST", url + "/v1/messages", json=ASK) as response:
            return next(response.iter_bytes())

    with serving([SSE] * 50, gap=30 * MS) as url:
        session, document = record(agent, url)
    assert document.recording.attempts[0].outcome is Outcome.CLOSED
    assert len(document.recording.attempts[0].response.chunks) < 50
    with replaying(document) as again:
        assert agent(url) == session.result
    assert not again.problems()


async def impatient(url, seconds=0.3):
    """An agent that takes its task back while the model is still speaking; how many chunks it has."""
    seen = []

    async def consume():
        async with httpx2.AsyncClient() as client, client.stream("POST", url + "/v1/messages", json=ASK) as response:
            async for chunk in response.aiter_bytes():
                seen.append(chunk)  # noqa: PERF401  # one by one: it is cut off in between

    try:
        async with asyncio.timeout(seconds):
            await consume()
    except TimeoutError:
        return len(seen)
    return -1


LATER = 60_000 * MS


@pytest.mark.parametrize(
    ("chunks", "headers_at"), [(2, 0), (0, 0), (0, LATER)], ids=["between chunks", "before a chunk", "before headers"]
)
def test_a_task_that_was_cancelled_is_cancelled_in_the_replay_too(chunks, headers_at):
    """Nothing more comes, as nothing more was recorded; what cancelled it then does so again, in virtual time."""
    with serving([SSE] * chunks, headers_at=headers_at, more_at=LATER) as url:
        session, document = asyncio.run(record_async(impatient, url))
    assert session.result == chunks
    assert document.recording.attempts[0].outcome is Outcome.CANCELLED
    started = time.monotonic()
    with replaying(document) as again:
        assert asyncio.run(impatient(url)) == chunks
    assert not again.problems()
    assert time.monotonic() - started < 20


def test_an_agent_that_does_not_give_up_where_the_recorded_one_did_is_told_so():
    with serving([SSE], more_at=LATER) as url:
        _, document = asyncio.run(record_async(impatient, url))
    with replaying(document) as again, pytest.raises(RunFailedError, match="where the recorded run stopped"):
        asyncio.run(impatient(url, seconds=1_000_000))
    assert again.problems()


def in_pieces(chunks):
    """A transport of a user's own, whose body comes in these pieces."""

    class Body(httpx2.SyncByteStream):
        def __iter__(self):
            yield from chunks

    class Transport(httpx2.BaseTransport):
        def handle_request(self, _):
            return httpx2.Response(200, stream=Body())

    return Transport()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=30), max_size=8))
def test_any_bytes_in_any_pieces_come_back(pieces):
    """A law: record, disk and replay change neither a byte nor a boundary."""

    def agent():
        with (
            httpx2.Client(transport=in_pieces(pieces)) as client,
            client.stream("POST", "http://model.example/v1/messages", json=ASK) as response,
        ):
            return list(response.iter_bytes())

    session, document = record(agent)
    assert session.result == pieces
    with replaying(document):
        assert agent() == pieces

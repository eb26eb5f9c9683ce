"""Event streams of tool servers: read as they come, stored, and open again in a replay."""

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import httpx
import httpx2
import pytest

from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.cassette import convert
from pytest_agentlatency.testing import Reply, SimulatedModel
from tests.support.sessions import PLAN, replaying

EVENTS = {"accept": "application/json, text/event-stream"}
SECRET = {"authorization": "Bearer tool-server-token-0123456789"}


@contextmanager
def tool_server(*, endless: bool):
    """A server whose stream gives one event and then stays open, or ends."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"event: message\ndata: 1\n\n")
            self.wfile.flush()
            if endless:
                over.wait()
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def ask(model_url):
    with anthropic.Anthropic(base_url=model_url, api_key="x") as client:
        client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


def first_event(family, url):
    with family.Client() as client, client.stream("GET", url, headers=EVENTS | SECRET) as response:
        return next(response.iter_raw())


async def first_event_async(family, url):
    """As a tool server's client does it: a task that listens until it is cancelled."""
    heard = asyncio.Queue()

    async def listen():
        async with family.AsyncClient() as client, client.stream("GET", url, headers=EVENTS) as response:
            async for chunk in response.aiter_raw():
                heard.put_nowait(chunk)

    listening = asyncio.create_task(listen())
    event = await heard.get()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    return event


AGENTS = [first_event, lambda family, url: asyncio.run(first_event_async(family, url))]


@pytest.mark.parametrize("family", [httpx, httpx2])
@pytest.mark.parametrize("agent", AGENTS, ids=["sync", "async"])
def test_a_stream_that_never_ends_is_read_as_it_comes_and_stays_open_in_a_replay(family, agent):
    """Field note A2: an MCP server's GET stream must give its events before it ends."""
    with SimulatedModel(Reply("hello")) as model, tool_server(endless=True) as url, Session(PLAN) as session:
        assert agent(family, url).endswith(b"data: 1\n\n")
        ask(model.url)
    document = session.document()
    assert len(document.others) == 1
    assert b"tool-server-token" not in repr(document).encode()
    with replaying(document) as replay:
        assert agent(family, url).endswith(b"data: 1\n\n")
        assert agent(family, url), "who connects again is given the stream again"
        ask("http://model.invalid")
    assert replay.problems() == ()


def test_a_stream_that_ended_ends_in_a_replay():
    with SimulatedModel(Reply("hello")) as model, tool_server(endless=False) as url, Session(PLAN) as session:
        was = httpx2.get(url, headers=EVENTS).content
        ask(model.url)
    with replaying(session.document()) as replay:
        assert httpx2.get(url, headers=EVENTS).content == was
        ask("http://model.invalid")
    assert replay.problems() == ()


def test_a_stream_that_was_not_recorded_is_refused():
    with SimulatedModel(Reply("hello")) as model, Session(PLAN) as session:
        ask(model.url)
    with replaying(session.document()) as replay, pytest.raises(BaseException, match="doesn't hold"):
        httpx2.get("http://127.0.0.1:9/mcp", headers=EVENTS)
    assert len(replay.problems()) == 1


def test_it_survives_the_trip_through_vcrpys_form():
    with SimulatedModel(Reply("hello")) as model, tool_server(endless=True) as url, Session(PLAN) as session:
        first_event(httpx2, url)
        ask(model.url)
    document = session.document()
    assert convert.from_vcr(convert.to_vcr(document)).others == document.others

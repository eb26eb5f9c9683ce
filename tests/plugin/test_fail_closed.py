"""In a replay nothing reaches a model, whatever HTTP stack the agent uses; the test is red and names the stack."""

import os
import socket
import threading

import pytest

BODY = '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = f"""
import http.client
import json
import socket
import urllib.request
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import requests
import urllib3

BODY = {BODY!r}
JSON = {{"content-type": "application/json"}}

def by_urllib(url):
    urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", BODY.encode(), JSON)).read()

def by_http_client(url):
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", "/v1/messages", BODY, JSON)
    connection.getresponse().read()

def by_requests(url):
    requests.post(url + "/v1/messages", data=BODY, headers=JSON)

def by_requests_session(url):
    with requests.Session() as session:
        session.post(url + "/v1/messages", json=json.loads(BODY), stream=True)

def by_urllib3(url):
    urllib3.PoolManager().request("POST", url + "/v1/messages", body=BODY, headers=JSON)

def by_aiohttp(url):
    async def main():
        async with aiohttp.ClientSession() as session:
            answer = await session.post(url + "/v1/messages", data=BODY, headers=JSON)
            await answer.read()
    asyncio.run(main())

def request(url):
    path = f"POST /v1/messages HTTP/1.1\\r\\nhost: model\\r\\ncontent-length: {{len(BODY)}}\\r\\n\\r\\n"
    return path.encode() + BODY.encode()

def by_socket(url):
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as connection:
        connection.sendall(request(url))
        connection.recv(1024)

def by_connect_ex(url):
    with socket.socket() as connection:
        connection.connect_ex((urlsplit(url).hostname, urlsplit(url).port))
        connection.send(request(url))

def by_a_message_of_parts(url):
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as connection:
        connection.sendmsg([request(url)])

def by_asyncio_streams(url):
    async def main():
        reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        writer.writelines([request(url)[:10], request(url)[10:]])
        await writer.drain()
        await reader.read(10)
    asyncio.run(main())

class Own(httpx2.BaseTransport):
    def handle_request(self, request):
        connection = socket.create_connection((request.url.host, request.url.port))
        connection.sendall(b"POST /v1/messages HTTP/1.1\\r\\n\\r\\n" + request.read())
        return httpx2.Response(200, json={{}})

def by_an_own_transport(url):
    with httpx2.Client(transport=Own()) as client:
        client.post(url + "/v1/messages", content=BODY.replace("hi", "another"), headers=JSON)

class Pool(httpx2.HTTPTransport):
    def handle_request(self, request):
        import httpcore2
        core = httpcore2.Request(request.method, str(request.url), headers=request.headers.raw, content=request.read())
        answer = self._pool.handle_request(core)
        return httpx2.Response(answer.status, content=answer.read())

def by_a_subclass_of_a_transport(url):
    with httpx2.Client(transport=Pool()) as client:
        client.post(url + "/v1/messages", content=BODY, headers=JSON)

class Client(httpx.Client):
    def _transport_for_url(self, url):
        return httpx.MockTransport(lambda request: by_socket(url) or httpx.Response(200))

def by_a_client_with_its_own_choice(url):
    with Client() as client:
        client.post(url + "/v1/messages", content=BODY, headers=JSON)
"""
STACKS = {
    "by_urllib": "urllib.request",
    "by_http_client": "http.client",
    "by_requests": "requests",
    "by_requests_session": "requests",
    "by_urllib3": "urllib3",
    "by_aiohttp": "aiohttp",
    "by_socket": "a client of its own",
    "by_connect_ex": "a client of its own",
    "by_a_message_of_parts": "a client of its own",
    "by_asyncio_streams": "a client of its own",
    "by_an_own_transport": "model call 4 ",
    "by_a_subclass_of_a_transport": "httpx2",
    "by_a_client_with_its_own_choice": "httpx",
}


class Wire:
    """A listener that notes every connection and every byte."""

    def __init__(self):
        self.connections, self.data = 0, b""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        try:
            while True:
                connection, _ = self._server.accept()
                self.connections += 1
                connection.settimeout(5)
                with connection:
                    while data := connection.recv(65536):
                        self.data += data
        except OSError:
            return

    def close(self):
        self._server.close()


@pytest.fixture
def wire():
    wire = Wire()
    yield wire
    wire.close()


def replayed_with(suite, client, url):
    """Record the plain agent, then replay one that also asks by another client, at this URL."""
    suite.written()
    suite.setenv("OTHER_URL", url)
    suite.write(
        HEAD
        + f"""
import os

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    try:
        {client}(os.environ["OTHER_URL"])
    except Exception:
        pass
"""
    )
    return suite.run()


@pytest.mark.parametrize("client", STACKS)
def test_a_client_beside_the_seam_is_stopped(suite, client):
    """At the very server that the recorded calls went to."""
    suite.written()
    asked = suite.received
    result = replayed_with(suite, client, suite.model.url)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{STACKS[client]}*"])
    result.stdout.fnmatch_lines(["FAILED test_agent.py::test_agent - Failed: *"])
    assert suite.received == asked * 2, "the recording in this helper, and nothing more"


@pytest.mark.parametrize("client", STACKS)
def test_nothing_of_a_model_call_is_sent_to_another_local_server_either(suite, wire, client):
    """A connection inside this machine may be a tool's; a model call over it is none, and not one byte goes out."""
    result = replayed_with(suite, client, wire.url)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{STACKS[client]}*"])
    assert wire.data == b""


def test_a_proxy_on_this_machine_is_no_way_out(suite, wire):
    """HTTP through a proxy names the model's host in the request's first line."""
    suite.written()
    suite.setenv("OTHER_URL", wire.url)
    suite.write("""
import os
import socket
from urllib.parse import urlsplit

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    proxy = urlsplit(os.environ["OTHER_URL"])
    for line in (b"CONNECT api.anthropic.com:443 HTTP/1.1", b"POST http://api.anthropic.com/v1/messages HTTP/1.1"):
        with pytest.raises(BaseException, match="refused in replay"):
            with socket.create_connection((proxy.hostname, proxy.port)) as connection:
                connection.sendall(line + b"\\r\\nhost: api.anthropic.com\\r\\n\\r\\n")
""")
    suite.run().assert_outcomes(failed=1)
    assert wire.data == b""


MOCKED = """
from tests.support.agents import HTTP

def answer(request):
    raise AssertionError("the mock is asked")

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    client = HTTP.Client(transport=HTTP.MockTransport(answer))
    assert loop(url, http_client=client) == "It was found."
    assert agent_run.calls == 3
"""


def test_a_mock_in_the_agents_client_is_not_asked(suite):
    """The cassette answers in its place: a mock would make the figures a fiction."""
    suite.written()
    suite.write(MOCKED)
    suite.run().assert_outcomes(passed=1)


HOSTS = {
    "an address": "192.0.2.1",
    "an address of version 6": "2001:db8::1",
    "a name": "model.invalid",
    "the real thing": "api.anthropic.com",
}


@pytest.fixture
def no_network(monkeypatch):
    """Nothing here may connect: what gets past the guard fails as a test, not as the network."""
    passed = []

    def refuse(*arguments):
        passed.append(arguments)
        msg = "the network is not for tests"
        raise OSError(msg)

    real, resolve = socket.socket.connect, socket.getaddrinfo

    def connect(sock, address):
        return real(sock, address) if address[0] in {"127.0.0.1", "::1"} else refuse(address)

    def getaddrinfo(host, *rest, **more):
        return resolve(host, *rest, **more) if host in {"127.0.0.1", "localhost", None} else refuse(host)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return passed


@pytest.mark.parametrize("host", HOSTS)
def test_no_other_host_is_connected_to(suite, no_network, host):
    """Not even its name is looked up."""
    suite.written()
    suite.write(f"""
import socket

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    with pytest.raises(BaseException, match="refused in replay"):
        socket.create_connection(({HOSTS[host]!r}, 443), timeout=1)
""")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        f"refused in replay: a client of its own opens a connection to {HOSTS[host]}:443*",
        f"*latency_allow_hosts = {HOSTS[host]}*",
    ])  # fmt: skip
    assert no_network == []


ASYNC_HOST = """
import socket

@pytest.mark.agent_latency
@pytest.mark.asyncio
async def test_agent(url):
    await loop_async(url)
    with pytest.raises(BaseException, match="refused in replay"):
        await asyncio.open_connection("model.invalid", 443)
    event_loop = asyncio.get_running_loop()
    with socket.socket() as plain:
        plain.setblocking(False)
        with pytest.raises(BaseException, match="refused in replay"):
            await event_loop.sock_connect(plain, ("192.0.2.1", 443))
"""


def test_the_event_loop_is_no_way_out(suite, no_network):
    suite.written()
    suite.write(ASYNC_HOST)
    suite.run().assert_outcomes(failed=1)
    assert no_network == []


@pytest.mark.parametrize(
    "how", ["latency_allow_hosts = 192.0.2.1 db.invalid", "latency_allow_hosts =\n  192.0.2.1\n  db.invalid"]
)
def test_a_host_can_be_allowed(suite, no_network, how):
    suite.ini(how)
    suite.written()
    suite.write("""
import socket

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    for host in ("192.0.2.1", "db.invalid"):
        with pytest.raises(OSError, match="the network is not for tests"):
            socket.create_connection((host, 5432), timeout=1)
""")
    suite.run().assert_outcomes(passed=1)
    assert len(no_network) == 2


def test_no_datagram_leaves(suite, no_network):
    """HTTP/3 is made of them."""
    suite.written()
    suite.write("""
import socket

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        for send in (
            lambda: datagrams.sendto(b"hi", ("192.0.2.1", 443)),
            lambda: datagrams.sendto(b"hi", 0, ("192.0.2.1", 443)),
            lambda: datagrams.sendmsg([b"hi"], [], 0, ("192.0.2.1", 443)),
        ):
            with pytest.raises(BaseException, match="refused in replay"):
                send()
        datagrams.sendto(b"hi", ("127.0.0.1", 9))
""")
    suite.run().assert_outcomes(failed=1)
    assert no_network == []


def test_a_local_database_is_let_through(suite, wire):
    """An agent's tools may use what runs on this machine."""
    suite.written()
    suite.setenv("OTHER_URL", wire.url)
    suite.write("""
import os
import socket
from urllib.parse import urlsplit

@pytest.mark.agent_latency
def test_agent(url):
    loop(url)
    place = urlsplit(os.environ["OTHER_URL"])
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(b"SELECT 1")
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"POST /v1/messages HTTP/1.1\\r\\n\\r\\n")
""")
    suite.run().assert_outcomes(passed=1)


def test_sockets_are_as_they_were_afterwards(suite):
    before = [
        getattr(socket.socket, name) for name in ("connect", "connect_ex", "send", "sendall", "sendmsg", "sendto")
    ]
    resolver = socket.getaddrinfo
    suite.written()
    suite.run().assert_outcomes(passed=1)
    assert [
        getattr(socket.socket, name) for name in ("connect", "connect_ex", "send", "sendall", "sendmsg", "sendto")
    ] == before
    assert socket.getaddrinfo is resolver


@pytest.mark.parametrize(
    ("client", "stack"), [("by_urllib", "urllib.request"), ("by_requests", "requests"), ("by_aiohttp", "aiohttp")]
)
def test_an_agent_that_only_uses_a_stack_that_cannot_be_timed_is_told_when_it_is_recorded(suite, client, stack):
    """Field note A3: not a green test without figures, and no cassette that would replay it unseen."""
    suite.write(HEAD + f"\n@pytest.mark.agent_latency\ndef test_agent(url):\n    {client}(url)\n")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"a model call to *v1/messages went through {stack}, an HTTP stack that can't be timed."]
    )
    assert not suite.cassette().exists()


def test_a_transport_that_cannot_be_seen_is_named_when_it_is_recorded(suite):
    suite.write(HEAD + "\n@pytest.mark.agent_latency\ndef test_agent(url):\n    by_a_subclass_of_a_transport(url)\n")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no model call was observed*"])
    assert suite.files() == []


FORKS = """
import os
import socket
from urllib.parse import urlsplit

def same(url):
    assert loop(url) == "It was found."

def again(url):
    same(url)
    same(url)

def beside(url):
    socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))

def forked(act, url, go=None):
    child = os.fork()
    if child:
        return child
    code = 9
    try:
        if go is not None:
            os.read(go, 1)
        act(url)
        code = 0
    except BaseException as error:
        code = 3 if type(error).__name__ == "StoppedError" else 4
    finally:
        os._exit(code)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@forks
def test_a_forked_childs_model_call_is_answered_or_refused_and_never_sent(suite):
    """The patches are memory, and a fork copies memory: what was recorded is answered, anything else is refused."""
    suite.written()
    suite.write(
        FORKS
        + """
@pytest.mark.agent_latency
def test_agent(url):
    children = [forked(act, url) for act in (same, again, beside)]
    loop(url)
    assert [ended(child) for child in children] == [0, 3, 3]
"""
    )
    asked = suite.received
    run = suite.in_a_process()
    assert run.returncode == 0, run.stdout
    assert suite.received == asked


@forks
def test_a_forked_child_that_outlives_the_test_is_still_behind_the_guard(suite):
    suite.written()
    suite.write(
        FORKS
        + """
children = []
reading, writing = os.pipe()

@pytest.mark.agent_latency
def test_agent(url):
    children.extend(forked(act, url, go=reading) for act in (again, beside))
    loop(url)

def test_that_comes_after():
    os.write(writing, b"go")
    assert [ended(child) for child in children] == [3, 3]
"""
    )
    asked = suite.received
    run = suite.in_a_process()
    assert run.returncode == 0, run.stdout
    assert suite.received == asked


LATE = """
import threading

go, threads = threading.Event(), []

def late(url):
    go.wait(30)
    loop(url, question="Late.")

@pytest.mark.agent_latency
def test_agent(url):
    threads.append(threading.Thread(target=late, args=(url,), name="late", daemon=True))
    threads[0].start()
    loop(url)

@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_unmarked(url):
    go.set()
    threads[0].join()
    assert loop(url) == "It was found."
"""


def test_a_thread_left_over_by_a_replay_is_refused_in_a_later_test_that_is_free(suite):
    """Field note A6: between tests too, and the unmarked test beside it calls as it likes."""
    suite.written()
    asked = suite.received
    suite.write(LATE)
    run = suite.in_a_process("-p", "no:randomly")
    assert run.returncode == 0, run.stdout
    assert suite.received == asked + 3
    assert not any(b"Late." in request.body for request in suite.model.requests)

"""Against real HTTP libraries and a real server on loopback."""

import asyncio
import contextlib
import gzip
import http.client
import http.server
import os
import socket
import subprocess
import sys
import textwrap
import threading
import urllib.request

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

from pytest_agentlatency.cassette import document
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.secrets import Learned, scan
from pytest_agentlatency.cassette.vcr import OtherHTTP, bypassed, foreign_cassette_active
from pytest_agentlatency.model.recording import Recording
from tests.support import documents as some


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the path, the body, and how many requests came before."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.served += 1
        answer = b" ".join([self.path.encode(), body, str(self.server.served).encode()])
        self.send_response(302 if "redirect" in self.path else 200)
        if "redirect" in self.path:
            self.send_header("location", "/landed")
            self.send_header("set-cookie", "session=opensesame")
        if "gzip" in self.path:
            answer = gzip.compress(answer)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815 -- http.server's name

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as running:
        running.served = 0
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


class SlowFirst(Echo):
    """The first request is answered after the second."""

    def do_GET(self):
        self.server.served += 1
        number = self.server.served
        if number == 1:
            self.server.first_is_here.set()
            self.server.second_is_answered.wait(30)
        answer = f"answer {number}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 -- http.server's name


def with_requests(url):
    with requests.Session() as session:
        return session.post(url, data=b"r").content


def with_urllib3(url):
    with urllib3.PoolManager() as pool:
        return pool.request("GET", url).data


def with_urllib(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def with_http_client(url):
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"/{path}")
    try:
        return connection.getresponse().read()
    finally:
        connection.close()


def with_httpx(url):
    with httpx.Client() as client:
        return client.post(url, json={"a": 1}).content


def with_httpx2(url):
    with httpx2.Client() as client:
        return client.post(url, json={"a": 1}).content


def with_async_httpx2(url):
    async def fetch():
        async with httpx2.AsyncClient() as client:
            return (await client.get(url)).content

    return asyncio.run(fetch())


def with_aiohttp(url):
    async def fetch():
        async with aiohttp.ClientSession() as session, session.post(url, json={"x": 1}) as answer:
            return await answer.read()

    return asyncio.run(fetch())


STACKS = {
    "requests": with_requests,
    "urllib3": with_urllib3,
    "urllib.request": with_urllib,
    "http.client": with_http_client,
    "httpx": with_httpx,
    "httpx2": with_httpx2,
    "httpx2 ": with_async_httpx2,
    "aiohttp": with_aiohttp,
}
every_stack = pytest.mark.parametrize("stack", STACKS)


def url(server, path="/a?q=1"):
    return f"http://127.0.0.1:{server.server_port}{path}"


@every_stack
def test_what_was_recorded_is_replayed_through_the_file_and_without_the_server(server, stack):
    with OtherHTTP(record=True) as recording:
        live = STACKS[stack](url(server))
    written = document.dumps(Document(Recording(), recording.interactions))
    with OtherHTTP(document.loads(written, "x").others, record=False) as replay:
        assert STACKS[stack](url(server)) == live
        assert (replay.misses, replay.unused) == ([], ())
    assert server.served == 1


@every_stack
def test_a_request_that_was_not_recorded_goes_nowhere_and_is_noted_by_its_library(server, stack):
    with OtherHTTP(record=False) as replay:
        with pytest.raises(Exception):  # noqa: B017 -- some libraries wrap vcrpy's own
            STACKS[stack](url(server, "/b?token=hunter2&x=1"))
        (miss,) = replay.misses
    assert (miss.stack, miss.url) == (stack.strip(), url(server, "/b?token&x"))
    assert "hunter2" not in repr(replay.misses)
    assert server.served == 0


def test_a_user_and_password_in_a_url_are_not_repeated(server):
    with OtherHTTP(record=False) as replay, pytest.raises(CannotOverwriteExistingCassetteException):
        with_httpx(url(server).replace("//", "//user:hunter2@"))
    assert replay.misses[0].url == url(server, "/a?q")


def test_a_miss_swallowed_by_the_agent_is_noted_all_the_same(server):
    with OtherHTTP(record=False) as replay, contextlib.suppress(CannotOverwriteExistingCassetteException):
        with_httpx(url(server))
    assert len(replay.misses) == 1


def follow(target, times):
    async def fetch():
        async with aiohttp.ClientSession() as session:
            answers = []
            for _ in range(times):
                async with session.get(target) as answer:
                    answers.append(await answer.read())
            return answers

    return asyncio.run(fetch())


def test_a_redirect_followed_twice_is_no_miss(server):
    with OtherHTTP(record=True) as recording:
        live = follow(url(server, "/redirect"), 2)
    with OtherHTTP(recording.interactions, record=False) as replay:
        assert follow(url(server, "/redirect"), 2) == live
    assert (replay.misses, replay.unused) == ([], ())


def test_a_redirect_into_nothing_is_a_miss(server):
    """The URL is that of the redirect: vcrpy looks for what resembles its target, and asks for that."""
    with OtherHTTP(record=True) as recording:
        follow(url(server, "/redirect"), 1)
    with OtherHTTP(recording.interactions[:1], record=False) as replay:  # noqa: SIM117
        with pytest.raises(Exception, match="contain the request"):
            follow(url(server, "/redirect"), 1)
    assert [(miss.stack, miss.url) for miss in replay.misses] == [("aiohttp", url(server, "/redirect"))]


def test_a_changed_body_is_a_miss_not_the_recorded_answer(server):
    with OtherHTTP(record=True) as recording, httpx.Client() as client:
        client.post(url(server), json={"a": 1, "b": 2})
    with OtherHTTP(recording.interactions, record=False) as replay, httpx.Client() as client:
        with pytest.raises(CannotOverwriteExistingCassetteException):
            client.post(url(server), json={"a": 1, "b": 3})
        client.post(url(server), json={"b": 2, "a": 1})
    assert len(replay.misses) == 1


def test_equal_requests_are_answered_in_their_order(server):
    with OtherHTTP(record=True) as recording:
        live = [with_httpx(url(server)) for _ in range(3)]
    with OtherHTTP(recording.interactions, record=False):
        assert [with_httpx(url(server)) for _ in range(3)] == live
    assert len(set(live)) == 3


def test_what_the_agent_did_not_ask_again_is_unused(server):
    with OtherHTTP(record=True) as recording:
        with_httpx(url(server, "/a?page=x"))
        with_requests(url(server, "/b"))
    with OtherHTTP(recording.interactions, record=False) as replay:
        with_requests(url(server, "/b"))
    assert [(each.method, each.url) for each in replay.unused] == [("POST", url(server, "/a?page"))]


def test_compressed_answers_are_stored_decoded_where_a_scan_can_see_them(server):
    with OtherHTTP(record=True) as recording:
        live = with_requests(url(server, "/gzip"))
    (interaction,) = recording.interactions
    assert interaction["response"]["body"]["string"] == live
    assert "content-encoding" not in {name.lower() for name in interaction["response"]["headers"]}
    with OtherHTTP(recording.interactions, record=False):
        assert with_requests(url(server, "/gzip")) == live


def test_recording_writes_no_file(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with OtherHTTP(record=True):
        with_requests(url(server))
    assert list(tmp_path.iterdir()) == []


def test_the_libraries_are_put_back(server):
    before = (http.client.HTTPConnection, httpx.HTTPTransport.handle_request, httpx2.HTTPTransport.handle_request)
    with OtherHTTP(record=True):
        assert http.client.HTTPConnection is not before[0]
    after = (http.client.HTTPConnection, httpx.HTTPTransport.handle_request, httpx2.HTTPTransport.handle_request)
    assert after == before
    assert with_requests(url(server)) == b"/a?q=1 r 1"


def test_a_patch_on_top_takes_what_it_wants_and_hands_the_rest_down(server, monkeypatch):
    """As capture does: its own patch comes after, and calls what was there for requests that are no model call."""
    real = httpx2.HTTPTransport.handle_request
    with OtherHTTP(record=True) as recording:
        beneath = httpx2.HTTPTransport.handle_request

        def on_top(self, request):
            return (real if "model" in str(request.url) else beneath)(self, request)

        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", on_top)
        with_httpx2(url(server, "/model"))
        with_httpx2(url(server, "/tool"))
        monkeypatch.undo()
    assert [each["request"]["uri"] for each in recording.interactions] == [url(server, "/tool")]


def test_what_happens_beneath_a_recorded_call_is_not_recorded_again(server):
    """httpx over aiohttp is one exchange, not two."""
    with OtherHTTP(record=True) as recording, bypassed():
        with_aiohttp(url(server))
    assert recording.interactions == ()
    assert server.served == 1


def test_threads_are_recorded_without_loss(server):
    with OtherHTTP(record=True) as recording:
        threads = [threading.Thread(target=with_httpx, args=(url(server, f"/{at}"),)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {each["request"]["uri"] for each in recording.interactions} == {url(server, f"/{at}") for at in range(8)}


def test_a_cassette_of_the_user_is_told_from_ours(server, tmp_path):
    assert not foreign_cassette_active()
    with OtherHTTP(record=True):
        assert not foreign_cassette_active()
    with vcr.use_cassette(str(tmp_path / "theirs.yaml")):
        assert foreign_cassette_active()
    assert not foreign_cassette_active()


def test_importing_it_imports_no_vcr():
    code = "import sys, pytest_agentlatency.cassette.vcr; print({'vcr', 'httpx', 'httpx2', 'yaml'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout == "set()\n"


def test_pytest_recording_replays_a_cassette_of_ours(tmp_path):
    """The real plugin, in a process of its own: it answers from our file, and refuses the network."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        target = f"http://127.0.0.1:{closed.getsockname()[1]}/p/7"
    call = some.tool_call()
    others = ({**call, "request": {**call["request"], "uri": target}},)
    cassette = tmp_path / "cassettes" / "test_theirs" / "test_it.yaml"
    cassette.parent.mkdir(parents=True)
    cassette.write_bytes(document.dumps(Document(some.session(3).recording, others)))
    before = cassette.read_bytes()
    test = f"""
        import httpx, pytest

        @pytest.mark.vcr
        @pytest.mark.block_network
        def test_it():
            assert httpx.get({target!r}).json() == {{"town": "Bath"}}
            first = httpx.post("https://api.example.com/v1/messages?beta=true", json={{}})
            assert "📦" in first.text
    """
    (tmp_path / "test_theirs.py").write_text(textwrap.dedent(test), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_recording.plugin",
        "-p",
        "no:agentlatency",
        str(tmp_path),
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    shown = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)  # noqa: S603
    assert "1 passed" in shown.stdout, shown.stdout
    assert cassette.read_bytes() == before


@pytest.mark.parametrize("ask", [requests.get, httpx.get, httpx2.get], ids=["requests", "httpx", "httpx2"])
def test_a_tools_credentials_are_not_stored_and_not_needed_to_replay(server, ask):
    """Whatever they look like: a header or a query value that is named as one is left out."""
    planted = {"Authorization": "Bearer opensesame", "X-Weather-Auth": "opensesame", "Cookie": "s=opensesame"}
    learned = Learned()
    with OtherHTTP(record=True, learned=learned) as recording:
        given = ask(url(server, "/weather?city=Bonn&api_key=opensesame"), headers=planted).content
    assert "opensesame" not in str(recording.interactions[0]["request"])
    with OtherHTTP(recording.interactions, record=False) as replay:
        assert ask(url(server, "/weather?city=Bonn&api_key=other")).content == given
    assert replay.misses == []


def test_a_tools_credential_that_comes_back_in_an_answer_is_learned(server):
    """It has no shape by which it could be told."""
    learned = Learned()
    with OtherHTTP(record=True, learned=learned):
        requests.get(url(server, "/"), headers={"Authorization": "Bearer opensesame-opensesame"}, timeout=9)
    assert scan([("answer", "it said opensesame-opensesame")], learned)


def test_an_answers_cookies_are_not_stored_and_what_callers_act_on_is(server):
    with OtherHTTP(record=True) as recording:
        with_requests(url(server, "/redirect"))
    names = {name.lower() for name in recording.interactions[0]["response"]["headers"]}
    assert "location" in names
    assert not names & {"set-cookie", "date"}


def recorded_with(hooks, server, ask=with_urllib):
    with OtherHTTP(record=True, hooks=hooks) as other:
        ask(url(server, "/asked?team=blue&page=2"))
    return other.interactions


def test_hooks_run_on_the_way_in(server):
    def scrub(response):
        return {**response, "body": {"string": b"scrubbed"}}

    (one,) = recorded_with({"filter_query_parameters": ["team"], "before_record_response": scrub}, server)
    assert one["request"]["uri"].endswith("/asked?page=2")
    assert one["response"]["body"]["string"] == b"scrubbed"


def test_hooks_never_run_on_loading(server):
    """Field note A15: a filter that drops what is stored would lose it in silence."""
    interactions = recorded_with({}, server)

    def drop(_):
        return None

    with OtherHTTP(interactions, record=False, hooks={"before_record_response": drop, "filter_headers": ["host"]}):
        assert with_urllib(url(server, "/asked?team=blue&page=2")) == interactions[0]["response"]["body"]["string"]
    assert server.served == 1


def test_a_live_request_passes_the_hooks_before_it_is_compared(server):
    hooks = {"filter_query_parameters": ["team"]}
    interactions = recorded_with(hooks, server)
    with OtherHTTP(interactions, record=False, hooks=hooks):
        with_urllib(url(server, "/asked?team=green&page=2"))
    assert server.served == 1


def test_what_a_hook_ignores_is_not_recorded(server):
    assert recorded_with({"ignore_localhost": True}, server) == ()


def test_modes_and_paths_of_a_vcr_config_change_nothing(server):
    assert len(recorded_with({"record_mode": "none", "cassette_library_dir": "/nowhere", "match_on": []}, server)) == 1


@pytest.mark.parametrize("get", [with_httpx, with_httpx2, with_async_httpx2])
def test_equal_requests_are_answered_in_the_order_in_which_they_were_asked(server, get):
    """Two workers poll one queue: whose answer came first has no bearing on whose it is."""
    server.RequestHandlerClass = SlowFirst
    server.first_is_here, server.second_is_answered = threading.Event(), threading.Event()
    url, told = f"http://127.0.0.1:{server.server_port}/next", {}
    with OtherHTTP(record=True) as recorded:
        first = threading.Thread(target=lambda: told.update(first=get(url)))
        first.start()
        assert server.first_is_here.wait(30)
        told["second"] = get(url)
        server.second_is_answered.set()
        first.join()
    assert told == {"first": b"answer 1", "second": b"answer 2"}
    with OtherHTTP(recorded.interactions, record=False):
        assert [get(url), get(url)] == [b"answer 1", b"answer 2"]

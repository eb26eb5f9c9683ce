"""Calls of fixtures around a marked test: set-up, clean-up, wider scopes."""

import socket

import pytest

from tests.support.suite import interactions
from tests.support.webapp import WebApp

TIDY = """
@pytest.fixture
def agent(url):
    yield lambda: loop(url)
    loop(url, question="Tidy up.")

@pytest.mark.agent_latency
def test_agent(agent):
    assert agent()
"""
SHELF = """
import http.server, threading, urllib.request

PORT = {port}

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
        with open("shelf.log", "a") as log:
            log.write(self.command + "\\n")
    do_GET = do_DELETE = answer
    def log_message(self, *args):
        pass

@pytest.fixture(scope="session")
def shelf():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/row"
    server.shutdown()
    server.server_close()

@pytest.fixture
def row(shelf):
    yield urllib.request.urlopen(shelf).read()
    urllib.request.urlopen(urllib.request.Request(shelf, method="DELETE"))

@pytest.mark.agent_latency
def test_agent(row, url):
    assert row == b"ok"
    loop(url)
"""


def test_a_clean_up_that_calls_the_model_is_refused_in_a_replay(suite):
    """Field note A6: the verdict has been given, but nothing leaves all the same."""
    suite.written()
    asked = suite.received
    suite.write(TIDY)
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["1 model call(s) after the test's body*"])
    assert suite.received == asked


def test_a_clean_up_that_calls_the_model_is_told_when_it_is_recorded(suite):
    """The same verdict as in the replay to come; not a surprise there."""
    suite.write(TIDY)
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["3 model call(s) after the test's body*"])
    assert len(interactions(suite.cassette())) == 3


def test_other_http_of_set_up_and_clean_up_is_replayed(suite):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    suite.written(SHELF.replace("{port}", str(port)))
    assert (suite.path / "shelf.log").read_text().split() == ["GET", "DELETE"]
    suite.run().assert_outcomes(passed=1)
    assert (suite.path / "shelf.log").read_text().split() == ["GET", "DELETE"]


PLAN = """
@pytest.fixture(scope="{scope}")
def plan(url):
    {call}

@pytest.mark.agent_latency
def test_agent(plan, url):
    loop(url)
"""
SWALLOWS = """try:
        return loop(url)
    except BaseException:
        return "no plan"
"""


@pytest.mark.parametrize("call", ["return loop(url)", SWALLOWS], ids=["plainly", "swallowing"])
@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_wider_fixture_may_not_ask_the_model(suite, scope, call):
    """It would be in the cassette of whichever test comes first; so it is refused when that is recorded, too."""
    suite.written()
    asked = suite.received
    suite.write(PLAN.format(scope=scope, call=call))
    for options in ([], ["--latency-mode=record"]):
        result = suite.run(*options)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["a model call before the test's own fixtures.", "A fixture of a wider scope *"])
        assert suite.received == asked
    suite.run("--latency-mode=live").assert_outcomes(passed=1)


SERVICE = """
import os
import socket
import urllib.request

@pytest.fixture(scope="session")
def service():
    assert urllib.request.urlopen(os.environ["APP_URL"] + "/health").status == 200
    {more}

@pytest.mark.agent_latency
@pytest.mark.parametrize("town", ["Hamburg", "Bremen"])
def test_agent(service, url, town):
    loop(url, question=town)
"""


def test_a_wider_fixtures_other_http_is_no_tests(suite):
    """Each test replays alone: what started the service isn't in the cassette of the first."""
    app = WebApp()
    suite.setenv("APP_URL", app.url)
    suite.write(SERVICE.format(more=""))
    suite.record()
    assert [len(interactions(suite.cassette(f"test_agent[{town}]"))) for town in ("Hamburg", "Bremen")] == [3, 3]
    for choice in ("Hamburg", "Bremen"):
        suite.run("-k", choice).assert_outcomes(passed=1, deselected=1)
    app.close()


def test_a_wider_fixture_stays_on_this_machine_in_a_replay(suite):
    app = WebApp()
    suite.setenv("APP_URL", app.url)
    suite.write(SERVICE.format(more=""))
    suite.record()
    suite.write(SERVICE.format(more='socket.create_connection(("192.0.2.1", 443), timeout=1)'))
    result = suite.run("-k", "Hamburg")
    app.close()
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["refused in replay: *opens a connection to 192.0.2.1:443*"])


def test_a_wider_fixture_that_fails_leaves_nothing_in_place(suite):
    """The next test finds its sockets and clients as they were."""
    suite.write("""
@pytest.fixture(scope="module")
def plan():
    raise ValueError("no plan")

@pytest.mark.agent_latency
def test_agent(plan):
    pass

def test_other(url):
    assert loop(url)
""")
    before = socket.socket.connect
    suite.run().assert_outcomes(errors=1, passed=1)
    assert socket.socket.connect is before
    assert suite.received == 3


def test_a_fixture_asked_for_without_the_marker_is_refused_in_one_line(suite):
    suite.write("def test_agent(agent_run): pass")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([
        "*asks for agent_run, but is not marked: add @pytest.mark.agent_latency*",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_unmarked_tests_are_left_alone(suite):
    suite.written("""
@pytest.mark.agent_latency
def test_agent(url):
    loop(url)

def test_other(url):
    assert loop(url)
""")
    assert suite.received == 6
    suite.run().assert_outcomes(passed=2)
    assert suite.received == 9
    assert suite.files() == ["test_agent/test_agent.yaml"]

"""Calls of fixtures around a marked test: set-up, clean-up, wider scopes."""

import socket

import pytest

from tests.support.suite import interactions

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


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_wider_fixture_does_not_reach_the_model_in_a_replay(suite, scope):
    """Whichever test comes first sets it up; its calls are that test's, and stay on this machine."""
    suite.written(f"""
@pytest.fixture(scope="{scope}")
def plan(url):
    return loop(url, question="Make a plan.")

@pytest.mark.agent_latency
def test_agent(plan, url):
    assert loop(url) == plan
""")
    assert suite.received == 6
    suite.run().assert_outcomes(passed=1)
    assert suite.received == 6


def test_a_fixture_asked_for_without_the_marker_is_a_usage_error(suite):
    suite.write("def test_agent(agent_run): pass")
    result = suite.run()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*asks for agent_run, but is not marked: add @pytest.mark.agent_latency*"])


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

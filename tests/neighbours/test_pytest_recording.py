"""pytest-recording in the same suite, on the same test, and its `vcr_config`."""

import json

import vcr

from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import Asked, Reply, SimulatedModel, ToolUse
from tests.support.agents import loop, searches
from tests.support.sessions import record, replaying
from tests.support.suite import AGENT, interactions

BOTH = "@pytest.mark.vcr\n" + AGENT.lstrip()
CONFIGURED = """
import json

RUNS = []

def scrub(response):
    RUNS.append(response)
    body = response["body"]["string"].replace(b"555-0100", b"[phone]")
    return {**response, "body": {"string": body}}

def hide(request):
    if request.body and b"555-0100" in request.body:
        request.body = request.body.replace(b"555-0100", b"[phone]")
    return request

@pytest.fixture(scope="module")
def vcr_config():
    return {
        "filter_query_parameters": ["team"],
        "before_record_request": hide,
        "before_record_response": scrub,
        "record_mode": "all",
    }
"""
PHONES = (
    CONFIGURED
    + """
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url, question="Call 555-0100?", default_query={"team": "blue"}) == "Call 555-0100."
"""
)


def phones(asked: Asked) -> Reply:
    if asked.turn < 3:
        return Reply("Call 555-0100?", tool_calls=[ToolUse("search", {"query": f"{asked.turn}"})])
    return Reply("Call 555-0100.")


def test_a_test_with_both_markers_is_one_recording(suite):
    suite.write(BOTH)
    suite.record("--record-mode=once")
    assert suite.files() == ["test_agent/test_agent.yaml"]
    assert "agentlatency" in interactions(suite.cassette())[0]["response"]
    before = suite.received
    suite.run("--record-mode=once").assert_outcomes(passed=1)
    assert suite.received == before


def test_both_markers_without_pytest_recordings_mode(suite):
    """Its default mode, `none`, would have stopped the recording."""
    suite.write(BOTH)
    suite.record()
    suite.run().assert_outcomes(passed=1)


def test_a_test_that_wants_its_cassette_object_is_told_that_there_is_none(suite):
    suite.write(BOTH.replace("agent_run, url", "agent_run, url, vcr"))
    result = suite.run()
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*test_agent*asks for vcr*"])


def test_other_tests_keep_their_cassettes(suite):
    suite.write(
        AGENT
        + """
@pytest.mark.vcr
def test_plain(url):
    assert loop(url) == "It was found."
"""
    )
    suite.record("--record-mode=once")
    assert suite.files() == ["test_agent/test_agent.yaml", "test_agent/test_plain.yaml"]
    suite.run().assert_outcomes(passed=2)


def test_vcr_config_scrubs_model_exchanges_and_the_run_replays(suite):
    suite.serve(phones, tokens_per_event=99)
    suite.write(PHONES)
    suite.record()
    text = suite.cassette().read_text(encoding="utf-8")
    assert "555-0100" not in text
    assert "team" not in text
    suite.write(PHONES.replace('== "Call 555-0100."', '== "Call [phone]."'))
    result = suite.run("-rA")
    result.assert_outcomes(passed=1)
    assert "drifted" not in result.stdout.str()


def test_chunks_of_a_scrubbed_stream_stay_where_their_events_end(suite):
    suite.serve(phones, tokens_per_event=99)
    suite.write(PHONES)
    suite.record()
    body = interactions(suite.cassette())[-1]["response"]
    sizes = [
        int(size)
        for each in body["agentlatency"]["sizes"].split()
        for size in [each.partition("*")[0]] * int(each.partition("*")[2] or 1)
    ]
    at = 0
    for size in sizes:
        at += size
        assert body["body"]["string"][:at].endswith("\n\n")


def test_a_hook_that_drops_a_model_call_is_refused_and_nothing_is_written(suite):
    suite.write(CONFIGURED.replace("    return request\n", "    return None\n") + AGENT)
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not recorded: a hook of vcr_config drops the request of model call 1*"])
    assert suite.files() == []


def test_the_markers_own_arguments_count_as_well(suite):
    suite.write(
        BOTH.replace("@pytest.mark.vcr", '@pytest.mark.vcr(filter_query_parameters=["team"])').replace(
            "loop(url)", 'loop(url, default_query={"team": "blue"})'
        )
    )
    suite.record()
    assert "team" not in suite.cassette().read_text(encoding="utf-8")
    suite.run().assert_outcomes(passed=1)


def test_a_cassette_of_vcrpy_inside_the_test_is_named(suite):
    suite.write("""
import vcr

@pytest.mark.agent_latency
def test_agent(agent_run, url, tmp_path):
    with vcr.use_cassette(str(tmp_path / "own.yaml")):
        loop(url)
""")
    result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a cassette of vcrpy's own is in place*"])
    assert suite.files() == []


def test_other_http_is_scrubbed_by_the_same_hooks(suite):
    suite.write(
        CONFIGURED
        + """
import urllib.request

@pytest.mark.agent_latency
def test_agent(agent_run, url):
    loop(url)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url + "/other?team=blue&page=2")
"""
    )
    suite.record()
    other = interactions(suite.cassette())[-1]
    assert other["request"]["uri"].endswith("/other?page=2")
    before = suite.received
    suite.run().assert_outcomes(passed=1)
    assert suite.received == before


def test_a_scrubbed_recording_is_still_json(suite):
    suite.serve(phones, tokens_per_event=99)
    suite.write(PHONES)
    suite.record()
    assert json.loads(interactions(suite.cassette())[0]["request"]["body"])["messages"][0]["content"] == "Call [phone]?"


def test_a_cassette_of_vcrpy_around_a_recording_is_named(tmp_path):
    """It would have buffered the streams, or answered for the model."""
    with SimulatedModel(searches(2)) as model, vcr.use_cassette(str(tmp_path / "own.yaml")):
        session, _ = record(loop, model.url)
    assert "a cassette of vcrpy's own is in place" in session.problems()[0]


def test_a_cassette_of_vcrpy_around_a_replay_is_not_asked(tmp_path):
    with SimulatedModel(searches(2)) as model:
        _, document = record(loop, model.url)
        with vcr.use_cassette(str(tmp_path / "own.yaml"), record_mode="none"), replaying(document) as session:
            loop(model.url)
    assert session.verdicts[Verdict.IDENTICAL] == 2
    assert not session.problems()

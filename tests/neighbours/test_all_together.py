"""pytest starts, and our tests keep their verdicts, with the plugins installed that people have beside us."""

import os

import pytest

from tests.support.neighbours import installed
from tests.support.suite import ROOT

SUITE = """
import httpx
import respx
from inline_snapshot import snapshot as inline

@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 3")
def test_agent(agent_run, url):
    assert loop(url) == "It was found."
    assert agent_run.turn(1).context_tokens == inline(42)
    assert agent_run.turns[-1].output_tokens <= inline(4)

@pytest.mark.agent_latency
def test_agent_beside_a_snapshot(agent_run, url, snapshot):
    loop(url)
    assert agent_run.calls == snapshot

def test_benchmark(benchmark):
    benchmark.pedantic(sum, args=([1, 2],), rounds=2)

def test_httpx(httpx_mock):
    httpx_mock.add_response(url="https://example.invalid/", text="mocked")
    assert httpx.get("https://example.invalid/").text == "mocked"

@respx.mock
def test_respx():
    respx.get("https://example.invalid/").respond(text="mocked")
    assert httpx.get("https://example.invalid/").text == "mocked"

def test_mockllm(mock_anthropic):
    assert mock_anthropic
"""
FLAKY = """
import itertools

tries = itertools.count(1)

@pytest.mark.agent_latency
def test_passes_the_second_time(url):
    loop(url)
    assert next(tries) == 2, "the body's own failure"

@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 2")
def test_is_too_long_every_time(url):
    loop(url)

@pytest.mark.agent_latency
def test_fails_every_time(url):
    loop(url)
    assert False, "the body's own failure"
"""


@pytest.fixture(scope="module")
def beside():
    """Environment of a process that has them all."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(installed())])}


def test_a_suite_that_uses_them_all(suite, beside):
    """Recorded with them, and replayed with them; each does its own work in the tests that are its own."""
    suite.write(SUITE)
    recorded = suite.in_a_process("--latency-mode=record", "--snapshot-update", environment=beside)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert suite.received == 6
    replayed = suite.in_a_process("-v", environment=beside)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert suite.received == 6
    started = replayed.stdout.partition("collected")[0]
    for name in ("recording", "syrupy", "inline-snapshot", "benchmark", "httpx", "respx", "mockllm", "rerunfailures"):
        assert f"{name}-" in started, started
    assert "2 runs: 2 replayed" in replayed.stdout
    assert "6 passed" in replayed.stdout


def test_reruns_do_not_mask_a_failure_and_count_once(suite, beside):
    """pytest-rerunfailures runs a failed test again: each run is judged anew, and the last one is told."""
    suite.write(FLAKY.replace("== 2", ">= 1").replace("at most 2", "at most 3").replace("assert False", "assert True"))
    suite.record()
    suite.write(FLAKY)
    done = suite.in_a_process("--reruns=2", "-v", environment=beside)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 1 passed, 5 rerun" in done.stdout
    assert "3 runs: 3 replayed" in done.stdout
    assert "3 turns, budget 2" in done.stdout
    assert "AssertionError: the body's own failure" in done.stdout
    assert suite.received == 9

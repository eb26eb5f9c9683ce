"""Under pytest-xdist: the same verdicts, and one summary with every test in it. Field note E4, E5."""

import re

import pytest

SUITE = """
@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 3")
@pytest.mark.parametrize("number", range(4))
def test_agent(url, number):
    loop(url, question=f"Task {number}")

@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 2")
def test_too_long(url):
    loop(url)

def test_plain():
    pass
"""

PLAIN = """
import httpx2
import pytest

@pytest.mark.agent_latency
@pytest.mark.parametrize("number", range(2))
def test_agent(url, number):
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"Task {number}"}]}
    httpx2.post(f"{url}/v1/messages", json=ask).raise_for_status()
"""


@pytest.fixture
def recorded(suite):
    suite.write(SUITE)
    suite.run("--latency-mode=record")
    suite.write(SUITE.replace("at most 2", "at most 3"))
    suite.record("-k", "too_long")
    suite.write(SUITE)
    return suite


def told(output):
    """The block of the summary, and the last line without its time, which decides on the length of its rule."""
    lines = output.splitlines()
    start = next(n for n, line in enumerate(lines) if "= agent latency =" in line)
    return re.sub(r" in [0-9.]+s( \([0-9:]+\))?|=+", "", "\n".join(lines[start:]))


def test_two_workers_tell_what_one_process_tells(recorded):
    one = recorded.run("-v")
    two = recorded.in_a_process("-v", "-n2")
    assert (one.ret, two.returncode) == (1, 1), two.stdout + two.stderr
    assert two.stdout.count("= agent latency =") == 1
    assert told(two.stdout) == told(one.stdout.str())
    assert "5 runs: 5 replayed" in two.stdout
    assert "budgets: 4 kept, 1 broken" in two.stdout


def test_recording_in_two_workers_writes_what_one_would(suite):
    suite.write(SUITE.replace("at most 2", "at most 3"))
    done = suite.in_a_process("-n2", "--latency-mode=record")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(suite.files()) == 5
    assert suite.received == 15
    suite.run().assert_outcomes(passed=6)


def test_what_is_wrong_at_collection_is_said_by_the_workers_too(suite):
    """And nothing is run."""
    (suite.path / "test_agent.py").write_text("""
import pytest

@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most many")
def test_agent():
    pass

def test_other():
    print("the other body")
""")
    done = suite.in_a_process("-n2", "-s")
    assert done.returncode != 0
    assert done.stdout.count("test_agent.py::test_agent: not a latency budget: 'turns at most many'") == 1, done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "the other body" not in done.stdout


def test_a_worker_that_dies_takes_only_its_own_test_along(suite):
    """Field note E5: the summary has all the others."""
    (suite.path / "test_agent.py").write_text(PLAIN)
    suite.record()
    (suite.path / "test_agent.py").write_text(
        PLAIN
        + """
def test_dies():
    import os
    os._exit(1)
"""
    )
    done = suite.in_a_process("-n1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("= agent latency =") == 1
    assert "2 runs: 2 replayed" in done.stdout
    assert "1 failed, 2 passed" in done.stdout

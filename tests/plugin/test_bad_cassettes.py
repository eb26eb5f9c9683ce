"""A cassette that can't be used: a clear error with the next step; nothing is asked, nothing on disk changes."""

import os

import pytest
import vcr

from pytest_agentlatency.cassette import store
from tests.support.agents import loop
from tests.support.suite import AGENT

BAD = {
    "empty": (lambda _: b"", "*"),
    "no YAML": (lambda _: b"interactions: [", "*"),
    "not UTF-8": (lambda data: b"\xff\xfe" + data, "*"),
    "not a cassette": (lambda _: b"- 1\n- 2\n", "*"),
    "cut in the middle": (lambda data: data[: len(data) // 2], "*"),
    "its last line is gone": (lambda data: data[: data.rstrip().rindex(b"\n") + 1], "*"),
    "written by a later version": (lambda data: data.replace(b"version: 1", b"version: 999"), "*999*"),
    "cyclic": (lambda _: b"&a [*a]", "*"),
    "tags that build objects": (lambda _: b"!!python/object/apply:os.system ['touch owned']", "*"),
}


def read_only_run(suite, *options):
    """A run that must fail, ask nothing and change nothing."""
    before = {path: (suite.path / "cassettes" / path).read_bytes() for path in suite.files()}
    asked = suite.received
    result = suite.run(*options)
    result.assert_outcomes(failed=1)
    assert suite.received == asked
    assert {path: (suite.path / "cassettes" / path).read_bytes() for path in suite.files()} == before
    return result


@pytest.mark.parametrize("way", BAD)
@pytest.mark.parametrize("mode", ["replay", "once"])
def test_it_is_refused_by_its_path(suite, way, mode):
    """In `once` too: what can't be read is not the same as missing, and is not recorded over."""
    spoil, told = BAD[way]
    cassette = suite.written()
    before = cassette.read_bytes()
    cassette.write_bytes(spoil(before))
    assert cassette.read_bytes() != before
    result = read_only_run(suite, f"--latency-mode={mode}")
    result.stdout.fnmatch_lines([f"*cassettes/test_agent/test_agent.yaml{told}"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not (suite.path / "owned").exists()


def test_recording_again_is_the_way_out(suite):
    cassette = suite.written()
    cassette.write_bytes(b"interactions: [")
    suite.record()
    suite.run().assert_outcomes(passed=1)


def test_a_directory_in_its_place_is_refused(suite):
    cassette = suite.written()
    cassette.unlink()
    cassette.mkdir()
    read_only_run(suite).stdout.fnmatch_lines(["*test_agent.yaml*"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(suite):
    cassette = suite.written()
    cassette.chmod(0)
    try:
        suite.run().assert_outcomes(failed=1)
    finally:
        cassette.chmod(0o600)


def test_a_cassette_that_another_process_records_is_left_to_it(suite):
    """Two writers: the second says who the first is, and asks the model nothing."""
    suite.write()
    with store.writing(suite.cassette(), "tests/test_other.py::test_other"):
        result = suite.run("--latency-mode=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_agent.yaml is being written by tests/test_other.py::test_other (process *"])
    assert suite.received == 0
    suite.record()


def test_a_run_judged_by_another_counter_than_it_was_recorded_with_is_refused(suite):
    cassette = suite.written()
    cassette.write_bytes(cassette.read_bytes().replace(b"chars-1", b"other-7"))
    read_only_run(suite).stdout.fnmatch_lines(
        ["*recorded with the token counter 'other-7', and 'chars-1' is in force*"]
    )


def test_a_cassette_of_plain_vcrpy_replays_without_times(suite):
    """Answers are answers; what was not measured is said, and no budget over it is kept."""

    cassette = suite.cassette()
    with vcr.use_cassette(str(cassette), filter_headers=["authorization", "x-api-key"]):
        loop(suite.model.url)
    suite.write(AGENT)
    suite.run().assert_outcomes(passed=1)
    suite.write("@pytest.mark.latency_budget('turns at most 3', 'ttft under 1 min at every turn')" + AGENT)
    result = read_only_run(suite)
    result.stdout.fnmatch_lines(["*not measured*", "budgets: 1 kept, 1 not measured"])

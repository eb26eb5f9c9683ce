"""`--latency-mode=once`: records where there is no cassette, replays where there is one."""

TWO = """
@pytest.mark.agent_latency
def test_old(url):
    loop(url)

@pytest.mark.agent_latency
def test_new(url):
    loop(url)
"""


def test_only_what_is_missing_is_recorded(suite):
    suite.write(TWO)
    suite.record("-k", "old")
    old = suite.cassette("test_old").read_bytes()
    suite.run("--latency-mode=once").assert_outcomes(passed=2)
    assert suite.received == 6, "three calls for each recording, none for the replay"
    assert suite.cassette("test_old").read_bytes() == old
    assert suite.cassette("test_new").exists()


def test_the_second_time_nothing_is_asked(suite):
    suite.write(TWO)
    suite.run("--latency-mode=once").assert_outcomes(passed=2)
    asked = suite.received
    result = suite.run("--latency-mode=once")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["2 runs: 2 replayed"])
    assert suite.received == asked


def test_a_failed_recording_is_tried_again_the_next_time(suite):
    suite.write(TWO.replace("loop(url)\n", "assert not loop(url)\n", 1))
    suite.run("--latency-mode=once").assert_outcomes(failed=1, passed=1)
    assert suite.files() == ["test_agent/test_new.yaml", "test_agent/test_old.yaml.rejected"]
    suite.write(TWO)
    suite.run("--latency-mode=once").assert_outcomes(passed=2)
    assert suite.cassette("test_old").exists()

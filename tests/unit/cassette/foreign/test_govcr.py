"""go-vcr: a duration is time to headers, and nothing else is known of when."""

import pytest

from pytest_agentlatency.cassette.foreign import govcr, read
from tests.support import foreign_recordings as made


def test_duration_is_the_time_to_the_response_headers():
    found = read(made.go_vcr())

    assert found.to_headers == {1: 2_218_456_000, 2: 62_500_000_000}
    assert all(attempt.stamps is None for attempt in found.recording.attempts)
    assert found.others[0].to_headers == 31_500_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1ns", 1),
        ("1.5µs", 1_500),
        ("1.5us", 1_500),
        ("310.25ms", 310_250_000),
        ("2.218456s", 2_218_456_000),
        ("1m2.5s", 62_500_000_000),
        ("1h0m0.5s", 3_600_500_000_000),
        (1500, 1500),
        ("0s", None),
        (0, None),
        ("", None),
        (None, None),
        ("fast", None),
        ("-1s", None),
        (True, None),
        ("9" * 5000 + "s", None),
        (1 << 70, None),
        ([1], None),
    ],
)
def test_a_duration_is_read_as_go_writes_it(text, nanoseconds):
    assert govcr.duration(text) == nanoseconds


def test_recordings_without_any_request_header_are_read():
    """docker/cagent writes none."""
    bare = b"version: 2\ninteractions:\n- request: {url: 'http://x/', method: GET}\n  response: {code: 204, body: ''}\n"

    found = read(bare)

    assert (found.container, found.others[0].response.status) == ("go-vcr", 204)

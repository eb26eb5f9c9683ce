"""HAR: the one container with times."""

import json

import pytest

from pytest_agentlatency.cassette.foreign import read
from pytest_agentlatency.model.recording import Outcome, Recording
from tests.support import foreign_recordings as made

MS = 1_000_000


def changed(**entry: object) -> Recording:
    """The first entry alone, with other values."""
    tree = made.har_tree()
    tree["log"]["entries"] = [tree["log"]["entries"][1] | entry]
    return read(json.dumps(tree).encode()).recording


def test_entries_are_put_in_the_order_in_which_they_began():
    found = read(made.har()).recording

    assert [attempt.request.body for attempt in found.attempts] == [
        made.text(each).encode() for each in (made.QUESTION, made.SECOND, made.SECOND)
    ]
    assert [attempt.stamps.start for attempt in found.attempts] == [0, 1500 * MS, 2000 * MS]


def test_timings_follow_one_another():
    stamps = read(made.har()).recording.attempts[0].stamps

    assert stamps.connect == (5 * MS, 25 * MS)
    assert (stamps.sent, stamps.headers, stamps.end) == (26 * MS, 426 * MS, 436 * MS)


def test_a_phase_of_minus_one_did_not_happen():
    stamps = read(made.har()).recording.attempts[1].stamps

    assert stamps.connect is None
    assert (stamps.sent, stamps.headers, stamps.end) == (
        1500 * MS + 500_000,
        1500 * MS + 200_750_000,
        1800 * MS,
    )


def test_chunks_have_no_times():
    assert all(attempt.stamps.arrived == () for attempt in read(made.har()).recording.attempts)


def test_a_response_that_never_came_is_an_error_and_no_answer():
    lost = read(made.har()).recording.attempts[2]

    assert lost.response is None
    assert (lost.outcome, lost.failure.message) == (Outcome.ERROR, "net::ERR_CONNECTION_RESET")


def test_a_whole_exchange_in_wait_hides_when_the_headers_came():
    """Polly.js puts everything into `wait`: calling that time to headers would be wrong."""
    stamps = changed(timings={"send": 0, "wait": 900, "receive": 0}).attempts[0].stamps

    assert (stamps.headers, stamps.end) == (None, 900 * MS)


@pytest.mark.parametrize(
    "entry",
    [
        {"timings": None},
        {"timings": {}},
        {"timings": {"wait": -1}},
        {"timings": {"wait": "400"}},
        {"timings": {"wait": 1e300}},
        {"timings": {"wait": True}},
        {"startedDateTime": None},
        {"startedDateTime": "yesterday"},
        {"startedDateTime": 3},
    ],
)
def test_what_is_no_time_leaves_the_attempt_without_stamps(entry):
    assert changed(**entry).attempts[0].stamps is None


def test_a_body_in_base64_pieces_is_joined():
    """Polly.js keeps a compressed body as a list of the base64 of each chunk."""
    answer = made.text(made.ANSWER).encode()
    tree = made.har_tree()
    packed = json.dumps(["eyJp", "ZCI6"])
    tree["log"]["entries"][1]["response"]["content"] = {"encoding": "base64", "text": packed}

    body = read(json.dumps(tree).encode()).recording.attempts[0].response.body

    assert body == answer[:6]


def test_the_recording_is_dated_by_its_first_entry():
    assert read(made.har()).recording.facts.recorded == "2026-08-19T12:00:00+00:00"

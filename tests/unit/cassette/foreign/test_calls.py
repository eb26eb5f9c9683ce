"""Which exchanges are calls, and which are further attempts of one."""

from dataclasses import replace

from pytest_agentlatency.cassette.foreign import calls, read
from pytest_agentlatency.cassette.foreign.exchange import Exchange
from pytest_agentlatency.model.recording import Outcome, Request, Response
from tests.support import foreign_recordings as made

ASKED = Request("POST", made.URL, (), made.text(made.QUESTION).encode())
ELSE = replace(ASKED, body=made.text(made.SECOND).encode())
TOOL = Exchange(Request("GET", made.TOOL_URL), Response(200))


def answered(status: int, request: Request = ASKED) -> Exchange:
    return Exchange(request, Response(status, (), (b"{}",)))


def numbers(*exchanges: Exchange) -> list[int]:
    return [attempt.call for attempt in calls.sort(exchanges).recording.attempts]


def test_an_equal_request_after_an_overload_is_the_same_call():
    assert numbers(answered(529), answered(429), answered(200)) == [1, 1, 1]


def test_an_equal_request_after_a_success_is_another_call():
    """Samples, or two agents that ask the same."""
    assert numbers(answered(200), answered(200)) == [1, 2]


def test_a_status_that_no_sdk_retries_ends_the_call():
    assert numbers(answered(400), answered(400), answered(401), answered(200)) == [1, 2, 3, 4]


def test_another_request_after_a_failure_is_another_call():
    assert numbers(answered(500), answered(200, ELSE)) == [1, 2]


def test_a_tools_request_between_attempts_splits_nothing():
    assert numbers(answered(503), TOOL, answered(200)) == [1, 1]


def test_a_request_without_a_response_is_tried_again():
    lost = Exchange(ASKED, None, outcome=Outcome.ERROR, failure="reset")

    assert numbers(lost, answered(200)) == [1, 1]


def test_ids_and_records_agree():
    found = calls.sort([answered(500), answered(200), answered(200, ELSE)])

    assert [call.id for call in found.recording.calls] == [1, 2]


def test_two_runs_in_one_file_keep_the_files_order():
    pairs = made.vcrpy_tree()["interactions"]
    twice = made.dumped({"interactions": pairs + pairs})

    assert [call.id for call in read(twice).recording.calls] == [1, 2, 3, 4]

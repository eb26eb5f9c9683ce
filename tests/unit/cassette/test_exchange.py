from dataclasses import replace

import pytest
from hypothesis import given, settings

from pytest_agentlatency.cassette import exchange
from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.parse import Node
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, Failure, Outcome, Request, Response, Stamps
from tests.support import documents as some


@settings(deadline=None)
@given(some.attempts)
def test_any_attempt_comes_back_to_the_byte_and_the_nanosecond(attempt):
    written = exchange.write(attempt, b"not the body", {"version": 1})
    assert exchange.read(Node(written, "x"), attempt.request.body) == attempt


def test_a_request_carries_the_four_keys_that_vcrpy_takes_and_no_other():
    """An unknown key in `request` is a TypeError in vcrpy."""
    written = exchange.write(some.attempt(b"{}"), "{}", {})
    assert set(written["request"]) == {"body", "headers", "method", "uri"}


def test_the_content_coding_is_noted_and_not_announced_again():
    written = exchange.write(some.attempt(b"{}"), "{}", {})
    assert written["response"]["agentlatency"]["coding"] == "gzip"
    assert "content-encoding" not in written["response"]["headers"]


def test_an_attempt_without_a_response_stays_without_one():
    failed = Attempt(
        1, Request("POST", "https://a/"), outcome=Outcome.ERROR, failure=Failure("ConnectTimeout", "no route")
    )
    assert exchange.read(Node(exchange.write(failed, "", {}), "x"), b"") == failed


def test_a_consumer_that_asked_for_a_chunk_that_never_came_is_kept():
    """The stream dies after two chunks; the third was asked for."""
    stamps = Stamps(Ns(5), Ns(99), headers=Ns(10), asked=(Ns(11), Ns(20), Ns(31)), arrived=(Ns(15), Ns(30)))
    cut = Attempt(1, Request("POST", "https://a/"), Response(200, (), (b"a", b"b")), stamps, Outcome.ERROR)
    written = exchange.write(cut, "", {})
    assert written["response"]["agentlatency"]["asked"] == 21
    assert exchange.read(Node(written, "x"), b"") == cut


def test_a_foreign_recording_without_times_gets_none():
    untimed = replace(some.attempt(b"{}"), stamps=None)
    assert "start" not in exchange.write(untimed, "", {})["response"]["agentlatency"]
    assert exchange.read(Node(exchange.write(untimed, "", {}), "x"), b"{}").stamps is None


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("outcome", "fine", "'fine' found, one of complete, closed, error, cancelled expected"),
        ("start", "soon", "str 'soon' found, int expected"),
        ("arrived", [1, 2], "list .* found, str expected"),
        ("sizes", "1 -1 65", "chunks of 65 bytes found for a body of 65: the body was edited"),
        ("wait", "x", "invalid literal"),
        ("failure", 5, "int 5 found, dict expected"),
    ],
)
def test_a_field_that_is_wrong_is_told_with_its_place(key, value, told):
    written = exchange.write(some.attempt(b"{}"), "{}", {})
    written["response"]["agentlatency"][key] = value
    with pytest.raises(Unreadable, match=rf"x\.yaml: interactions\[0\]\.response\.agentlatency\.{key}: {told}"):
        exchange.read(Node(written, "x.yaml: interactions[0]"), b"{}")


@pytest.mark.parametrize("key", ["start", "sent", "headers", "end", "connect", "arrived", "wait", "asked"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, "nan", "1 nan", "1e9"], ids=repr)
def test_a_time_that_is_no_whole_nanosecond_is_refused(key, value):
    """Field note B25."""
    written = exchange.write(some.attempt(b"{}"), "{}", {})
    written["response"]["agentlatency"][key] = value
    with pytest.raises(Unreadable, match=rf"x\.response\.agentlatency\.{key}: "):
        exchange.read(Node(written, "x"), b"{}")

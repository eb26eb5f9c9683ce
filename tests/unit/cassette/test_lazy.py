import copy
import pickle
import tracemalloc
from dataclasses import replace

import pytest

from pytest_agentlatency.cassette import document
from pytest_agentlatency.cassette.lazy import LazyRequest
from pytest_agentlatency.model.recording import Request
from tests.support import documents as some

PLAIN = Request("POST", "https://a/", some.JSON, b"abc")
LAZY = LazyRequest("POST", "https://a/", some.JSON, pieces=(b"a", b"bc"))


def test_it_equals_the_plain_request_from_both_sides():
    assert LAZY == PLAIN
    assert PLAIN == LAZY
    assert {LAZY, PLAIN} == {PLAIN}


def test_another_body_is_another_request():
    assert replace(PLAIN, body=b"x") != LAZY
    assert LAZY != "abc"


@pytest.mark.parametrize(
    "made",
    [
        lambda each: replace(each, url="https://b/"),
        copy.copy,
        copy.deepcopy,
        lambda each: pickle.loads(pickle.dumps(each)),  # noqa: S301 -- its own
    ],
    ids=["replace", "copy", "deepcopy", "pickle"],
)
def test_what_is_made_of_it_equals_what_is_made_of_the_plain_one(made):
    assert made(LAZY) == made(PLAIN)
    assert made(LAZY) is not LAZY


def test_it_shows_its_body_and_has_no_attribute_beyond_a_requests():
    assert "body=b'abc'" in repr(LAZY)
    assert not hasattr(LAZY, "bodies")


def test_a_loaded_session_takes_memory_by_its_file_not_by_its_bodies():
    """120 turns of a 2 kB result: 15 MB of bodies from 0.4 MB on disk."""
    data = document.dumps(some.session(120, result="A long tool result. " * 100))
    tracemalloc.start()
    whole = document.loads(data, "x")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bodies = sum(len(attempt.request.body) for attempt in whole.recording.attempts)
    assert bodies > 30 * len(data)
    assert held < 6 * len(data)

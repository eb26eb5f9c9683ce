"""The parts of an exchange, in every shape that recorders give them."""

import pytest

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.foreign.exchange import stored_body, stored_headers, stored_status


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ({}, b""),
        ({"body": None}, b""),
        ({"body": "Größe"}, "Größe".encode()),
        ({"body": b"\xff\x00"}, b"\xff\x00"),
        ({"body": {"string": "a"}}, b"a"),
        ({"body": {"string": b"\xff"}}, b"\xff"),
        ({"body": {"base64_string": "/+8="}}, b"\xff\xef"),
        ({"body": {"encoding": "UTF-8"}}, b""),
        ({"body": {"encoding": "", "file": False, "string": ""}}, b""),
        ({"body": {"a": 1, "b": ["ö"]}}, '{"a":1,"b":["ö"]}'.encode()),
        ({"content": "old"}, b"old"),
        ({"parsed_body": {"a": [1, None]}}, b'{"a":[1,null]}'),
        ({"parsed_body": "text"}, b"text"),
        ({"body": "\ud800"}, b"\xed\xa0\x80"),
    ],
)
def test_bodies(part, body):
    assert stored_body(part, "x")[0] == body


def test_a_body_that_is_no_base64_is_named():
    with pytest.raises(Unreadable, match=r"interactions\[2\].response.body.base64_string is no base64"):
        stored_body({"body": {"base64_string": "abcde"}}, "interactions[2].response")


@pytest.mark.parametrize(
    ("stored", "headers"),
    [
        ({"A": ["1", "2"], "b": "3"}, (("A", "1"), ("A", "2"), ("b", "3"))),
        ({"length": 12, "none": None, b"raw": b"\xe9"}, (("length", "12"), ("none", ""), ("raw", "é"))),
        ([["A", "1"], ["b", ["2", "3"]]], (("A", "1"), ("b", "2"), ("b", "3"))),
        ([{"name": "A", "value": "1"}, {"value": "nameless"}, "odd"], (("A", "1"),)),
        (None, ()),
        ("text", ()),
    ],
)
def test_headers(stored, headers):
    assert stored_headers(stored) == headers


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"status": {"code": 200, "message": "OK"}}, (200, "OK")),
        ({"status": {"code": "404", "message": None}}, (404, "")),
        ({"status": {"status_code": 201}}, (201, "")),
        ({"status": 503}, (503, "")),
        ({"status": "429 Too Many Requests"}, (429, "Too Many Requests")),
        ({"status": "200 OK", "code": 200}, (200, "OK")),
        ({"status_code": 200}, (200, "")),
        ({"status": 200, "statusText": "OK"}, (200, "OK")),
    ],
)
def test_statuses(part, status):
    assert stored_status(part, "x") == status


@pytest.mark.parametrize("status", [None, 20, 99999, "OK", -200, {"code": []}, [200], 1 << 80, True])
def test_what_is_no_status_is_refused(status):
    with pytest.raises(Unreadable, match="x has no status code of three digits"):
        stored_status({"status": status}, "x")

"""When two requests are the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.canonical import exact, meaning
from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.model.recording import Request


def request(body: bytes, url: str = "https://host/v1/messages", content_type: str = "application/json") -> Request:
    return Request("POST", url, (("content-type", content_type),), body)


def plain(of: Request) -> object:
    return meaning(of, Masks())[0]


def masked(of: Request) -> object:
    return meaning(of, Masks())[1]


json_objects = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.text())
)


@given(json_objects, st.sampled_from([None, 2]), st.booleans())
def test_writing_json_differently_changes_its_bytes_only(value, indent, ascii_only):
    turned = json.dumps(dict(reversed(value.items())), indent=indent, ensure_ascii=ascii_only)
    assert plain(request(json.dumps(value).encode())) == plain(request(turned.encode("utf-8", "surrogatepass")))


@given(st.binary(), st.binary())
def test_bodies_that_are_no_json_mean_their_bytes_a11(one, other):
    one, other = b"\xff" + one, b"\xff" + other
    assert (plain(request(one)) == plain(request(other))) == (one == other)


@pytest.mark.parametrize(("one", "other"), [(b'{"a":1}', b'{"a":true}'), (b'{"a":1}', b'{"a":1.0}'), (b"{}", b"")])
def test_what_python_calls_equal_json_does_not(one, other):
    assert plain(request(one)) != plain(request(other))


def test_host_and_credentials_are_no_part_of_a_key():
    one, other = "https://a/v1/m:generate?alt=sse&key=1", "http://localhost:8/v1/m:generate?key=2&alt=sse"
    assert exact(request(b"{}", one)) == exact(request(b"{}", other))
    assert exact(request(b"{}", one)) != exact(request(b"{}", one.replace("generate", "count")))


def test_multipart_boundary_is_masked():
    def form(boundary: str) -> Request:
        return request(
            f"--{boundary}\r\nx\r\n--{boundary}--".encode(), content_type=f"multipart/form-data; boundary={boundary}"
        )

    assert masked(form("a1b2c3")) == masked(form("d4e5f6"))
    assert plain(form("a1b2c3")) != plain(form("d4e5f6"))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"a":"\\ud800"}',
        b"\x00",
    ],
)
def test_hostile_body_gets_a_key(body):
    assert meaning(request(body), Masks()) == meaning(request(body), Masks())

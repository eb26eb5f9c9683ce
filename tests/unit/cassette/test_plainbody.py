from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import plainbody


def test_json_in_another_order_compares_equal():
    assert plainbody.comparable(b'{"a": 1, "b": 2}') == plainbody.comparable({"b": 2, "a": 1})


def test_a_form_with_another_boundary_compares_equal():
    form = b'--%s\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--%s--\r\n'
    one, two, other = (form % (mark, mark) for mark in (b"aaaa", b"bbbb", b"cccc"))
    assert plainbody.comparable(one) == plainbody.comparable(two)
    assert plainbody.comparable(one) != plainbody.comparable(other.replace(b"1", b"2"))


def test_bodies_of_an_unknown_kind_equal_no_other_and_not_nothing():
    """A recorder that made empty bytes of them answered every such request with the first."""
    one, two = plainbody.comparable(object()), plainbody.comparable(object())
    assert len({one, two, plainbody.comparable(None)}) == 3


def test_every_way_to_hand_over_the_same_bytes_is_the_same_body():
    ways = [
        b"a\nb",
        bytearray(b"a\nb"),
        "a\nb",
        BytesIO(b"a\nb"),
        [b"a\n", b"b"],
        iter(["a\n", "b"]),
        memoryview(b"a\nb"),
    ]
    assert {plainbody.as_bytes(way) for way in ways} == {b"a\nb"}


@settings(deadline=None)
@given(st.binary() | st.text('[]{}",:1 ').map(str.encode))
def test_any_bytes_compare_equal_to_themselves(body):
    assert plainbody.comparable(body) == plainbody.comparable(bytes(bytearray(body)))


def test_nesting_beyond_the_stack_is_compared_as_bytes():
    assert plainbody.comparable(b"[" * 100_000) == b"[" * 100_000

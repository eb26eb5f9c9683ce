"""The JSON edge: what comes in reads as a known shape or as nothing."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.wire import jsonedge

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_canonical_form_is_one_per_value(value):
    text = jsonedge.canonical(value)
    assert jsonedge.canonical(jsonedge.loads(text)) == text
    assert jsonedge.canonical(jsonedge.loads(json.dumps(value, indent=2).encode())) == text


def test_what_is_no_json_is_none():
    deep = b"[" * 100_000
    assert [jsonedge.loads(text) for text in (b"", b"{", b"\xff\xfe", deep, b"9" * 5_000)] == [None] * 5


def test_bom_and_bad_utf_8_are_forgiven():
    assert jsonedge.loads(b'\xef\xbb\xbf{"a": "\xff"}') == {"a": "\ufffd"}


def test_emoji_written_as_two_escapes_is_whole_and_half_of_one_is_replaced():
    assert jsonedge.loads(rb'["\ud83d\ude00", "\ud83d"]') == ["\U0001f600", "?"]


def test_counts():
    found = [jsonedge.tokens(each) for each in (7, 7.0, 0, -1, True, "7", None, float("nan"), float("inf"))]
    assert found == [7, 7, 0, None, None, None, None, None, None]

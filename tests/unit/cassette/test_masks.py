"""Volatile spans are masked for matching only, and told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.masks import Masks, Span, differing


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("uuid", "3f2b8a5c-9d1e-4c7a-b6f0-2a1d4e5f6b7c"),
        ("uuid", "3F2B8A5C-9D1E-4C7A-B6F0-2A1D4E5F6B7C"),
        ("time", "2026-11-30T23:59:01.123456+00:00"),
        ("time", "2026-11-30T23:59:01.123Z"),
        ("time", "2026-08-22 14:03"),
        ("time", "2026-08-22"),
        ("time", "14:03:59"),
        ("epoch", "1796083141"),
        ("epoch", "1796083141.1234567"),
        ("epoch", "1796083141123"),
        ("epoch", "1796083141123456789"),
        (
            "temp_path",
            "/tmp/pytest-of-me/pytest-3/f0/a.txt",  # noqa: S108
        ),
        ("temp_path", "/private/var/folders/zz/zyxvpxvq6csfxvn_n0/T/tmpab12/x.py"),
        ("temp_path", r"C:\Users\me\AppData\Local\Temp\tmpab12\x.py"),
        ("id", "toolu_01A09q90qw90lq917835lq9"),
        ("id", "call_SkTx0Qm5mQbqYyKnGTD5kb8P"),
        ("id", "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"),
    ],
)
def test_volatile_span_is_replaced_by_its_kind(kind, text):
    assert Masks().text(f"It is ({text}), they say.") == f"It is (⟨{kind}⟩), they say."


@pytest.mark.parametrize(
    "text",
    [
        "max 4096 tokens",
        "1234567890",
        "call me at 555-0199",
        "ISBN 978-3-16-148410-0",
        "ratio 3:2",
        "call_weather_tool_for_city",
        "version 2024.10.21",
        "/templates/page.html",
        "the tmp folder",
        "price 1700000.00",
        "9f86d081884c7d659a2feaa0c55ad015",
    ],
)
def test_what_means_something_is_left_alone(text):
    assert Masks().text(text) == text


def test_declared_pattern_is_masked_before_the_built_in_ones():
    assert Masks([r"order-\d+", r"build \S+"]).text("order-17 of build 2026-08-22") == "⟨declared⟩ of ⟨declared⟩"


@pytest.mark.parametrize(("pattern", "word"), [("(", "no regular expression"), ("x*", "empty text")])
def test_bad_pattern_is_refused_by_name(pattern, word):
    with pytest.raises(ValueError, match=word) as error:
        Masks([pattern])
    assert repr(pattern) in str(error.value)


def test_values_are_masked_wherever_they_stand():
    body = {
        "id": "x1",
        "at": 1_766_000_000,
        "n": 7,
        "ok": True,
        "m": [{"type": "tool_use", "id": "abc", "input": {"id": 5}}],
    }
    assert Masks().value(body) == {
        "id": "x1", "at": "⟨epoch⟩", "n": 7, "ok": True, "m": [{"type": "tool_use", "id": "⟨id⟩", "input": {"id": 5}}],
    }  # fmt: skip


def test_differing_spans_are_told_with_path_and_kind_a12():
    masks = Masks()
    recorded, live = ({"system": f"It is {now}.", "day": "2026-01-02"} for now in ("12:03:11", "12:03:19"))
    assert differing(masks.spans(recorded), masks.spans(live)) == (
        (Span("system", "time", "12:03:11"), Span("system", "time", "12:03:19")),
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.uuids().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_masking_twice_is_masking_once(value):
    masks = Masks()
    once = masks.value(value)
    assert masks.value(once) == once


@given(json_values)
def test_what_holds_no_volatile_span_is_not_changed(value):
    masks = Masks()
    if not list(masks.spans(value)):
        assert masks.value(value) == value


@pytest.mark.parametrize("text", ["C:\\" * 100_000, "call_" * 80_000, "1" * 400_000, "a-" * 200_000, "/tmp/" * 80_000])  # noqa: S108
def test_hostile_text_is_masked_in_linear_time(text):
    """Quadratic time would take minutes."""
    assert Masks().text(text)

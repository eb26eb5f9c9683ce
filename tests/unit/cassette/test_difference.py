"""The first difference is found where a reader of the request meets it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.difference import NOTHING, SNIPPET, difference


def differ(recorded: Any, live: Any) -> tuple[str, str, str] | None:
    found = difference(json.dumps(recorded).encode(), json.dumps(live).encode())
    return None if found is None else (found.path, found.recorded, found.live)


def test_one_word_in_message_four_of_a_long_request_a8():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": f"message {n} " + "word " * 4000}]} for n in range(6)
    ]
    changed = json.loads(json.dumps(messages))
    changed[4]["content"][0]["text"] = changed[4]["content"][0]["text"].replace("word word", "word sword", 1)
    found = differ({"model": "m", "messages": messages}, {"model": "m", "messages": changed})
    assert found is not None
    path, recorded, live = found
    assert path == "messages[4].content[0].text"
    assert "sword" in live
    assert "sword" not in recorded
    assert max(len(recorded), len(live)) <= SNIPPET


def test_tools_come_before_system_before_messages_before_parameters():
    recorded = {"temperature": 0, "messages": ["a"], "system": "s", "tools": [{"name": "t"}]}
    live = {"temperature": 1, "messages": ["b"], "system": "z", "tools": [{"name": "u"}]}
    order = []
    while found := differ(recorded, live):
        order.append(found[0])
        top = found[0].partition("[")[0].partition(".")[0]
        live[top] = recorded[top]
    assert order == ["tools[0].name", "system", "messages[0]", "temperature"]


@pytest.mark.parametrize(
    ("recorded", "live", "expected"),
    [
        ({"messages": [1]}, {"messages": [1, {"a": 2}]}, ("messages[1]", NOTHING, '{"a": 2}')),
        ({"messages": [1, 2]}, {"messages": [1]}, ("messages[1]", "2", NOTHING)),
        ({"a": 1}, {}, ("a", "1", NOTHING)),
        ({"m": {"x y": 1}}, {"m": {"x y": 2}}, ('m["x y"]', "1", "2")),
        ({"m": "text"}, {"m": ["text"]}, ("m", '"text"', '["text"]')),
        ({"m": True}, {"m": 1}, ("m", "true", "1")),
        ({"m": ""}, {"m": "x"}, ("m", '""', "x")),
        ([1], {"a": 1}, ("(body)", "[1]", '{"a": 1}')),
    ],
)
def test_shapes_of_a_difference(recorded, live, expected):
    assert differ(recorded, live) == expected


def test_key_order_and_white_space_are_no_difference_a9():
    assert difference(b'{"a": 1, "b": {"c": 2, "d": 3}}', b'{"b":{"d":3,"c":2},"a":1}') is None


def test_bodies_that_are_no_json_differ_at_a_byte():
    found = difference(b"\x00same\xff", b"\x00samp\xff")
    assert found is not None
    assert found.path == "byte 4"


def test_secret_in_a_snippet_is_not_shown():
    key = "sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"
    found = difference(
        json.dumps({"m": f"key {key} old"}).encode(), json.dumps({"m": f"key {key[:-3]}xyz new"}).encode()
    )
    assert found is not None
    assert "sk-ant" not in found.recorded + found.live
    assert not any(key[at : at + 6] in found.recorded + found.live for at in range(len(key) - 5))


def test_snippet_is_one_line():
    found = differ({"m": "a\nb\x1b[31m"}, {"m": "a\nc"})
    assert found is not None
    assert "\n" not in found[1] + found[2]
    assert "\x1b" not in found[1]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=15,
)


@given(values, values)
def test_a_difference_is_found_exactly_when_there_is_one(one, other):
    one, other = {"v": one}, {"v": other}
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (differ(one, other) is None) == same


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_two_bodies_are_compared_without_an_error(one, other):
    found = difference(one, other)
    assert found is None or max(len(found.recorded), len(found.live)) <= SNIPPET


@pytest.mark.parametrize("depth", [900, 5000])
def test_deeply_nested_bodies_are_compared_without_an_error(depth):
    found = difference(b"[" * depth + b"1" + b"]" * depth, b"[" * depth + b"2" + b"]" * depth)
    assert found is not None

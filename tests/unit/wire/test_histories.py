"""Reading a history again: as if every body were the first, and only what is new is built."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.wirebytes import Known, segments
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire import anthropic, anthropic_content, openai, openai_content
from pytest_agentlatency.wire.anthropic import Anthropic
from pytest_agentlatency.wire.histories import DEEPEST, Histories
from pytest_agentlatency.wire.jsonedge import loads, mapping
from pytest_agentlatency.wire.lineage import Exchange, place_all
from pytest_agentlatency.wire.message import Answer, Prompt
from pytest_agentlatency.wire.openai import OpenAIChat

URL = "https://api.anthropic.com/v1/messages"
TEXTS = st.sampled_from(["", "a", "é", "\U0001f600", "\ud83d", 'q"\\', "],", "messages"])
CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": None}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "r"}
TOOL_CALL = {"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"b": 1}'}, "x": {"a": None}}
MARKED = {"type": "text", "text": "m", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
BLOCKS = st.sampled_from([CALL, RESULT, MARKED, {**CALL, "name": "g"}])
ONES = st.builds(
    lambda role, content, more: {"role": role, "content": content, **more},
    st.sampled_from(["user", "assistant", "system", "tool"]),
    st.one_of(TEXTS, st.lists(BLOCKS, max_size=2)),
    st.sampled_from([{}, {"tool_calls": [TOOL_CALL]}, {"tool_call_id": "t"}, {"reasoning_content": "Hm."}]),
)
HISTORIES = st.lists(st.one_of(ONES, st.sampled_from([1, 12, 1.5, None, True, "x", [], {}])), max_size=5)
READERS = pytest.mark.parametrize("reader", [Anthropic, OpenAIChat])
FIELDS = st.sampled_from(
    [{}, {"system": "s"}, {"model": "m"}, {"tools": [{"name": "f"}]}, {"metadata": {"messages": [1]}}]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Bodies as clients write them, and some that nobody should: cut, doubled, with bytes replaced."""
    before, after, history = draw(FIELDS), draw(FIELDS), draw(HISTORIES)
    ascii_ = draw(st.booleans())
    spaces = draw(st.sampled_from([None, (",", ":"), (" ,\n", "\t: ")]))
    body = {**before, "messages": history} | after
    text = json.dumps(body, ensure_ascii=ascii_, separators=spaces)
    data = text.encode("utf-8", "surrogatepass")
    match draw(st.integers(0, 9)):
        case 0:
            return data[: draw(st.integers(0, len(data)))]
        case 1:
            at = draw(st.integers(0, len(data)))
            return data[:at] + draw(st.binary(max_size=2)) + data[at + draw(st.integers(0, 2)) :]
        case 2:
            return data[:-1] + draw(st.sampled_from([b',"messages":[]}', b',"messages":[2]}', b',"\\u006dessages":3}']))
        case 3:
            return draw(st.sampled_from([b"\xef\xbb\xbf", b" ", b"[", b"\xff"])) + data
        case _:
            return data


@given(sent=st.lists(bodies(), min_size=1, max_size=6), edited=st.integers(0, 5), at=st.integers(0, 400))
@READERS
def test_a_prompt_does_not_depend_on_the_bodies_read_before(reader, sent, edited, at):
    """Neither for bodies that share nothing nor for one that is another with a byte less."""
    some = sent[edited % len(sent)]
    provider = reader()
    for body in (*sent, some[:at] + some[at + 1 :], some, *reversed(sent)):
        request = Request("POST", URL, (), body)
        assert provider.prompt(request) == reader().prompt(request)


@given(history=HISTORIES, cuts=st.lists(st.integers(0, 5), max_size=6), more=FIELDS)
@READERS
def test_a_growing_history_reads_as_each_body_alone(reader, history, cuts, more):
    provider = reader()
    for cut in (*cuts, len(history)):
        body = json.dumps({"model": "m", "messages": history[:cut], **more}).encode()
        request = Request("POST", URL, (), body)
        assert provider.prompt(request) == reader().prompt(request)


@given(sent=st.lists(bodies(), min_size=1, max_size=5))
@READERS
def test_the_bytes_of_a_shared_message_are_those_rendered_first(reader, sent):
    """What `segments` relies on when it takes a message's bytes from the request before."""
    provider, known = reader(), Known()
    for body in (*sent, *sent):
        prompt = provider.prompt(Request("POST", URL, (), body))
        assert segments(prompt, body, known) == segments(prompt, body)


@given(sent=st.lists(bodies(), min_size=1, max_size=4))
@READERS
def test_a_block_was_sent_as_what_stands_at_its_path(reader, sent):
    """Key order and a marker's lifetime are kept with the block; without them, `segments` looks into the body."""
    provider = reader()
    for body in sent:
        prompt = provider.prompt(Request("POST", URL, (), body))
        forgotten = replace(
            prompt, system=without_wire(prompt.system), messages=tuple(map(message_without_wire, prompt.messages))
        )
        assert segments(prompt, body) == segments(forgotten, body)


def without_wire(blocks):
    return tuple(replace(block, wire="", cache_ttl="") for block in blocks)


def message_without_wire(message):
    return replace(message, blocks=without_wire(message.blocks))


@given(history=HISTORIES, cuts=st.lists(st.integers(0, 5), min_size=1, max_size=6), odd=st.integers(0, 5))
@READERS
def test_shared_messages_are_placed_as_others(reader, history, cuts, odd):
    """Conversations are told apart alike, also where one message differs from turn to turn."""
    provider, alone, together = reader(), [], []
    for turn, cut in enumerate([*cuts, len(history)]):
        told = [*history[:cut], {"role": "user", "content": f"at {turn}"}] if turn == odd else history[:cut]
        request = Request("POST", URL, (), json.dumps({"model": "m", "messages": told}).encode())
        together.append(Exchange(provider.prompt(request), Answer()))
        alone.append(Exchange(reader().prompt(request), Answer()))
    assert place_all(together) == place_all(alone)


def test_messages_sent_again_are_the_same_objects_also_when_two_conversations_take_turns():
    provider = Anthropic()
    bodies_ = {name: [{"role": "user", "content": name}, {"role": "assistant", "content": "b"}] for name in "xy"}
    read = [
        provider.prompt(Request("POST", URL, (), json.dumps({"messages": bodies_[name][:count]}).encode())).messages
        for count, name in [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    ]
    assert read[2][0] is read[0][0]
    assert read[3][0] is read[1][0]
    assert read[2][0] != read[3][0]


# Nesting around the interpreter's limit


FORMATS = {
    "anthropic": (anthropic.prompt_of, anthropic_content.messages),
    "openai": (openai._prompt_of, openai_content.messages),
}


class AtOnce:
    """What `Histories` must not differ from: each body decoded whole, from as deep in the stack."""

    def __init__(self, prompt: Any, _messages: Any) -> None:
        self._prompt = prompt

    def prompt(self, data: bytes) -> Prompt:
        return self._prompt(mapping(loads(data)))


@contextmanager
def room_for(levels: int) -> Iterator[None]:
    """A stack on which about so many calls may still be nested."""
    before, used, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame := frame.f_back:
        used += 1
    sys.setrecursionlimit(used + levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def outcome(reader: Histories | AtOnce, data: bytes, room: int) -> Any:
    with room_for(room):
        try:
            return reader.prompt(data)
        except RecursionError:
            return RecursionError


def nested(levels: int) -> str:
    """Objects and arrays in turn."""
    pairs = levels // 2
    return '{"a":[' * pairs + "[" * (levels % 2) + "1" + "]" * (levels % 2) + "]}" * pairs


def deep_body(messages: list[int], around: int) -> bytes:
    """A body whose messages, and what stands around them, are nested so deep."""
    said = ",".join(
        f'{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"f","input":{nested(levels)}}}]}}'
        for levels in messages
    )
    return f'{{"model":"m","metadata":{nested(around)},"messages":[{said}]}}'.encode()


ROOM = 400
NEAR = st.integers(0, 80) | st.integers(DEEPEST - 4, DEEPEST + 4) | st.integers(ROOM - 40, ROOM + 10) | st.just(50_000)
ROOMS = st.sampled_from([ROOM, 10_000]) | st.integers(20, ROOM)


@given(
    format_=st.sampled_from(sorted(FORMATS)),
    messages=st.lists(NEAR, min_size=1, max_size=4),
    around=NEAR,
    rooms=st.lists(ROOMS, min_size=4, max_size=8),
)
@example(format_="anthropic", messages=[10, 375], around=0, rooms=[ROOM] * 4)
@example(format_="openai", messages=[1, 1], around=0, rooms=[ROOM, 25, 30, 35])
def test_what_is_nested_too_deeply_is_the_same_to_both_ways_of_reading(format_, messages, around, rooms):
    """However near the interpreter's limit, also where it was lowered since the history was read."""
    reader, whole = Histories(*FORMATS[format_]), AtOnce(*FORMATS[format_])
    for index, room in enumerate(rooms):
        data = deep_body(messages[: index % len(messages) + 1], around)
        assert outcome(reader, data, room) == outcome(whole, data, room)


def first_refused(reader: Histories | AtOnce) -> int | None:
    return next((levels for levels in range(ROOM) if not outcome(reader, deep_body([levels], 0), ROOM).model), None)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_first_nesting_that_is_refused_is_the_same_to_both_ways_of_reading(format_):
    """One message by itself needs some levels less than the body around it, and would be read beyond.

    From Python 3.12 on, C code has a limit of its own, and nothing is refused here.
    """
    assert first_refused(Histories(*FORMATS[format_])) == first_refused(AtOnce(*FORMATS[format_]))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("levels", [DEEPEST - 4, DEEPEST + 4])
def test_a_history_is_shared_only_where_nesting_can_matter_to_nobody(format_, levels):
    reader = Histories(*FORMATS[format_])
    one, other = (reader.prompt(deep_body([levels] * count, 0)).messages for count in (1, 2))
    assert (one[0] is other[0]) is (levels < DEEPEST)
    assert one[0] == other[0]

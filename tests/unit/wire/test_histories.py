"""Reading a history again: as if every body were the first, and only what is new is built."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.wirebytes import Known, segments
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.anthropic import Anthropic

URL = "https://api.anthropic.com/v1/messages"
TEXTS = st.sampled_from(["", "a", "é", "\U0001f600", "\ud83d", 'q"\\', "],", "messages"])
CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": None}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "r"}
MARKED = {"type": "text", "text": "m", "cache_control": {"type": "ephemeral"}}
BLOCKS = st.sampled_from([CALL, RESULT, MARKED, {**CALL, "name": "g"}])
ONES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant"]),
    st.one_of(TEXTS, st.lists(BLOCKS, max_size=2)),
)
HISTORIES = st.lists(st.one_of(ONES, st.sampled_from([1, 12, 1.5, None, True, "x", [], {}])), max_size=5)
FIELDS = st.sampled_from(
    [{}, {"system": "s"}, {"model": "m"}, {"tools": [{"name": "f"}]}, {"metadata": {"messages": [1]}}]
)


@st.composite
def bodies(draw):
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
def test_a_prompt_does_not_depend_on_the_bodies_read_before(sent, edited, at):
    """Neither for bodies that share nothing nor for one that is another with a byte less."""
    some = sent[edited % len(sent)]
    provider = Anthropic()
    for body in (*sent, some[:at] + some[at + 1 :], some, *reversed(sent)):
        request = Request("POST", URL, (), body)
        assert provider.prompt(request) == Anthropic().prompt(request)


@given(history=HISTORIES, cuts=st.lists(st.integers(0, 5), max_size=6), more=FIELDS)
def test_a_growing_history_reads_as_each_body_alone(history, cuts, more):
    provider = Anthropic()
    for cut in (*cuts, len(history)):
        body = json.dumps({"model": "m", "messages": history[:cut], **more}).encode()
        request = Request("POST", URL, (), body)
        assert provider.prompt(request) == Anthropic().prompt(request)


@given(sent=st.lists(bodies(), min_size=1, max_size=5))
def test_the_bytes_of_a_shared_message_are_those_rendered_first(sent):
    """What `segments` relies on when it takes a message's bytes from the request before."""
    provider, known = Anthropic(), Known()
    for body in (*sent, *sent):
        prompt = provider.prompt(Request("POST", URL, (), body))
        assert segments(prompt, body, known) == segments(prompt, body)


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

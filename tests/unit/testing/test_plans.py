"""Answers as values: what is due when, before a socket is opened."""

import json

import pytest

from pytest_agentlatency.testing import (
    Buffer,
    Cut,
    ErrorEvent,
    Reply,
    SlowHeaders,
    Stall,
    ToolUse,
    chat_api,
    messages_api,
    ping,
)
from pytest_agentlatency.testing.costs import Cost, InputTokens
from pytest_agentlatency.testing.plan import Speech

REPLY = Reply("x" * 8, thinking="y" * 8, tool_calls=[ToolUse("search", {"q": "a"})])  # 2 + 2 + (1 + 3) tokens
COST = Cost(queue=100, prefill=900, decode=70, output=REPLY.output_tokens)


def speech(**changes):
    return Speech("msg_sim_0001", "m", InputTokens(7, 2, 1), COST, **{"streamed": True} | changes)


def due(plan, word):
    return [frame.at for frame in plan.frames if word in frame.data]


@pytest.mark.parametrize("api", [messages_api, chat_api])
def test_generated_frames_span_prefill_to_the_last_token_exactly(api):
    generated = [frame.at for frame in api.plan(REPLY, speech(tokens_per_event=3)).frames if frame.generated]
    assert (generated[0], generated[-1]) == (1000, 1070)
    assert generated == sorted(generated)


@pytest.mark.parametrize("api", [messages_api, chat_api])
def test_headers_come_after_the_queue_and_the_first_event_as_the_server_does_it(api):
    early, late = (api.plan(REPLY, speech(early_prelude=each)) for each in (True, False))
    assert (early.headers_at, early.frames[0].at) == (100, 100)
    assert (late.headers_at, late.frames[0].at) == (100, 1000)


@pytest.mark.parametrize("api", [messages_api, chat_api])
def test_a_plain_answer_is_due_with_its_last_token(api):
    plan = api.plan(REPLY, speech(streamed=False))
    assert (plan.headers_at, [frame.at for frame in plan.frames]) == (1070, [1070])


def test_a_block_opens_with_its_first_token_and_a_tool_with_its_name():
    plan = messages_api.plan(REPLY, speech())
    # tokens 1-2 thinking, 3-4 text, 5 the tool's name, 6-8 its arguments; 10 ns each
    assert due(plan, b"content_block_start") == [1000, 1020, 1040]
    assert due(plan, b"text_delta") == [1020, 1030]
    assert due(plan, b"input_json_delta") == [1040, 1050, 1060, 1070]


def test_the_stream_and_the_plain_answer_say_the_same():
    whole = json.loads(messages_api.plan(REPLY, speech(streamed=False)).frames[0].data)
    lines = b"".join(frame.data for frame in messages_api.plan(REPLY, speech()).frames).splitlines()
    events = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
    call = "".join(event["delta"].get("partial_json", "") for event in events if event["type"] == "content_block_delta")
    assert json.loads(call) == whole["content"][2]["input"]
    assert events[-2]["usage"] == whole["usage"]
    assert sum(whole["usage"][name] for name in whole["usage"] if "input" in name) == 10


def test_a_stall_moves_the_rest_and_slow_headers_everything():
    plan = messages_api.plan(REPLY, speech())
    times = [frame.at for frame in plan.frames]
    stalled = Stall(5000, before=3).change(plan)
    assert [frame.at for frame in stalled.frames] == times[:2] + [at + 5000 for at in times[2:]]
    slow = SlowHeaders(50).change(plan)
    assert (slow.headers_at, [frame.at for frame in slow.frames]) == (150, [at + 50 for at in times])


def test_bursts_are_due_with_their_last_event_and_lose_no_byte():
    plan = messages_api.plan(REPLY, speech())
    held = Buffer(5, hold_headers=True).change(plan)
    assert [frame.at for frame in held.frames] == [frame.at for frame in plan.frames[4::5]] + [1070]
    assert b"".join(frame.data for frame in held.frames) == b"".join(frame.data for frame in plan.frames)
    assert held.headers_at == held.frames[0].at


def test_faults_of_an_empty_plan_change_nothing():
    empty = messages_api.plan(REPLY, speech())
    empty = Cut(after=0).change(empty)
    for fault in (Buffer(hold_headers=True), Stall(5), ping()):
        assert fault.change(empty) == empty
    assert len(ErrorEvent(after=0).change(empty).frames) == 1

"""Streams of which every event's time is known: which milestones a call gets, and which figures follow from them."""

import pytest

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Recording, Stamps
from tests.support.wire import post, typed_stream

MS = 1_000_000
ASK = {"model": "claude-opus-4-8", "max_tokens": 999, "messages": [{"role": "user", "content": "Where?"}]}
OPENING = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": []}
START = {"type": "message_start", "message": {**OPENING, "usage": {"input_tokens": 25, "output_tokens": 1}}}
PING = {"type": "ping"}


def opened(index=0, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(kind, index=0, **value):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **value}}


def ended(**usage):
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def heard(*timed):
    """The call of a stream whose events came so many milliseconds after the call, each a chunk of its own."""
    arrived = tuple(Ns(round(at * MS)) for at, _ in timed)
    stamps = Stamps(Ns(0), arrived[-1], sent=Ns(0), headers=arrived[0], asked=arrived, arrived=arrived)
    response = typed_stream(*(event for _, event in timed))
    attempt = Attempt(1, post("https://api.anthropic.com/v1/messages", ASK), response, stamps)
    return assemble(Recording((attempt,), (CallRecord(1),))).turn(1).call


def test_an_opening_a_ping_and_empty_text_come_before_the_first_token():
    """Field note B1: the first frame of a stream is no token."""
    call = heard(
        (200, START),
        (500, PING),
        (600, opened(type="text", text="")),
        (700, delta("text_delta", text="")),
        (1000, delta("text_delta", text="Hi")),
        (1100, ended(output_tokens=2)),
    )
    assert call.ttft == 1000 * MS
    assert call.milestones.headers == call.milestones.first_event == 200 * MS


def test_thinking_is_the_first_token_and_text_the_first_output():
    """Field note B2: two figures; and the decode rate has all the tokens of the window that it divides by."""
    call = heard(
        (100, START),
        (100, opened(type="thinking", thinking="", signature="")),
        (800, delta("thinking_delta", thinking="The parcel")),
        (4000, delta("thinking_delta", thinking=" is lost.")),
        (4100, opened(1, type="text", text="")),
        (4200, delta("text_delta", 1, text="Lost")),
        (5000, delta("text_delta", 1, text=".")),
        (5000, ended(output_tokens=300, output_tokens_details={"thinking_tokens": 250})),
    )
    assert (call.ttft, call.time_to_first_output, call.time_to_first_text) == (800 * MS, 4200 * MS, 4200 * MS)
    assert (call.usage.output, call.usage.thinking) == (300, 250)
    assert call.decode == (5000 - 800) * MS
    assert call.tpot == call.decode / 299
    assert "hidden-thinking" not in call.flags


def test_thinking_that_is_not_shown_is_flagged_so_that_its_wait_is_not_taken_for_prefill():
    """Field note B2: with the display left out, 4 s of thinking look like 4 s of reading the prompt."""
    call = heard(
        (100, START),
        (4100, opened(type="text", text="")),
        (4200, delta("text_delta", text="Lost")),
        (5000, ended(output_tokens=300, output_tokens_details={"thinking_tokens": 250})),
    )
    assert "hidden-thinking" in call.flags


def test_a_turn_of_a_tool_call_only_has_a_first_token():
    """Field note B3: the name is generated; its arguments come later, and an empty one is none."""
    call = heard(
        (200, START),
        (900, opened(type="tool_use", id="t", name="track", input={})),
        (950, delta("input_json_delta", partial_json="")),
        (1100, delta("input_json_delta", partial_json='{"id": 7}')),
        (1200, ended(output_tokens=20)),
    )
    assert call.ttft == call.time_to_first_output == 900 * MS
    assert call.time_to_first_text is None
    assert call.milestones.last_token == 1100 * MS


def test_a_stream_without_content_has_no_first_token_and_not_one_at_0():
    """Field note B3."""
    call = heard((200, START), (300, ended(output_tokens=0)))
    assert call.ttft is None
    assert "no-tokens" in call.flags


def test_a_hundred_tokens_in_25_chunks_are_a_hundred_tokens():
    """Field note B10: a chunk is no token; the rate is the provider's count over the decode time."""
    chunks = [(1000 + 40 * number, delta("text_delta", text="four words or so ")) for number in range(25)]
    call = heard((100, START), (200, opened(type="text", text="")), *chunks, (2000, ended(output_tokens=100)))
    assert len(call.chunk_gaps) == 27
    assert call.decode == 960 * MS
    assert call.tpot == pytest.approx(960 * MS / 99)

"""Anthropic Messages: what requests ask and responses say, checked against the SDK's own reading of the same bytes."""

import base64
import json

import anthropic
import pytest

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.anthropic import Anthropic
from tests.support.agents import HTTP, with_threads
from tests.support.wire import Wire, post, typed, typed_stream, whole

PROVIDER = Anthropic()
URL = "https://api.anthropic.com/v1/messages"
ASK = {"model": "claude-opus-4-8", "max_tokens": 64, "messages": [{"role": "user", "content": "Where is my parcel?"}]}


def start(usage=None, **more):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": []}
    usage = {"input_tokens": 25, "output_tokens": 1} if usage is None else usage
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage, **more}}


def opened(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, kind, **value):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **value}}


def closed(index):
    return {"type": "content_block_stop", "index": index}


def ended(reason="end_turn", **usage):
    usage = usage or {"output_tokens": 15}
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


STOP = {"type": "message_stop"}
PING = {"type": "ping"}
MISS = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 2520}}
RICH = (
    start(
        {"input_tokens": 3, "cache_read_input_tokens": 5758, "cache_creation_input_tokens": 6174, "output_tokens": 1}
    ),
    PING,
    opened(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="The parcel"),
    delta(0, "thinking_delta", thinking=" is lost."),
    delta(0, "signature_delta", signature="c2lnbmVk"),
    closed(0),
    opened(1, type="text", text=""),
    delta(1, "text_delta", text="Let me "),
    delta(1, "text_delta", text="look."),
    closed(1),
    opened(2, type="tool_use", id="toolu_1", name="track", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"parcel": {"id"'),
    delta(2, "input_json_delta", partial_json=": 7}}"),
    closed(2),
    ended("tool_use", output_tokens=60, output_tokens_details={"thinking_tokens": 21}),
    STOP,
)


def sdk(*responses):
    wire = Wire(responses, HTTP)
    return wire, anthropic.Anthropic(api_key="unused", http_client=wire.client, max_retries=0)


def test_streamed_answer_is_what_the_sdk_accumulates():
    response = typed_stream(*RICH)
    _, client = sdk(response)
    with client.messages.stream(**ASK) as stream:
        theirs = stream.get_final_message()
    ours = PROVIDER.answer(response)
    assert (ours.id, ours.model, ours.stop_reason) == (theirs.id, theirs.model, theirs.stop_reason)
    usage = theirs.usage
    assert ours.usage.uncached == usage.input_tokens
    assert ours.usage.cache_read == usage.cache_read_input_tokens
    assert ours.usage.cache_write == usage.cache_creation_input_tokens
    assert ours.usage.output == usage.output_tokens
    assert ours.usage.thinking == usage.output_tokens_details.thinking_tokens
    assert ours.usage.provenance is Provenance.MEASURED
    assert [block.raw for block in ours.message.blocks] == [canonical(block) for block in theirs.content]
    thinking, text, call = ours.blocks
    assert (thinking.kind, thinking.text) == ("thinking", theirs.content[0].thinking)
    assert (text.kind, text.text) == ("text", theirs.content[1].text)
    assert (call.kind, call.name, call.id) == ("tool_json", theirs.content[2].name, theirs.content[2].id)
    assert json.loads(call.text) == theirs.content[2].input
    assert (ours.streamed, ours.finished, ours.error, ours.unknown_events) == (True, True, "", ())


def canonical(block):
    return json.dumps(block.to_dict(), sort_keys=True, separators=(",", ":"))


def test_answer_that_is_not_streamed_is_what_the_sdk_reads():
    content = [{"type": "text", "text": "Look:"}, {"type": "tool_use", "id": "t1", "name": "track", "input": {"id": 7}}]
    response = whole({
        "id": "msg_2", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 34},
    })  # fmt: skip
    _, client = sdk(response)
    theirs = client.messages.create(**ASK)
    ours = PROVIDER.answer(response)
    assert (ours.id, ours.stop_reason, ours.finished, ours.streamed) == (theirs.id, theirs.stop_reason, True, False)
    assert (ours.usage.context, ours.usage.output) == (theirs.usage.input_tokens, theirs.usage.output_tokens)
    assert [block.raw for block in ours.message.blocks] == [canonical(block) for block in theirs.content]
    assert ours.marks.first_token is None
    assert all(block.first_chunk is None for block in ours.blocks)


def test_answer_comes_back_in_the_next_request_as_it_left():
    """What the SDK sends back as history is, block for block, what the answer said it would be."""
    answer = PROVIDER.answer(typed_stream(*RICH))
    wire, client = sdk(typed_stream(*RICH), typed_stream(*RICH))
    with client.messages.stream(**ASK) as stream:
        reply = stream.get_final_message()
    history = [*ASK["messages"], {"role": "assistant", "content": reply.content}, {"role": "user", "content": "Go on."}]
    with client.messages.stream(**{**ASK, "messages": history}) as stream:
        stream.until_done()
    sent = PROVIDER.prompt(wire.requests[1]).messages[1]
    assert [block.raw for block in sent.blocks] == [block.raw for block in answer.message.blocks]


@with_threads
def test_thread_continues_the_answer_that_it_names():
    """The SDK's tool runner leaves the history on the server: only `previous_message_id` tells whose turn it is."""

    @anthropic.beta_tool
    def track(parcel: int) -> str:
        """Where a parcel is.

        Args:
            parcel: its number
        """
        return f"parcel {parcel}: lost"

    call = {"type": "tool_use", "id": "toolu_1", "name": "track", "input": {"parcel": 7}}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    wire, client = sdk(
        whole({**reply, "content": [call], "stop_reason": "tool_use", "usage": usage}),
        whole({**reply, "id": "msg_2", "content": [], "stop_reason": "end_turn", "usage": usage}),
    )
    client.beta.messages.tool_runner(**ASK, tools=[track]).until_done()
    first, second = map(PROVIDER.prompt, wire.requests)
    assert all(map(PROVIDER.recognises, wire.requests))
    assert (first.previous_id, second.previous_id) == ("", "msg_1")
    assert [tool.name for tool in first.tools] == ["track"]
    (result,) = second.messages[-1].blocks
    assert (result.kind, result.id, result.text) == ("tool_result", "toolu_1", "parcel 7: lost")


# Usage


def test_c1_context_counts_what_the_cache_held():
    usage = PROVIDER.answer(typed_stream(*RICH)).usage
    assert (usage.context, usage.prefill_work) == (11_935, 6_177)


def test_c2_cumulative_usage_overwrites_and_missing_fields_stay():
    response = typed_stream(start(), ended(output_tokens=15), ended(input_tokens=25, output_tokens=40), STOP)
    usage = PROVIDER.answer(response).usage
    assert (usage.uncached, usage.output) == (25, 40)
    nulled = ended(output_tokens=40, input_tokens=None, cache_read_input_tokens=None)
    assert PROVIDER.answer(typed_stream(start(), nulled)).usage.uncached == 25
    assert json.loads(usage.raw) == {"input_tokens": 25, "output_tokens": 40}


@pytest.mark.parametrize("ending", [(), (ended(output_tokens=None), STOP)], ids=["cut", "count is null"])
def test_a_stream_that_did_not_tell_its_output_has_none(ending):
    """Its opening says 1, or 0: what was generated by then. The input is told there and stands."""
    text = (opened(0, type="text", text=""), delta(0, "text_delta", text="Look."))
    usage = PROVIDER.answer(typed_stream(start(), *text, *ending)).usage
    assert (usage.context, usage.output, usage.provenance) == (25, None, Provenance.MEASURED)


def test_c3_server_side_tools_make_a_multi_pass_usage():
    searched = ended(input_tokens=13_520, output_tokens=9, server_tool_use={"web_search_requests": 3})
    usage = PROVIDER.answer(typed_stream(start({"input_tokens": 2049}), searched, STOP)).usage
    assert usage.multi_pass
    assert usage.context == 13_520
    idle = ended(output_tokens=9, server_tool_use={"web_search_requests": 0})
    assert not PROVIDER.answer(typed_stream(start(), idle, STOP)).usage.multi_pass


def test_several_iterations_make_a_multi_pass_usage():
    passes = [{"type": "message", "input_tokens": 1, "output_tokens": 2}] * 2
    assert PROVIDER.answer(typed_stream(start(), ended(output_tokens=4, iterations=passes))).usage.multi_pass
    assert not PROVIDER.answer(typed_stream(start(), ended(output_tokens=4, iterations=passes[:1]))).usage.multi_pass


def test_cache_writes_given_only_by_lifetime_are_summed():
    split = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 20}
    usage = PROVIDER.answer(typed_stream(start({"input_tokens": 1, "cache_creation": split}))).usage
    assert usage.cache_write == 120


def test_no_usage_is_unknown_and_not_zero():
    usage = PROVIDER.answer(typed_stream(start({}), STOP)).usage
    assert (usage.context, usage.output, usage.provenance) == (None, None, Provenance.UNKNOWN)


# First tokens; each event is one chunk, so a chunk's index is an event's


def marks(*events):
    return PROVIDER.answer(typed_stream(*events)).marks


def test_b1_prelude_and_empty_deltas_are_no_token():
    found = marks(
        start(),
        PING,
        opened(0, type="text", text=""),
        delta(0, "text_delta", text=""),
        delta(0, "text_delta", text="Hi"),
    )
    assert (found.first_event, found.first_token, found.first_text, found.last_token) == (0, 4, 4, 4)


def test_b2_thinking_counts_as_token_but_not_as_output():
    found = marks(*RICH)
    assert (found.first_token, found.first_output, found.first_text, found.last_token) == (3, 8, 8, 14)
    assert not found.inferred


def test_b2_hidden_thinking_is_inferred_from_its_opening():
    """With the display omitted, a signature is the only sign that the block held anything."""
    found = marks(
        start(),
        opened(0, type="thinking", thinking="", signature=""),
        PING,
        delta(0, "signature_delta", signature="c2lnbmVk"),
        closed(0),
        opened(1, type="text", text=""),
        delta(1, "text_delta", text="Lost."),
    )
    assert (found.first_token, found.first_output, found.last_token, found.inferred) == (1, 6, 6, True)


def test_hidden_thinking_that_opens_with_its_signature():
    found = marks(start(), opened(0, type="thinking", thinking="", signature="c2lnbmVk"))
    assert (found.first_token, found.last_token, found.inferred) == (1, 1, True)


def test_hidden_thinking_after_text_does_not_move_the_first_token():
    found = marks(
        start(),
        opened(0, type="text", text="Hm"),
        opened(1, type="thinking", thinking=""),
        PING,
        delta(1, "signature_delta", signature="c2lnbmVk"),
    )
    assert (found.first_token, found.last_token, found.inferred) == (1, 4, False)


def test_signature_after_shown_thinking_is_no_token():
    found = marks(*RICH[:7])
    assert (found.first_token, found.last_token, found.inferred) == (3, 4, False)


def test_b3_tool_name_is_the_first_token_of_a_turn_of_tools_only():
    tool = opened(0, type="tool_use", id="t", name="track", input={})
    response = typed_stream(
        start(), tool, delta(0, "input_json_delta", partial_json=""), delta(0, "input_json_delta", partial_json="{}")
    )
    answer = PROVIDER.answer(response)
    assert (answer.marks.first_token, answer.marks.first_output, answer.marks.last_token) == (1, 1, 3)
    assert answer.marks.first_text is None
    assert (answer.blocks[0].first_chunk, answer.blocks[0].last_chunk) == (1, 3)


def test_b3_stream_without_content_has_no_first_token():
    assert marks(start(), PING, ended(), STOP).first_token is None


@pytest.mark.parametrize(
    ("block", "output"),
    [
        ({"type": "redacted_thinking", "data": "RU5D"}, None),
        ({"type": "thinking", "thinking": "Hm"}, None),
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, 1),
        ({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result"}]}, 1),
        ({"type": "text", "text": "Hi"}, 1),
    ],
)
def test_block_that_opens_with_content_is_a_token(block, output):
    found = marks(start(), opened(0, **block))
    assert (found.first_token, found.first_output) == (1, output)


def test_citation_is_no_token_and_stays_in_the_history():
    cited = delta(0, "citations_delta", citation={"type": "char_location"})
    answer = PROVIDER.answer(typed_stream(start(), opened(0, type="text", text=""), cited))
    assert answer.marks.first_token is None
    assert json.loads(answer.message.blocks[0].raw)["citations"] == [{"type": "char_location"}]


# Ends and errors


def test_error_inside_a_stream_of_status_200():
    failure = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    answer = PROVIDER.answer(typed_stream(*RICH[:9], failure))
    assert (answer.error, answer.finished, answer.blocks[1].text) == ("overloaded_error", False, "Let me ")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}', "rate_limit_error"),
        (b'{"error":{"type":"invalid_request_error"}}', "invalid_request_error"),
        (b"<html>bad gateway</html>", "http_529"),
        (b"", "http_529"),
    ],
)
def test_error_response_names_its_type(body, error):
    assert PROVIDER.answer(Response(529, (), (body,))).error == error


def test_stream_cut_in_the_middle_of_arguments_keeps_what_came():
    answer = PROVIDER.answer(typed_stream(*RICH[:14]))
    assert not answer.finished
    assert answer.blocks[2].text == '{"parcel": {"id"'
    assert answer.message.blocks[2].name == "track"


def test_b17_unknown_event_is_kept_and_moves_nothing():
    known, extended = typed_stream(*RICH), typed_stream(*RICH, {"type": "message_summary", "text": "x"})
    answer = PROVIDER.answer(extended)
    assert answer.unknown_events == ("message_summary",)
    assert answer.marks == PROVIDER.answer(known).marks
    odd = delta(0, "video_delta", video="x")
    assert PROVIDER.answer(typed_stream(*RICH[:3], odd)).unknown_events == ("content_block_delta/video_delta",)


def test_event_stream_under_another_content_type():
    response = Response(200, (("content-type", "**REDACTED**"),), tuple(map(typed, RICH)))
    assert PROVIDER.answer(response) == PROVIDER.answer(typed_stream(*RICH))


def test_provider_s_own_diagnosis_of_a_cache_miss():
    assert PROVIDER.answer(typed_stream(start(diagnostics=MISS), STOP)).miss_reason == "tools_changed"
    assert PROVIDER.answer(typed_stream(start(diagnostics={"cache_miss_reason": None}), STOP)).miss_reason == ""


# Prompts


def prompt(**body):
    return PROVIDER.prompt(post(URL, {**ASK, **body}))


def blocks(*content):
    return prompt(messages=[{"role": "user", "content": list(content)}]).messages[0].blocks


def test_string_and_block_content_are_equal():
    as_blocks = prompt(
        system=[{"type": "text", "text": "Be brief."}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "Where is my parcel?"}]}],
    )
    assert prompt(system="Be brief.") == as_blocks


def test_cache_markers_are_seen_and_are_no_part_of_a_block():
    marker = {"cache_control": {"type": "ephemeral"}}
    tool = {"name": "track", "input_schema": {"type": "object"}, "description": "Where a parcel is"}
    plain, marked = prompt(tools=[tool]), prompt(tools=[{**tool, **marker}], **marker)
    assert (plain.tools[0].cache_marked, marked.tools[0].cache_marked) == (False, True)
    assert (plain.tools[0].raw, plain.tools[0].wire) == (marked.tools[0].raw, marked.tools[0].wire)
    assert marked.params["cache_control"] == '{"type":"ephemeral"}'
    (text,) = blocks({"type": "text", "text": "x", **marker})
    (result,) = blocks(
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x", **marker}]}
    )
    assert (text.cache_marked, result.cache_marked) == (True, True)
    plain = {"type": "text", "text": "y"}
    outer, second, none = blocks(
        {"type": "tool_result", "tool_use_id": "t", "content": [plain], **marker},
        {"type": "tool_result", "tool_use_id": "t", "content": [plain, {**plain, **marker}]},
        {"type": "tool_result", "tool_use_id": "t", "content": [plain]},
    )
    assert (outer.cache_marked, second.cache_marked, none.cache_marked) == (True, True, False)
    assert "cache_control" not in text.raw + result.raw


def test_reordered_keys_of_a_tool_show_on_the_wire_only():
    one, other = (
        prompt(tools=[dict(pairs)]).tools[0] for pairs in ([("name", "f"), ("z", 1)], [("z", 1), ("name", "f")])
    )
    assert one.raw == other.raw
    assert one.wire != other.wire


def test_deferred_tool_is_told_apart():
    deferred, plain = prompt(tools=[{"name": "a", "defer_loading": True}, {"name": "b"}]).tools
    assert (deferred.deferred, plain.deferred) == (True, False)


def test_everything_else_is_a_parameter():
    found = prompt(temperature=0.5, stream=True, tool_choice={"type": "auto"}, thread={"type": "create"})
    assert found.params == {"max_tokens": "64", "temperature": "0.5", "tool_choice": '{"type":"auto"}'}
    assert found.streamed
    assert found.model == "claude-opus-4-8"


def test_result_carries_its_tool_s_name_and_error():
    call = {"type": "tool_use", "id": "t1", "name": "track", "input": {"b": 1, "a": "ü"}}
    failed = {"type": "tool_result", "tool_use_id": "t1", "content": "no such parcel", "is_error": True}
    asked, answered = prompt(
        messages=[{"role": "assistant", "content": [call]}, {"role": "user", "content": [failed]}]
    ).messages
    assert (asked.blocks[0].text, asked.blocks[0].name) == ('{"b":1,"a":"ü"}', "track")
    assert answered.blocks[0].path == "messages[1].content[0]"
    assert (answered.blocks[0].name, answered.blocks[0].error) == ("track", True)


PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAYAAAD0eNT6")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png"}}


def test_image_keeps_the_bytes_that_hold_its_size_also_inside_a_result():
    image = {**IMAGE, "source": {**IMAGE["source"], "data": base64.b64encode(PNG + bytes(500_000)).decode()}}
    direct, nested = blocks(image, {"type": "tool_result", "tool_use_id": "t", "content": [image]})
    for block in (direct, nested):
        assert block.media[:24] == PNG[:24]
        assert len(block.media) < 100
        assert block.text == ""


def test_jpeg_keeps_enough_to_get_behind_its_metadata():
    photo = b"\xff\xd8\xff\xe1" + bytes(200_000)
    (block,) = blocks({"type": "image", "source": {"type": "base64", "data": base64.b64encode(photo).decode()}})
    assert 60_000 < len(block.media) < 70_000


def test_c9_every_kind_of_block_has_text_for_a_tokenizer():
    found = blocks(
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "b", "signature": "sig"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"q": 1}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 2}},
        {"type": "tool_result", "tool_use_id": "t", "content": "c"},
        {"type": "search_result", "title": "d", "source": "e", "content": [{"type": "text", "text": "f"}]},
        {"type": "document", "title": "g", "source": {"type": "text", "media_type": "text/plain", "data": "h"}},
        {"type": "tool_reference", "tool_name": "i"},
        {"type": "hologram", "depth": 3},
    )
    assert [block.text for block in found] == [
        "a", "b", '{"q":1}', '{"q":2}', "c", "d\ne\nf", "g\nh", "i", '{"depth":3,"type":"hologram"}',
    ]  # fmt: skip
    assert found[-1].kind == "hologram"


def test_c10_signatures_and_encrypted_thinking_are_no_text():
    signed, redacted = blocks(
        {"type": "thinking", "thinking": "", "signature": "x" * 4_000},
        {"type": "redacted_thinking", "data": "x" * 4_000},
    )
    assert (signed.text, redacted.text) == ("", "")


def test_half_a_surrogate_pair_becomes_text_that_can_be_encoded():
    request = post(URL, ASK)
    broken = request.body.replace(b"parcel?", rb"parcel \ud83d?")
    (block,) = PROVIDER.prompt(type(request)("POST", URL, (), broken)).messages[0].blocks
    assert block.text.encode() == b"Where is my parcel ??"


def test_malformed_body_is_an_empty_prompt():
    assert PROVIDER.prompt(type(post(URL, 1))("POST", URL, (), b"{")).messages == ()
    assert PROVIDER.prompt(post(URL, {"model": 1, "messages": [3, {"content": {}}], "tools": "x"})).model == ""


def test_vertex_names_model_and_streaming_in_the_path():
    path = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-4-8:streamRawPredict"
    request = post(
        "https://aiplatform.googleapis.com" + path, {"messages": [], "anthropic_version": "vertex-2023-10-16"}
    )
    assert PROVIDER.recognises(request)
    assert (PROVIDER.prompt(request).model, PROVIDER.prompt(request).streamed) == ("claude-opus-4-8", True)

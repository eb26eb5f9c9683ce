"""Cohere's chat, both versions: bytes after docs.cohere.com/reference/chat and chat-v1, counts out of its examples."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.cohere import Cohere, usage_of
from pytest_agentlatency.wire.lineage import Exchange, place_all
from tests.support.wire import post, rechunked, typed_stream, whole

PROVIDER = Cohere()
V1, V2 = "https://api.cohere.com/v1/chat", "https://api.cohere.com/v2/chat"
TOOL = {"name": "track", "description": "Find a parcel.", "parameter_definitions": {"id": {"type": "int"}}}
FUNCTION = {"type": "function", "function": {"name": "track", "description": "Find a parcel.", "parameters": {}}}
CALL = {"id": "track_x1", "type": "function", "function": {"name": "track", "arguments": '{"id":7}'}}
ASKED = {"name": "track", "parameters": {"id": 7}}
COUNTS = {
    "billed_units": {"input_tokens": 37.0, "output_tokens": 28.0},
    "tokens": {"input_tokens": 913.0, "output_tokens": 83.0},
}


def event(kind, index=None, **delta):
    found = {"type": kind, "delta": delta} if delta else {"type": kind}
    return found if index is None else {**found, "index": index}


def called(index, kind="tool-call-delta", **call):
    return event(kind, index, message={"tool_calls": call})


def said(index, text, kind="text"):
    return event("content-delta", index, message={"content": {kind: text}})


TOOL_STEP = (
    {"type": "message-start", "id": "m1", "delta": {"message": {"role": "assistant", "content": [], "tool_calls": []}}},
    event("tool-plan-delta", message={"tool_plan": "I will "}),
    event("tool-plan-delta", message={"tool_plan": "look."}),
    called(0, "tool-call-start", id="track_x1", type="function", function={"name": "track", "arguments": ""}),
    called(0, function={"arguments": '{"id"'}),
    called(0, function={"arguments": ":7}"}),
    event("tool-call-end", 0),
    called(1, "tool-call-start", id="track_x2", type="function", function={"name": "track", "arguments": ""}),
    called(1, function={"arguments": '{"id":8}'}),
    event("tool-call-end", 1),
    event("message-end", finish_reason="TOOL_CALL", usage=COUNTS),
)
LAST_STEP = (
    {"type": "message-start", "id": "m2", "delta": {"message": {"role": "assistant"}}},
    event("content-start", 0, message={"content": {"type": "thinking", "thinking": ""}}),
    said(0, "Hm", "thinking"),
    event("content-end", 0),
    event("content-start", 1, message={"content": {"type": "text", "text": ""}}),
    said(1, "Lo"),
    said(1, "st."),
    event("citation-start", 0, message={"citations": {"start": 0, "end": 5, "text": "Lost."}}),
    event("citation-end", 0),
    event("content-end", 1),
    event("message-end", finish_reason="COMPLETE", usage={**COUNTS, "cached_tokens": 192.0}),
)


def lines(*events):
    """Version 1 streams objects, one a line."""
    found = (json.dumps({"is_finished": False, **each}).encode() + b"\n" for each in events)
    return Response(200, (("content-type", "application/stream+json"),), tuple(found))


def v1(kind, **fields):
    return {"event_type": kind, **fields}


OLD_TOOL_STEP = (
    v1("stream-start", generation_id="g1"),
    v1("tool-calls-chunk", tool_call_delta={"text": "I will "}),
    v1("tool-calls-chunk", text="look."),
    v1("tool-calls-chunk", tool_call_delta={"index": 0, "name": "track"}),
    v1("tool-calls-chunk", tool_call_delta={"index": 0, "parameters": '{"id": '}),
    v1("tool-calls-chunk", tool_call_delta={"index": 0, "parameters": "7}"}),
    v1("tool-calls-generation", text="I will look.", tool_calls=[ASKED]),
    v1(
        "stream-end",
        is_finished=True,
        finish_reason="COMPLETE",
        response={
            "text": "I will look.", "generation_id": "g1", "tool_calls": [ASKED], "finish_reason": "COMPLETE",
            "meta": {"api_version": {"version": "1"}, **COUNTS},
        },
    ),
)  # fmt: skip


# Recognition


@pytest.mark.parametrize(
    ("url", "body", "ours"),
    [
        (V1, {"message": "Hello!", "model": "command-r-08-2024", "stream": False}, True),
        (V1, {"message": "Hello!", "chat_history": []}, True),
        (V2, {"model": "command-a-03-2025", "messages": []}, True),
        ("https://gateway.example/cohere/v2/chat?x=1", {"model": "m", "messages": []}, True),
        ("https://shop.example/v1/chat", {"message": "Where is my parcel?", "stream": True}, False),
        ("https://api.cohere.com/v1/embed", {"model": "embed-v4.0", "texts": ["message"]}, False),
        ("https://api.cohere.com/compatibility/v1/chat/completions", {"model": "m", "messages": []}, False),
    ],
)
def test_chats_of_either_version_are_recognised_and_a_shops_own_is_not(url, body, ours):
    assert PROVIDER.recognises(post(url, body)) is ours


# Usage


@pytest.mark.parametrize(
    ("reported", "context", "work", "output"),
    [
        pytest.param(COUNTS, 913, 913, 83, id="the model reads more than is billed"),
        pytest.param(
            {
                "billed_units": {"input_tokens": 2, "output_tokens": 10},
                "tokens": {"input_tokens": 202, "output_tokens": 10},
                "cached_tokens": 192,
            },
            202, 10, 10, id="cached tokens are part of the input",
        ),
        pytest.param({"billed_units": {"input_tokens": 17}}, None, None, None, id="what is billed is no context"),
        pytest.param({"tokens": {"output_tokens": 12}}, None, None, 12, id="input left out"),
        pytest.param({}, None, None, None, id="nothing"),
    ],
)  # fmt: skip
def test_the_context_is_what_the_model_read(reported, context, work, output):
    usage = usage_of(reported)
    assert (usage.context, usage.prefill_work, usage.output) == (context, work, output)


def test_a_search_by_the_server_is_no_single_context():
    assert usage_of({**COUNTS, "billed_units": {"search_units": 1}}).multi_pass


# Version 2


def test_a_tool_step_streams_its_plan_and_its_calls():
    answer = PROVIDER.answer(typed_stream(*TOOL_STEP))
    assert [(block.kind, block.text, block.name, block.id) for block in answer.blocks] == [
        ("text", "I will look.", "", ""),
        ("tool_json", '{"id":7}', "track", "track_x1"),
        ("tool_json", '{"id":8}', "track", "track_x2"),
    ]
    found = answer.marks
    assert (found.first_event, found.first_token, found.first_output, found.last_token) == (0, 1, 1, 8)
    assert (answer.id, answer.stop_reason, answer.finished, answer.usage.context) == ("m1", "TOOL_CALL", True, 913)
    assert (answer.error, answer.unknown_events) == ("", ())


def test_thinking_comes_before_the_text_and_citations_are_no_tokens():
    answer = PROVIDER.answer(typed_stream(*LAST_STEP))
    assert [(block.kind, block.text) for block in answer.blocks] == [("thinking", "Hm"), ("text", "Lost.")]
    found = answer.marks
    assert (found.first_token, found.first_output, found.first_text, found.last_token) == (2, 5, 5, 6)
    assert (answer.usage.context, answer.usage.cache_read) == (913, 192)


def test_a_whole_answer_says_what_its_stream_says():
    thought, text = {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Lost."}
    message = {"role": "assistant", "content": [thought, text], "tool_calls": [CALL], "tool_plan": "Look."}
    answer = PROVIDER.answer(whole({"id": "m3", "message": message, "finish_reason": "TOOL_CALL", "usage": COUNTS}))
    assert [(block.kind, block.text) for block in answer.blocks] == [
        ("text", "Look."),
        ("thinking", "Hm"),
        ("text", "Lost."),
        ("tool_json", '{"id":7}'),
    ]
    assert (answer.id, answer.streamed, answer.finished, answer.marks.first_token) == ("m3", False, True, None)
    assert answer.usage.output == 83


def test_prompt_of_messages_with_a_plan_calls_results_and_documents():
    found = PROVIDER.prompt(
        post(V2, {
            "model": "command-a-03-2025", "stream": True, "temperature": 0.3, "tools": [FUNCTION],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Where is my parcel?"},
                {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [CALL]},
                {
                    "role": "tool", "tool_call_id": "track_x1",
                    "content": [{"type": "document", "document": {"data": "lost"}}],
                },
            ],
            "documents": ["Parcels are late.", {"id": "2", "data": {"text": "Snow."}}],
        })
    )  # fmt: skip
    assert (found.model, found.streamed, found.params) == ("command-a-03-2025", True, {"temperature": "0.3"})
    assert [tool.name for tool in found.tools] == ["track"]
    assert [(block.kind, block.path, block.text) for block in found.blocks] == [
        ("text", "messages[0].content[0]", "Be brief."),
        ("text", "messages[1].content[0]", "Where is my parcel?"),
        ("text", "messages[2].tool_plan", "I will look."),
        ("tool_use", "messages[2].tool_calls[0]", '{"id":7}'),
        ("tool_result", "messages[3].content", '{"document":{"data":"lost"},"type":"document"}'),
        ("document", "documents[0]", "Parcels are late."),
        ("document", "documents[1]", '{"id":"2","data":{"text":"Snow."}}'),
    ]
    assert found.messages[2].blocks[0].name == "track"


# Version 1


def test_a_stream_of_lines_has_its_text_once():
    end = v1("stream-end", finish_reason="MAX_TOKENS", response={"text": "Once upon", "meta": COUNTS})
    answer = PROVIDER.answer(
        lines(
            v1("stream-start", generation_id="g"),
            *(v1("text-generation", text=text) for text in ("Once", " upon")),
            end,
        )
    )
    assert [(block.kind, block.text) for block in answer.blocks] == [("text", "Once upon")]
    found = answer.marks
    assert (found.first_event, found.first_token, found.last_token) == (0, 1, 2)
    assert (answer.id, answer.stop_reason, answer.streamed, answer.usage.context) == ("g", "MAX_TOKENS", True, 913)


def test_calls_that_stream_are_those_that_the_end_repeats():
    answer = PROVIDER.answer(lines(*OLD_TOOL_STEP))
    assert [(block.kind, block.text, block.name) for block in answer.blocks] == [
        ("text", "I will look.", ""),
        ("tool_json", '{"id": 7}', "track"),
    ]
    assert (answer.marks.first_token, answer.marks.last_token, answer.unknown_events) == (1, 5, ())


@given(st.lists(st.integers(0, 5_000), max_size=30))
def test_lines_cut_anywhere_say_the_same(cuts):
    """Version 2's events stand with the laws of every provider."""
    response = lines(*OLD_TOOL_STEP)
    one, other = PROVIDER.answer(response), PROVIDER.answer(rechunked(response, cuts))
    assert [(block.kind, block.text, block.name) for block in other.blocks] == [
        (block.kind, block.text, block.name) for block in one.blocks
    ]
    assert (other.usage, other.stop_reason, other.message) == (one.usage, one.stop_reason, one.message)


def test_calls_without_chunks_are_taken_when_they_come_whole():
    answer = PROVIDER.answer(lines(OLD_TOOL_STEP[0], *OLD_TOOL_STEP[-2:]))
    assert [(block.text, block.first_chunk) for block in answer.blocks] == [("I will look.", 1), ('{"id":7}', 1)]


def test_a_whole_answer_of_version_1():
    body = {"text": "Hello!", "generation_id": "g", "response_id": "r", "finish_reason": "COMPLETE", "meta": COUNTS}
    answer = PROVIDER.answer(whole(body))
    assert (answer.id, answer.blocks[0].text, answer.streamed, answer.finished) == ("g", "Hello!", False, True)
    assert answer.usage.context == 913


def test_prompt_of_a_history_a_message_and_results():
    history = [
        {"role": "USER", "message": "Where is my parcel?"},
        {"role": "CHATBOT", "message": "I will look.", "tool_calls": [ASKED]},
        {"role": "TOOL", "tool_results": [{"call": ASKED, "outputs": [{"at": "sea"}]}]},
    ]
    results = [{"call": ASKED, "outputs": [{"at": "home"}]}]
    body = {
        "model": "command-r", "preamble": "Be brief.", "chat_history": history, "message": "And now?", "tools": [TOOL],
        "tool_results": results, "documents": [{"title": "Snow", "snippet": "Late."}], "force_single_step": True,
    }  # fmt: skip
    found = PROVIDER.prompt(post(V1, body))
    assert [(message.role, message.path) for message in found.messages] == [
        ("user", "chat_history[0]"),
        ("assistant", "chat_history[1]"),
        ("tool", "chat_history[2]"),
        ("user", "message"),
        ("tool", "message"),
        ("document", "documents"),
    ]
    assert [(block.kind, block.path, block.text, block.name) for block in found.blocks] == [
        ("text", "preamble[0]", "Be brief.", ""),
        ("text", "chat_history[0].message[0]", "Where is my parcel?", ""),
        ("text", "chat_history[1].message[0]", "I will look.", ""),
        ("tool_use", "chat_history[1].tool_calls[0]", '{"id":7}', "track"),
        ("tool_result", "chat_history[2].tool_results[0]", '[{"at":"sea"}]', "track"),
        ("text", "message[0]", "And now?", ""),
        ("tool_result", "tool_results[0]", '[{"at":"home"}]', "track"),
        ("document", "documents[0]", '{"title":"Snow","snippet":"Late."}', ""),
    ]
    assert ([tool.name for tool in found.tools], found.params) == (["track"], {"force_single_step": "true"})
    assert not found.streamed


# Histories


def test_an_answer_of_version_2_is_the_history_of_the_next_request():
    question = {"role": "user", "content": "Where?"}
    reply = {
        "role": "assistant", "tool_plan": "I will look.",
        "tool_calls": [CALL, {**CALL, "id": "track_x2", "function": {"name": "track", "arguments": '{"id":8}'}}],
    }  # fmt: skip
    result = {"role": "tool", "tool_call_id": "track_x1", "content": "lost"}
    one, other = (
        PROVIDER.prompt(post(V2, {"model": "m", "messages": sent})) for sent in ([question], [question, reply, result])
    )
    answer = PROVIDER.answer(typed_stream(*TOOL_STEP))
    assert [block.raw for block in answer.message.blocks] == [block.raw for block in other.messages[1].blocks]
    placed = place_all([Exchange(one, answer), Exchange(other, PROVIDER.answer(typed_stream(*LAST_STEP)))])
    assert [(each.lane, each.turn) for each in placed] == [(1, 1), (1, 2)]


def test_an_answer_of_version_1_is_the_history_of_the_next_request():
    one = {"model": "m", "message": "Where?"}
    history = [
        {"role": "USER", "message": "Where?"},
        {"role": "CHATBOT", "message": "I will look.", "tool_calls": [ASKED]},
    ]
    other = {"model": "m", "chat_history": history, "tool_results": [{"call": ASKED, "outputs": [{"at": "sea"}]}]}
    answer = PROVIDER.answer(lines(*OLD_TOOL_STEP))
    sent = PROVIDER.prompt(post(V1, other))
    assert [block.raw for block in answer.message.blocks] == [block.raw for block in sent.messages[1].blocks]
    placed = place_all([Exchange(PROVIDER.prompt(post(V1, one)), answer), Exchange(sent, PROVIDER.answer(whole({})))])
    assert [(each.lane, each.turn, each.extends) for each in placed] == [(1, 1, False), (1, 2, True)]


# Ends and errors


def test_a_refused_request_is_an_error_of_its_status():
    answer = PROVIDER.answer(whole({"message": "invalid api token"}, status=401))
    assert (answer.error, answer.blocks, answer.message, answer.finished) == ("http_401", (), None, False)


@pytest.mark.parametrize(
    "response",
    [
        typed_stream(*LAST_STEP[:6], event("message-end", finish_reason="ERROR", error="overloaded")),
        lines(v1("text-generation", text="Lo"), v1("stream-end", finish_reason="ERROR", response={"text": "Lo"})),
    ],
)
def test_a_generation_that_failed_is_an_error_of_status_200(response):
    answer = PROVIDER.answer(response)
    assert (answer.error, answer.blocks[-1].text) == ("ERROR", "Lo")


def test_a_stream_that_was_cut_is_not_finished():
    answer = PROVIDER.answer(typed_stream(*LAST_STEP[:7]))
    assert (answer.finished, answer.blocks[-1].text, answer.usage.context) == (False, "Lost.", None)


def test_an_event_of_a_later_version_is_named():
    assert PROVIDER.answer(typed_stream(event("hologram-delta"))).unknown_events == ("hologram-delta",)

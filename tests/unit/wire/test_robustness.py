"""Laws of every provider: no input raises, and an answer doesn't depend on how its bytes were cut."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.wire.message import Marks
from pytest_agentlatency.wire.registry import PROVIDERS
from tests.support.wire import bedrock_stream, data_stream, post, rechunked, typed_stream

CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
TOOL_USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
STREAMS = {
    "anthropic": typed_stream(
        {"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 2}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_start", "index": 1, "content_block": TOOL_USE},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"é": 1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ),
    "openai": data_stream(
        {"choices": [{"delta": {"content": "é"}}]},
        {"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}},
    ),
    "openai-completions": data_stream({"choices": [{"text": "é"}]}, {"choices": [{"finish_reason": "stop"}]}),
    "openai-responses": typed_stream(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "name": "f"}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": {"input_tokens": 1}}},
    ),
    "gemini": Response(200, (), (b'[{"candidates": [{"content": {"parts": [{"text": "a}"}]}}]}', b',{"error": {}}]')),
    "bedrock-converse": bedrock_stream(
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"name": "f"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}),
        ("metadata", {"usage": {"inputTokens": 1}}),
    ),
    "bedrock-invoke": bedrock_stream(("chunk", {"bytes": "eyJ0eXBlIjoicGluZyJ9"}), ("chunk", {"bytes": "!"})),
    "ollama": Response(200, (), (b'{"message":{"content":"a"}}\n', b'{"done":true,"eval_count":1}\n')),
    "cohere": typed_stream(
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "é"}}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": CALL}}},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 1}}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
@given(cuts=st.lists(st.integers(0, 5_000), max_size=30))
def test_answer_does_not_depend_on_how_its_bytes_were_cut(provider, cuts):
    """But for the indices of the chunks, which keep their order."""
    whole = provider.answer(STREAMS[provider.name])
    again = provider.answer(rechunked(STREAMS[provider.name], cuts))
    assert without_indices(again) == without_indices(whole)
    marks = again.marks
    seen = [each for each in (marks.first_event, marks.first_token, marks.last_token) if each is not None]
    assert seen == sorted(seen)
    assert (marks.first_token is None) == (whole.marks.first_token is None)


def without_indices(answer):
    blocks = tuple(replace(block, first_chunk=None, last_chunk=None) for block in answer.blocks)
    return replace(answer, blocks=blocks, marks=Marks(inferred=answer.marks.inferred))


WORDS = (  # noqa: SIM905 - what providers look for, so that a few examples reach far
    "type message content text thinking signature usage input_tokens output_tokens index delta content_block id name "
    "input messages role system tools choices tool_calls function arguments output item response error code status "
    "message_start message_delta content_block_start content_block_delta content_block_stop text_delta tool_result "
    "tool_use input_json_delta signature_delta citations_delta image source base64 data document cache_control "
    "response.created response.output_item.added response.output_item.done response.output_text.delta output_index "
    "candidates parts functionCall functionResponse inlineData usageMetadata contents systemInstruction thought "
    "contentBlockDelta contentBlockStart contentBlockIndex start toolUse toolResult reasoningContent cachePoint "
    "toolConfig bytes metrics timings prompt_ms server_tool_use iterations thread previous_message_id summary "
    "reasoning function_call function_call_output call_id image_url url input_audio prompt anthropic_version stream "
    "event_type text-generation tool-calls-chunk tool-calls-generation stream-end tool_call_delta parameters meta "
    "content-delta tool-call-delta message-end tool_plan finish_reason chat_history tool_results outputs documents"
).split()
leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=4)
tree = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(WORDS), tree, max_size=8)
URLS = ("https://x/v1/messages", "/a:streamRawPredict", "/models/g:generateContent", "/model/m/converse", "", "::://?#")


@given(objects, st.sampled_from(URLS))
def test_no_object_makes_a_prompt_raise(body, url):
    for provider in PROVIDERS:
        request = post(url, body)
        provider.recognises(request)
        hash(tuple(block.raw for block in provider.prompt(request).blocks))


@given(st.lists(objects, max_size=6), st.sampled_from(["sse", "lines", "array", "whole", "binary"]))
def test_no_object_makes_an_answer_raise(values, framing):
    lines = tuple(json.dumps(value).encode() + b"\n" for value in values)
    response = {
        "sse": data_stream(*values),
        "lines": Response(200, (("content-type", "application/x-ndjson"),), lines),
        "array": Response(200, (), (json.dumps(values).encode(),)),
        "whole": Response(500, (), lines[:1]),
        "binary": bedrock_stream(*(("contentBlockDelta", value) for value in values)),
    }[framing]  # fmt: skip
    for provider in PROVIDERS:
        provider.answer(response)


@given(st.binary(), st.text(), st.lists(st.binary(max_size=20)), st.integers(0, 999))
def test_no_bytes_raise(body, url, chunks, status):
    for provider in PROVIDERS:
        request = Request("POST", url, (), body)
        provider.recognises(request)
        provider.prompt(request)
        provider.answer(Response(status, (), (body, *chunks)))


@pytest.mark.parametrize("opening", [b"[", b'{"messages":[', b'{"content":[{"content":['])
def test_nesting_beyond_any_limit_is_an_empty_prompt(opening):
    request = Request("POST", "/v1/messages", (), opening * 50_000)
    assert all(not provider.prompt(request).blocks for provider in PROVIDERS)
    for provider in PROVIDERS:
        provider.answer(Response(200, (), (request.body,)))
    deep = (
        b'{"messages":[{"role":"user","content":[{"type":"tool_result","content":' + b"[" * 400 + b"]" * 400 + b"}]}]}"
    )
    for provider in PROVIDERS:
        provider.prompt(Request("POST", "/v1/messages", (), deep))

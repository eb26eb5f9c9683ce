"""Bedrock's InvokeModel: bodies after the pages of the models in AWS's user guide, each in the envelope of a stream."""

import base64
import json

import pytest

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.anthropic import Anthropic
from pytest_agentlatency.wire.bedrock_invoke import BedrockInvoke
from tests.support.wire import binary_frame, post, whole

PROVIDER = BedrockInvoke()
URL = "https://bedrock-runtime.**.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5%3A0/"
METRICS = {
    "amazon-bedrock-invocationMetrics": {
        "inputTokenCount": 25, "outputTokenCount": 15, "invocationLatency": 900, "firstByteLatency": 400,
    }
}  # fmt: skip


def enveloped(*events):
    payloads = (
        json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode() for event in events
    )
    frames = (binary_frame({":message-type": "event", ":event-type": "chunk"}, payload) for payload in payloads)
    return Response(200, (), tuple(frames))


CLAUDE = (
    {"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 25, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Lost."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
    {"type": "message_stop", **METRICS},
)
NOVA = (
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Lo"}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "st."}}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 15, "cacheReadInputTokenCount": 22}}, **METRICS},
)
CHAT = (
    {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"content": "Lo"}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"content": "st."}, "finish_reason": "stop"}], **METRICS},
)
COMMAND = (
    {"event_type": "stream-start", "generation_id": "g", "is_finished": False},
    {"event_type": "text-generation", "text": "Lo", "is_finished": False},
    {"event_type": "text-generation", "text": "st.", "is_finished": False},
    {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"text": "Lost."}, **METRICS},
)


@pytest.mark.parametrize(
    ("events", "first", "last", "reason"),
    [
        pytest.param(CLAUDE, 2, 2, "end_turn", id="claude"),
        pytest.param(NOVA, 1, 2, "end_turn", id="nova"),
        pytest.param(CHAT, 1, 2, "stop", id="openai's chat"),
        pytest.param(COMMAND, 1, 2, "COMPLETE", id="command"),
    ],
)
def test_each_model_s_stream_is_read_as_itself(events, first, last, reason):
    """The envelope keeps its chunks; what the model's own events don't count, Bedrock does."""
    answer = PROVIDER.answer(enveloped(*events))
    assert [block.text for block in answer.blocks] == ["Lost."]
    assert (answer.marks.first_event, answer.marks.first_token, answer.marks.last_token) == (0, first, last)
    assert (answer.usage.context, answer.usage.output) == (25, 15)
    assert (answer.stop_reason, answer.streamed, answer.finished) == (reason, True, True)
    assert answer.message.blocks[0].text == "Lost."


@pytest.mark.parametrize("events", [CLAUDE, NOVA, CHAT], ids=["claude", "nova", "openai's chat"])
def test_the_server_s_own_times_come_with_the_last_event(events):
    server = PROVIDER.answer(enveloped(*events)).server
    assert (server.ttft, server.total) == (400_000_000, 900_000_000)


@pytest.mark.parametrize("events", [CLAUDE, NOVA, CHAT, COMMAND], ids=["claude", "nova", "openai's chat", "command"])
def test_an_exception_inside_a_stream_is_its_error(events):
    kinds = {":message-type": "exception", ":exception-type": "modelStreamErrorException"}
    begun = enveloped(*events[:3])
    answer = PROVIDER.answer(Response(200, (), (*begun.chunks, binary_frame(kinds, b'{"message": "x"}'))))
    assert (answer.error, answer.blocks[0].kind) == ("modelStreamErrorException", "text")


COUNTED = {"x_amzn_bedrock_input_token_count": "12", "x_amzn_bedrock_output_token_count": "3"}
MESSAGE = {"role": "assistant", "content": "Lost."}


@pytest.mark.parametrize(
    ("body", "text", "context"),
    [
        pytest.param(
            {"choices": [{"index": 0, "message": MESSAGE}], "usage": {"prompt_tokens": 25}}, "Lost.", 25, id="chat"
        ),
        pytest.param({"choices": [{"index": 0, "message": MESSAGE}]}, "Lost.", 12, id="chat without usage"),
        pytest.param({"text": "Lost.", "generation_id": "g", "finish_reason": "COMPLETE"}, "Lost.", 12, id="command"),
        pytest.param(
            {"output": {"message": {"content": [{"text": "Lost."}]}}, "usage": {"inputTokens": 25}},
            "Lost.",
            25,
            id="nova",
        ),
        pytest.param({"generation": "Lost.", "z": 1}, None, 12, id="a model that isn't known"),
    ],
)
def test_a_whole_answer_is_read_as_its_model_s_and_counted_in_headers_at_the_least(body, text, context):
    answer = PROVIDER.answer(whole(body, **COUNTED))
    assert next((block.text for block in answer.blocks), None) == text
    assert answer.usage.context == context


def test_claude_s_prompt_is_read_as_anthropic_reads_it():
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    request = post(URL + "invoke-with-response-stream", body)
    found = PROVIDER.prompt(request)
    assert PROVIDER.recognises(request)
    assert (found.model, found.streamed) == ("eu.anthropic.claude-sonnet-4-5:0", True)
    assert found.messages == Anthropic().prompt(post("/v1/messages", body)).messages


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            {
                "schemaVersion": "messages-v1",
                "system": [{"text": "S"}],
                "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
            },
            ["S", "Hi"],
            id="nova",
        ),
        pytest.param(
            {
                "messages": [
                    {"role": "system", "content": "S"},
                    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                ]
            },
            ["S", "Hi"],
            id="openai's chat",
        ),
        pytest.param({"messages": [{"role": "user", "content": "Hi"}]}, ["Hi"], id="chat in plain texts"),
        pytest.param(
            {"message": "Hi", "preamble": "S", "chat_history": [{"role": "USER", "message": "Yo"}]},
            ["S", "Yo", "Hi"],
            id="command",
        ),
        pytest.param({"prompt": "Hi", "temperature": 0}, ["Hi"], id="llama"),
        pytest.param({"inputText": "Hi"}, ["Hi"], id="titan"),
    ],
)
def test_a_prompt_is_read_in_the_model_s_own_form(body, said):
    request = post("https://x/model/openai.gpt-oss-120b-1%3A0/invoke", body)
    found = PROVIDER.prompt(request)
    assert PROVIDER.recognises(request)
    assert [block.text for block in found.blocks] == said
    assert (found.model, found.streamed) == ("openai.gpt-oss-120b-1:0", False)


def test_an_embedding_is_no_call_of_a_model_that_writes():
    assert not PROVIDER.recognises(post("https://x/model/cohere.embed-v4%3A0/invoke", {"texts": ["Hi"]}))

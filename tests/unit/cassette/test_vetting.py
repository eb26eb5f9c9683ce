"""The last look before a recording is written: a secret in what an answer says, however its pieces lie in the bytes."""

import base64
import json
import re

import pytest

from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.vetting import vet
from pytest_agentlatency.model.recording import Attempt, Recording, Request, Response
from tests.support.wire import EVENT_STREAM, bedrock_stream, binary_frame, data_stream, post, typed_stream

FIRST, SECOND = "The key is ghp_a1B2c3D4e5F6g7H8", "i9J0k1L2m3N4o5P6q7R8, keep it."
ASKED = [{"role": "user", "content": "What is the key?"}]
BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-sonnet-5"


def anthropic(*deltas: dict) -> list[dict]:
    """The deltas of a block of text, as Anthropic and Bedrock's invocation send them."""
    return [{"type": "content_block_delta", "index": 0, "delta": each} for each in deltas]


def anthropic_text(first: str, second: str) -> Response:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    texts = anthropic(*({"type": "text_delta", "text": each} for each in (first, second)))
    return typed_stream(start, *texts)


def anthropic_arguments(first: str, second: str) -> Response:
    tool = {"type": "tool_use", "id": "toolu_1", "name": "save", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": tool}
    pieces = anthropic(
        *({"type": "input_json_delta", "partial_json": each} for each in ('{"note": "' + first, second + '"}'))
    )
    return typed_stream(start, *pieces)


def chat(first: str, second: str) -> Response:
    return data_stream(*({"choices": [{"index": 0, "delta": {"content": each}}]} for each in (first, second)))


def two_choices(first: str, second: str) -> Response:
    """Two answers that come in turns, each piece between pieces of the other."""
    spoken = [(0, first), (1, "Of a key "), (0, second), (1, "I know nothing.")]
    return data_stream(*({"choices": [{"index": at, "delta": {"content": each}}]} for at, each in spoken))


def responses(first: str, second: str) -> Response:
    place = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    return typed_stream(*({**place, "delta": each} for each in (first, second)))


def converse(first: str, second: str) -> Response:
    texts = ({"contentBlockIndex": 0, "delta": {"text": each}} for each in (first, second))
    return bedrock_stream(*(("contentBlockDelta", each) for each in texts))


def converse_arguments(first: str, second: str) -> Response:
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "save"}}}
    pieces = ('{"note": "' + first, second + '"}')
    inputs = ({"contentBlockIndex": 0, "delta": {"toolUse": {"input": each}}} for each in pieces)
    return bedrock_stream(("contentBlockStart", start), *(("contentBlockDelta", each) for each in inputs))


def invoke(first: str, second: str) -> Response:
    """Each frame holds its event in base64."""
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    events = [start, *anthropic(*({"type": "text_delta", "text": each} for each in (first, second)))]
    wrapped = ({"bytes": base64.b64encode(json.dumps(each).encode()).decode(), "p": "abcd"} for each in events)
    return bedrock_stream(*(("chunk", each) for each in wrapped))


def ollama(first: str, second: str) -> Response:
    lines = ({"message": {"role": "assistant", "content": each}, "done": False} for each in (first, second))
    kind = (("content-type", "application/x-ndjson"),)
    return Response(200, kind, tuple(json.dumps(each).encode() + b"\n" for each in lines))


def line_breaks(first: str, second: str) -> Response:
    """A line separator inside of a string, which JSON allows and text readers take for the end of the line."""
    pieces = (first, f"{second}\u2028") if second else (first, second)
    values = ({"choices": [{"index": 0, "delta": {"content": each}}]} for each in pieces)
    return Response(200, EVENT_STREAM, tuple(f"data: {json.dumps(v, ensure_ascii=False)}\n\n".encode() for v in values))


def data_of_two_lines(first: str, second: str) -> Response:
    """An event whose JSON is spread over lines of data, as SSE allows."""
    values = ({"choices": [{"index": 0, "delta": {"content": each}}]} for each in (first, second))
    lines = (json.dumps(each, indent=1).replace("\n", "\ndata: ") for each in values)
    return Response(200, EVENT_STREAM, tuple(f"data: {each}\n\n".encode() for each in lines))


CHAT = "https://api.openai.com/v1/chat/completions"
SPLIT = {
    "Anthropic, text": ("https://api.anthropic.com/v1/messages", anthropic_text),
    "Anthropic, a tool's arguments": ("https://api.anthropic.com/v1/messages", anthropic_arguments),
    "OpenAI chat": (CHAT, chat),
    "OpenAI chat, two choices in turns": (CHAT, two_choices),
    "OpenAI chat, line separators": (CHAT, line_breaks),
    "OpenAI chat, data of several lines": (CHAT, data_of_two_lines),
    "OpenAI responses": ("https://api.openai.com/v1/responses", responses),
    "Bedrock converse, text": (f"{BEDROCK}/converse-stream", converse),
    "Bedrock converse, a tool's arguments": (f"{BEDROCK}/converse-stream", converse_arguments),
    "Bedrock invoke, base64": (f"{BEDROCK}/invoke-with-response-stream", invoke),
    "Ollama": ("http://127.0.0.1:11434/api/chat", ollama),
}


def recorded(url: str, response: Response) -> Document:
    request = post(url, {"model": "m", "messages": ASKED, "input": "What is the key?", "stream": True})
    return Document(Recording((Attempt(1, Request("POST", url, (), request.body), response),)))


@pytest.mark.parametrize(("url", "answer"), SPLIT.values(), ids=SPLIT)
def test_a_secret_split_over_two_pieces_of_a_stream_is_found_and_its_place_told(url, answer):
    told = vet(recorded(url, answer(FIRST, SECOND)), Learned())
    assert re.search(r"model call 1 \(exchange 1\) answer, block 1(: note)?: GitHub token", told)
    assert "ghp_" not in told
    assert SECOND[:8] not in told


@pytest.mark.parametrize(("url", "answer"), SPLIT.values(), ids=SPLIT)
def test_a_credential_that_was_sent_is_found_in_a_split_answer(url, answer):
    """A gateway's key has no shape that a rule could know."""
    told = vet(recorded(url, answer("It is our-gateway-", "9f3a7c21e5, keep it.")), Learned(["our-gateway-9f3a7c21e5"]))
    assert re.search(r"model call 1 \(exchange 1\) answer, block 1(: note)?: credential of a request", told)
    assert "9f3a7c21e5" not in told


@pytest.mark.parametrize(("url", "answer"), SPLIT.values(), ids=SPLIT)
def test_half_of_a_secret_is_none(url, answer):
    assert vet(recorded(url, answer(FIRST[:20], "")), Learned()) == ""


def test_what_stands_behind_a_broken_frame_is_searched_as_bytes():
    whole = FIRST + SECOND
    broken = binary_frame({":event-type": "contentBlockDelta"}, b"{}")[:-1] + json.dumps({"text": whole}).encode()
    told = vet(recorded(f"{BEDROCK}/converse-stream", Response(200, (), (broken,))), Learned())
    assert "model call 1 (exchange 1) response body: GitHub token" in told

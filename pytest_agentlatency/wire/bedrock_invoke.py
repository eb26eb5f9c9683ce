"""Amazon Bedrock's InvokeModel (`/model/ID/invoke`, `-with-response-stream`): the bodies of the models behind it.

Owns the envelope of a stream, the counts that Bedrock states, and which format a body has. Refuses to know the formats.
"""

import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire import anthropic, bedrock
from pytest_agentlatency.wire.cohere import Cohere
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.frames import Body, Frame, read
from pytest_agentlatency.wire.jsonedge import compact, loads, mapping, number, sequence, string
from pytest_agentlatency.wire.message import Answer, Message, Prompt
from pytest_agentlatency.wire.openai import OpenAIChat
from pytest_agentlatency.wire.openai_content import parts
from pytest_agentlatency.wire.paths import path_of

_PATH = re.compile(r"/model/(?P<model>[^/]+)/invoke(?P<stream>-with-response-stream)?$")
_TAKEN = frozenset({"prompt", "inputText"})
_ASKS = (b'"messages"', b'"message"', b'"prompt"', b'"inputText"')
_COMMAND = frozenset({"event_type", "generation_id", "response_id"})
_METRICS = "amazon-bedrock-invocationMetrics"
_LINES = (("content-type", "application/x-ndjson"),)
_CHAT, _COHERE = OpenAIChat(), Cohere()


class BedrockInvoke:
    """The `Provider` of Bedrock's InvokeModel.

    Claude, Nova, Cohere's Command, and the many that speak OpenAI's chat are read as themselves, other models by their
    text and counts.
    """

    name = "bedrock-invoke"

    def recognises(self, request: Request) -> bool:
        """Whether it invokes a model that generates text."""
        return bool(_PATH.search(path_of(request.url))) and any(key in request.body for key in _ASKS)

    def prompt(self, request: Request) -> Prompt:
        """What the body puts before the model; its model stands in the path."""
        return bedrock.with_path(_prompt(mapping(loads(request.body)), request), _PATH.search(path_of(request.url)))

    def answer(self, response: Response) -> Answer:
        """What the response says, read as the format that its first message shows."""
        body = _unwrapped(read(response))
        found = _answer(body, response)
        failed = next((frame.name for frame in body.frames if frame.failed), found.error)
        counted = found.usage.provenance is Provenance.MEASURED
        return replace(found, error=failed, usage=found.usage if counted else _counted(body, response))


def _answer(body: Body, response: Response) -> Answer:
    first = mapping(body.frames[0].value if body.frames else None)
    if string(first.get("type")):
        reading = anthropic.Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame.value, frame.chunk)
        return reading.answer(response)
    if "choices" in first:
        return _CHAT.answer(_lines(body, response))
    if _COMMAND & first.keys():
        return _COHERE.answer(_lines(body, response))
    return bedrock.answer_of(body, response)


def _prompt(body: Mapping[str, Any], request: Request) -> Prompt:
    if "anthropic_version" in body:
        return anthropic.prompt_of(body)
    if "message" in body:
        return _COHERE.prompt(request)
    if "messages" in body:
        return bedrock.prompt_of(body) if _converses(body) else _CHAT.prompt(request)
    key = "prompt" if "prompt" in body else "inputText"
    return Prompt("", messages=(Message("user", parts(body.get(key), key), key),), params=params(body, _TAKEN))


def _converses(body: Mapping[str, Any]) -> bool:
    """Whether the messages are Nova's, whose parts, unlike OpenAI's, don't name their type."""
    contents = (sequence(mapping(each).get("content")) for each in sequence(body["messages"]))
    return any("type" not in mapping(part) for content in contents for part in content)


def _unwrapped(body: Body) -> Body:
    """Take the envelope off an invocation's stream: each payload is `{"bytes": base64 of the model's own event}`."""
    return replace(body, frames=tuple(_unwrap(frame) for frame in body.frames))


def _unwrap(frame: Frame) -> Frame:
    inner = mapping(frame.value).get("bytes")
    if not isinstance(inner, str):
        return frame
    try:
        return replace(frame, value=loads(binascii.a2b_base64(inner)), name="")
    except ValueError:
        return replace(frame, value=None, name="")


def _lines(body: Body, response: Response) -> Response:
    """The response as if its events had come as lines, each in the chunk that completed it."""
    if not body.streamed:
        return response
    lines = [b""] * len(response.chunks)
    for frame in body.frames:
        lines[frame.chunk or 0] += compact(frame.value).encode() + b"\n"
    kept = tuple(field for field in response.headers if field[0].lower() != "content-type")
    return replace(response, headers=kept + _LINES, chunks=tuple(lines))


def _counted(body: Body, response: Response) -> Usage:
    """Usage of a model whose body has none that we know: Bedrock counts in headers, or in a stream's last event."""
    metrics: Mapping[str, Any] = {}
    for frame in body.frames:
        metrics = mapping(mapping(frame.value).get(_METRICS)) or metrics
    found = {
        "inputTokens": metrics.get("inputTokenCount", number(response.header("x-amzn-bedrock-input-token-count"))),
        "outputTokens": metrics.get("outputTokenCount", number(response.header("x-amzn-bedrock-output-token-count"))),
    }
    return bedrock.usage_of({key: value for key, value in found.items() if value is not None})

"""Amazon Bedrock's Converse (`/model/ID/converse`, `-stream`).

Owns its blocks, events and usage. Refuses to know the formats of the models behind it: see `bedrock_invoke`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire import bedrock_content as content
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import Body, Frame, error_of_status, read
from pytest_agentlatency.wire.jsonedge import arguments, compact, loads, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Prompt
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import Extras, collect, server_times

_CONVERSE = re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?$")
_TAKEN = frozenset({"system", "messages", "toolConfig"})
_EVENTS = frozenset(
    {"contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStart", "messageStop", "metadata"}
)


class BedrockConverse:
    """The `Provider` of Bedrock's Converse API."""

    name = "bedrock-converse"

    def recognises(self, request: Request) -> bool:
        """Whether it is a Converse call."""
        return bool(_CONVERSE.search(path_of(request.url))) and b'"messages"' in request.body

    def prompt(self, request: Request) -> Prompt:
        """Tools, system and messages of the request; a cache point marks the block before it."""
        return with_path(prompt_of(mapping(loads(request.body))), _CONVERSE.search(path_of(request.url)))

    def answer(self, response: Response) -> Answer:
        """What the response, its events or the error says."""
        return answer_of(read(response), response)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Usage in normal form: `inputTokens` leaves out what was read from or written to the cache."""
    uncached, output = tokens(usage.get("inputTokens")), tokens(usage.get("outputTokens"))
    known = uncached is not None or output is not None
    return Usage(
        uncached=uncached,
        cache_read=_count(usage, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        cache_write=_count(usage, "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        output=output,
        provenance=Provenance.MEASURED if known else Provenance.UNKNOWN,
        raw=compact(usage) if usage else "",
    )


def _count(usage: Mapping[str, Any], *names: str) -> Tokens:
    return next((found for name in names if (found := tokens(usage.get(name))) is not None), Tokens(0))


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """Prompt of a decoded request body; model and streaming stand in the path."""
    return Prompt(
        model="",
        tools=content.tools(mapping(body.get("toolConfig"))),
        system=content.blocks(body.get("system"), "system", {}),
        messages=content.messages(body.get("messages")),
        params=params(body, _TAKEN) | content.tool_params(mapping(body.get("toolConfig"))),
    )


def with_path(prompt: Prompt, path: re.Match[str] | None) -> Prompt:
    """The prompt with what the path says beside it, in its groups `model` and `stream`."""
    return replace(prompt, model=unquote(path["model"]), streamed=bool(path["stream"])) if path else prompt


def answer_of(body: Body, response: Response) -> Answer:
    """What a decoded body, whole or as events, says."""
    reading = _Reading(streamed=body.streamed)
    for frame in body.frames:
        reading.take(frame)
    return reading.answer(response)


@dataclass(slots=True)
class _Reading:
    """A Converse answer while its events are read."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    content: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    extras: Extras = field(default_factory=dict[str, Any])
    stop_reason: str = ""
    error: str = ""
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def take(self, frame: Frame) -> None:
        """Take the next event, or the whole response."""
        if self.streamed and frame.chunk is not None:
            self.draft.event(frame.chunk)
        kind, value = frame.name, mapping(frame.value)
        collect(self.extras, value)
        if not kind:  # Nova, invoked: {"contentBlockDelta": {...}}
            kind = next((key for key in value if key in _EVENTS), "")
            value = mapping(value.get(kind)) if kind else value
            collect(self.extras, value)
        self.usage.update(mapping(value.get("usage")))
        self.stop_reason = string(value.get("stopReason")) or self.stop_reason
        if frame.failed:
            self.error = frame.name
        elif self.streamed:
            self._event(kind, value)
        else:
            self._whole(value)

    def _event(self, kind: str, value: Mapping[str, Any]) -> None:
        index = compact(value.get("contentBlockIndex", 0))
        if kind == "contentBlockStart":
            self._start(index, mapping(value.get("start")))
        elif kind == "contentBlockDelta":
            self._delta(index, mapping(value.get("delta")))
        elif kind == "contentBlockStop":
            if found := self.draft.find(index):
                found.last_chunk = self.draft.chunk
        elif kind and kind not in _EVENTS:
            self.unknown[kind] = None

    def _whole(self, value: Mapping[str, Any]) -> None:
        message = mapping(mapping(value.get("output")).get("message"))
        for index, each in enumerate(sequence(message.get("content"))):
            one = content.block(mapping(each), "", {})
            kind = TOOL_JSON if one.kind == "tool_use" else one.kind
            self.content[str(index)] = dict(mapping(each))
            self.draft.grow(self.draft.block(str(index), kind, one.name, one.id), one.text)

    def _start(self, index: str, start: Mapping[str, Any]) -> None:
        tool = mapping(start.get("toolUse"))
        if tool:
            self.content[index] = {"toolUse": {**tool, "input": {}}}
            self.draft.block(index, TOOL_JSON, string(tool.get("name")), string(tool.get("toolUseId")))

    def _delta(self, index: str, delta: Mapping[str, Any]) -> None:
        thought = mapping(delta.get("reasoningContent"))
        if thought:
            self._thought(index, thought)
        elif "toolUse" in delta:
            block = self.draft.block(index, TOOL_JSON)
            self.draft.grow(block, string(mapping(delta["toolUse"]).get("input")))
        elif "text" in delta:
            self.content.setdefault(index, {"text": ""})
            self.draft.grow(self.draft.block(index, TEXT), string(delta["text"]))
        elif delta:
            self.unknown[f"contentBlockDelta/{next(iter(delta))}"] = None

    def _thought(self, index: str, thought: Mapping[str, Any]) -> None:
        block = self.draft.block(index, THINKING)
        held = self.content.setdefault(index, {"reasoningContent": {"reasoningText": {"text": ""}}})
        self.draft.grow(block, string(thought.get("text")))
        if "signature" in thought:
            held["reasoningContent"]["reasoningText"]["signature"] = string(thought["signature"])
            self.draft.hidden(block)
        if "redactedContent" in thought:
            self.draft.token(block)

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came."""
        usage = usage_of(self.usage)
        blocks = [self._final(index) for index in self.content]
        return Answer(
            usage=usage,
            blocks=self.draft.blocks(),
            stop_reason=self.stop_reason,
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=bool(self.stop_reason),
            error=self.error or _error(response),
            unknown_events=tuple(self.unknown),
            server=server_times(self.extras, self.usage, response, streamed=self.streamed),
            message=content.message("assistant", blocks, "content") if blocks else None,
        )

    def _final(self, index: str) -> Mapping[str, Any]:
        held, block = self.content[index], self.draft.find(index)
        if not self.streamed or block is None:
            return held
        if "toolUse" in held:
            return {"toolUse": {**held["toolUse"], "input": arguments(block.text)}}
        if "reasoningContent" in held:
            return {
                "reasoningContent": {"reasoningText": {**held["reasoningContent"]["reasoningText"], "text": block.text}}
            }
        return {"text": block.text}


def _error(response: Response) -> str:
    """Error type of an AWS response: its `x-amzn-errortype` header, without the namespace after the colon."""
    named = response.header("x-amzn-errortype") or ""
    return named.partition(":")[0] if error_of_status(response.status) and named else error_of_status(response.status)

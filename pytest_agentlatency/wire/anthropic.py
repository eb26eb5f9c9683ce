"""Anthropic Messages (`POST /v1/messages`), streamed or not, also on Vertex.

Owns that format's request, events, usage and errors. Refuses to know hosts, prices and what a cache would do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire import anthropic_content as content
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft, DraftBlock
from pytest_agentlatency.wire.frames import error_of_status, read
from pytest_agentlatency.wire.histories import Histories
from pytest_agentlatency.wire.jsonedge import arguments, compact, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Prompt
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import Extras, collect, server_times

_PATH = re.compile(
    r"/v1(?:beta\d*)?/messages/?$|/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamR|r)awPredict$"
)
_TAKEN = frozenset({"model", "tools", "system", "messages", "stream", "thread"})
_KINDS = {"text": TEXT, "thinking": THINKING, "redacted_thinking": THINKING, "tool_use": TOOL_JSON}
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}


class Anthropic:
    """The `Provider` of Anthropic's Messages API."""

    name = "anthropic"

    def __init__(self) -> None:
        """Know no history yet; the ones met later save time and change no result."""
        self._histories = Histories(prompt_of, content.messages)

    def recognises(self, request: Request) -> bool:
        """Whether it is a message request; token counting and batches are none."""
        return bool(_PATH.search(path_of(request.url))) and b'"messages"' in request.body

    def prompt(self, request: Request) -> Prompt:
        """Tools, system and messages of the request."""
        found = _PATH.search(path_of(request.url))
        in_path = found.group("model") if found else None
        prompt = self._histories.prompt(request.body)
        streamed = prompt.streamed or "streamRaw" in request.url
        return replace(prompt, model=prompt.model or in_path or "", streamed=streamed)

    def answer(self, response: Response) -> Answer:
        """What the message, the stream of events or the error says."""
        body = read(response)
        reading = Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame.value, frame.chunk)
        return reading.answer(response)


def prompt_of(body: Mapping[str, Any], *, model: str = "", streamed: bool = False) -> Prompt:
    """Prompt of a decoded request body; the model's name and the streaming may stand in the path instead."""
    return Prompt(
        model=string(body.get("model")) or model,
        tools=content.tools(body.get("tools")),
        system=content.blocks(body.get("system"), "system", {}),
        messages=content.messages(body.get("messages")),
        params=params(body, _TAKEN),
        streamed=body.get("stream") is True or streamed,
        previous_id=string(mapping(body.get("thread")).get("previous_message_id")),
    )


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Usage in normal form: `input_tokens` leaves out what was read from or written to the cache."""
    uncached, output = tokens(usage.get("input_tokens")), tokens(usage.get("output_tokens"))
    written = tokens(usage.get("cache_creation_input_tokens"))
    if written is None:  # some gateways pass on only the split by lifetime
        split = mapping(usage.get("cache_creation"))
        written = Tokens(sum(tokens(each) or 0 for each in split.values()))
    known = uncached is not None or output is not None
    return Usage(
        uncached=uncached,
        cache_read=tokens(usage.get("cache_read_input_tokens")) or Tokens(0),
        cache_write=written,
        output=output,
        thinking=tokens(mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
        provenance=Provenance.MEASURED if known else Provenance.UNKNOWN,
        multi_pass=_multi_pass(usage),
        raw=compact(usage) if usage else "",
    )


def _multi_pass(usage: Mapping[str, Any]) -> bool:
    server_tools = mapping(usage.get("server_tool_use")).values()
    return any(tokens(each) for each in server_tools) or len(sequence(usage.get("iterations"))) > 1


@dataclass(slots=True)
class Reading:
    """A message while its events are read; a body that is no stream is one event."""

    streamed: bool = False
    draft: Draft = field(default_factory=Draft)
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    content: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    extras: Extras = field(default_factory=dict[str, Any])
    finished: bool = False
    counted: bool = False
    """The stream has told how many tokens it generated."""
    error: str = ""
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def take(self, value: Any, chunk: int | None) -> None:
        """Take the next event, decoded, with the chunk that completed it."""
        event = mapping(value)
        if self.streamed and chunk is not None:
            self.draft.event(chunk)
        collect(self.extras, event)
        match string(event.get("type")) or ("error" if "error" in event else ""):
            case "message":
                self._start(event)
                self.finished = True
            case "message_start":
                self._start(mapping(event.get("message")))
            case "message_delta":
                self._update(mapping(event.get("delta")))
                self._use(event)
                self.counted |= tokens(mapping(event.get("usage")).get("output_tokens")) is not None
            case "message_stop":
                self.finished = True
            case "content_block_start" | "content_block_delta" | "content_block_stop" as kind:
                self._block(kind, _index(event), event)
            case "error":
                self.error = string(mapping(event.get("error")).get("type")) or "error"
            case "" | "ping":
                pass
            case unknown:
                self.unknown[unknown] = None

    def _block(self, kind: str, index: int, event: Mapping[str, Any]) -> None:
        if kind == "content_block_start":
            self._open(index, mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            self._grow(index, mapping(event.get("delta")))
        elif found := self.draft.find(index):
            found.last_chunk = self.draft.chunk

    def _start(self, message: Mapping[str, Any]) -> None:
        self._update(message)
        self._use(message)
        for index, block in enumerate(sequence(message.get("content"))):
            self._open(index, mapping(block))

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self.draft.find(index)
        kind = string(delta.get("type"))
        if block is None:
            return
        if kind in _DELTAS:
            self.draft.grow(block, string(delta.get(_DELTAS[kind])))
        elif kind == "signature_delta":
            self.content[index]["signature"] = string(delta.get("signature"))
            self.draft.hidden(block)
        elif kind == "citations_delta":
            self.content[index].setdefault("citations", []).append(delta.get("citation"))
        else:
            self.unknown[f"content_block_delta/{kind}"] = None

    def _open(self, index: int, value: Mapping[str, Any]) -> None:
        kind = string(value.get("type"))
        self.content[index] = {key: each for key, each in value.items() if each is not None}
        block = self.draft.block(index, _KINDS.get(kind, kind), string(value.get("name")), string(value.get("id")))
        if kind in {"text", "thinking", "compaction"}:
            self.draft.grow(block, string(value.get("content" if kind == "compaction" else kind)))
        elif value.get("input"):
            self.draft.grow(block, compact(value["input"]))
        elif _carries_content(kind, value):
            self.draft.token(block)
        if value.get("signature"):
            self.draft.hidden(block)

    def _update(self, fields: Mapping[str, Any]) -> None:
        self.message.update({key: value for key, value in fields.items() if value is not None})

    def _use(self, holder: Mapping[str, Any]) -> None:
        # Counts on a message_delta are cumulative: the last one stands, and a missing one keeps the earlier.
        self.usage.update({k: v for k, v in mapping(holder.get("usage")).items() if v is not None})

    def _usage(self) -> Usage:
        """What is known of it: a stream opens with the output so far, and a cut one never tells the rest."""
        found = usage_of(self.usage)
        return found if self.counted or not self.streamed else replace(found, output=None, thinking=None)

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came; the response adds its status and its headers."""
        message = self.message
        reason = mapping(mapping(message.get("diagnostics")).get("cache_miss_reason"))
        return Answer(
            id=string(message.get("id")),
            model=string(message.get("model")),
            usage=self._usage(),
            blocks=self.draft.blocks(),
            stop_reason=string(message.get("stop_reason")),
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=self.finished,
            error=self.error or error_of_status(response.status),
            unknown_events=tuple(self.unknown),
            miss_reason=string(reason.get("type")),
            server=server_times(self.extras, self.usage, response, streamed=self.streamed),
            message=content.message("assistant", self._final_content(), "content") if self.content else None,
        )

    def _final_content(self) -> list[dict[str, Any]]:
        blocks = [(self.content[index], self.draft.find(index)) for index in sorted(self.content)]
        return [_finished(value, block) if block else value for value, block in blocks]


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _carries_content(kind: str, value: Mapping[str, Any]) -> bool:
    """Whether a block's opening holds generated content that no delta will bring: results of server-side tools, ..."""
    return bool(value.get("data")) if kind == "redacted_thinking" else bool(value.get("content"))


def _finished(value: Mapping[str, Any], block: DraftBlock) -> dict[str, Any]:
    """A block as history carries it: what its deltas brought, put where its opening left a blank."""
    kind = string(value.get("type"))
    if kind in {"text", "thinking"}:
        return {**value, kind: block.text}
    if kind == "compaction":
        return {**value, "content": block.text}
    if "input" in value and not value["input"]:
        return {**value, "input": arguments(block.text)}
    return dict(value)

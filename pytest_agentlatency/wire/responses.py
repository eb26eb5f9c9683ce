"""OpenAI Responses (`POST …/responses`), streamed or not.

Owns that format's items, events, usage and errors. Refuses to know chat completions, though a tool is spelled alike.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire import responses_content as content
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import error_of_status, read
from pytest_agentlatency.wire.jsonedge import loads, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Prompt
from pytest_agentlatency.wire.openai import error_type
from pytest_agentlatency.wire.openai_content import parts, split_system, tools
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import Extras, collect, server_times
from pytest_agentlatency.wire.usage import Counts, normalise

_PATH = re.compile(r"/responses/?$")
_TAKEN = frozenset({"model", "tools", "input", "instructions", "stream", "previous_response_id"})
_ASKS = (b'"input"', b'"previous_response_id"', b'"prompt"')
_DELTAS = {
    "response.output_text.delta": TEXT,
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": THINKING,
    "response.reasoning_summary_text.delta": THINKING,
    "response.function_call_arguments.delta": TOOL_JSON,
    "response.custom_tool_call_input.delta": TOOL_JSON,
    "response.mcp_call_arguments.delta": "mcp_call",
    "response.code_interpreter_call_code.delta": "code_interpreter_call",
    "response.shell_call_command.delta": "shell_call",
}
_CALLS = frozenset({"function_call", "custom_tool_call"})
_WHOLE = frozenset({
    "response.created", "response.queued", "response.in_progress",
    "response.completed", "response.incomplete", "response.failed",
})  # fmt: skip
_SILENT = re.compile(
    r"response\.(output_item|content_part|output_text|refusal|reasoning_(text|summary_(text|part))|function_call_arguments"
    r"|custom_tool_call_input|mcp_(call|call_arguments|list_tools)|code_interpreter_call(_code)?|file_search_call"
    r"|web_search_call|image_generation_call|shell_call_(command|output_content)|audio(\.transcript)?|compaction)\."
)
"""Families of events that are known and carry no token beyond their deltas."""


class OpenAIResponses:
    """The `Provider` of OpenAI's Responses API."""

    name = "openai-responses"

    def recognises(self, request: Request) -> bool:
        """Whether it asks for a response; compaction, cancelling and token counting are other paths."""
        return bool(_PATH.search(path_of(request.url))) and any(key in request.body for key in _ASKS)

    def prompt(self, request: Request) -> Prompt:
        """Tools, instructions and input items of the request."""
        body = mapping(loads(request.body))
        system, messages = split_system(content.messages(body.get("input")))
        return Prompt(
            model=string(body.get("model")),
            tools=tools(body.get("tools")),
            system=(*parts(body.get("instructions"), "instructions"), *system),
            messages=messages,
            params=params(body, _TAKEN),
            streamed=body.get("stream") is True,
            previous_id=string(body.get("previous_response_id")),
        )

    def answer(self, response: Response) -> Answer:
        """What the response, its events or the error says."""
        body = read(response)
        reading = _Reading(streamed=body.streamed)
        for frame in body.frames:
            value = mapping(frame.value)
            if body.streamed and frame.chunk is not None:
                reading.draft.event(frame.chunk)
            reading.take(value)
        return reading.answer(response)


def usage_of(usage: Mapping[str, Any], *, multi_pass: bool = False) -> Usage:
    """Usage in normal form."""
    details = mapping(usage.get("input_tokens_details"))
    counts = Counts(
        prompt=tokens(usage.get("input_tokens")),
        completion=tokens(usage.get("output_tokens")),
        cached=tokens(details.get("cached_tokens")),
        written=tokens(details.get("cache_write_tokens")),
        reasoning=tokens(mapping(usage.get("output_tokens_details")).get("reasoning_tokens")),
        total=tokens(usage.get("total_tokens")),
        multi_pass=multi_pass,
    )
    return normalise(counts, usage)


@dataclass(slots=True)
class _Reading:
    """A response while its events are read."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    response: dict[str, Any] = field(default_factory=dict[str, Any])
    items: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    extras: Extras = field(default_factory=dict[str, Any])
    error: str = ""
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event, or the whole response."""
        collect(self.extras, event)
        kind = string(event.get("type"))
        if not kind:
            self._whole(event)
        elif kind in _WHOLE:
            self._whole(mapping(event.get("response")))
        elif kind in _DELTAS:
            self._grow(kind, event)
        elif kind in {"response.output_item.added", "response.output_item.done"}:
            self._item(event, done=kind.endswith("done"))
        elif kind == "error":
            self.error = error_type(event.get("error") or {"code": event.get("code")})
        elif not _SILENT.match(kind):
            self.unknown[kind] = None

    def _whole(self, response: Mapping[str, Any]) -> None:
        self.response.update((key, value) for key, value in response.items() if value is not None)
        if response.get("error"):
            self.error = error_type(response["error"])
        for index, item in enumerate(sequence(response.get("output"))):
            self.items[str(index)] = mapping(item)
            if not self.streamed:
                self._read_item(str(index), mapping(item))

    def _item(self, event: Mapping[str, Any], *, done: bool) -> None:
        index, item = _index(event), mapping(event.get("item"))
        kind = string(item.get("type"))
        if kind == "message":  # opens with its first text
            self.items[index] = item
            return
        block = self.draft.block(index, _kind(kind), string(item.get("name")), string(item.get("call_id")))
        if not done:
            return
        self.items[index] = item
        if kind == "reasoning":
            # Without a summary the item's opening and end are all that is seen of the reasoning.
            self.draft.hidden(block)
        elif not block.seen:
            self.draft.token(block)

    def _grow(self, event_kind: str, event: Mapping[str, Any]) -> None:
        kind = _DELTAS[event_kind]
        # A message is one item and may hold a text and a refusal; every other item is one block.
        key = (_index(event), kind) if kind in {TEXT, "refusal"} else _index(event)
        self.draft.grow(self.draft.block(key, kind), string(event.get("delta")))

    def _read_item(self, index: str, item: Mapping[str, Any]) -> None:
        for block in content.item_blocks(item, index):
            kind = TOOL_JSON if block.kind == "tool_use" else block.kind
            self.draft.grow(self.draft.block((index, kind), kind, block.name, block.id), block.text)

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came; the HTTP response adds its status and its headers."""
        whole = self.response
        usage = mapping(whole.get("usage"))
        status = string(whole.get("status"))
        reason = string(mapping(whole.get("incomplete_details")).get("reason"))
        items = [self.items[index] for index in sorted(self.items, key=lambda each: (len(each), each))]
        return Answer(
            id=string(whole.get("id")),
            model=string(whole.get("model")),
            usage=usage_of(usage, multi_pass=any(content.on_server(item) for item in items)),
            blocks=self.draft.blocks(),
            stop_reason=reason or (status if status != "in_progress" else ""),
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=status in {"completed", "incomplete", "failed"},
            error=self.error or error_of_status(response.status),
            unknown_events=tuple(self.unknown),
            server=server_times(self.extras, usage, response, streamed=self.streamed),
            message=content.answer_message(items),
        )


def _kind(item: str) -> str:
    return THINKING if item == "reasoning" else TOOL_JSON if item in _CALLS else item


def _index(event: Mapping[str, Any]) -> str:
    index = event.get("output_index")
    return str(index) if isinstance(index, int) else ""

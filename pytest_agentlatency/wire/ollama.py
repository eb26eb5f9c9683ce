"""Ollama's own format (`POST /api/chat` and `/api/generate`): newline-delimited JSON, or one object.

Owns that format's messages, counts and durations. Refuses to know its OpenAI-compatible endpoint, which is OpenAI's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.wire.content import media_head, params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import Frame, error_of_status, read
from pytest_agentlatency.wire.jsonedge import canonical, compact, loads, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Block, Message, Prompt
from pytest_agentlatency.wire.openai_content import parts, split_system, tools
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import Extras, collect, server_times
from pytest_agentlatency.wire.usage import Counts, normalise

_PATH = re.compile(r"/api/(chat|generate)/?$")
_TAKEN = frozenset({"model", "tools", "messages", "stream", "prompt", "system"})
_ASKS = (b'"messages"', b'"prompt"')
_COUNTS = ("prompt_eval_count", "eval_count")


class Ollama:
    """The `Provider` of Ollama's chat and generate endpoints."""

    name = "ollama"

    def recognises(self, request: Request) -> bool:
        """Whether it asks a model of Ollama's."""
        return bool(_PATH.search(path_of(request.url))) and any(key in request.body for key in _ASKS)

    def prompt(self, request: Request) -> Prompt:
        """Tools and messages of the request; it streams unless it says that it doesn't."""
        body = mapping(loads(request.body))
        system, messages = split_system(_messages(body.get("messages")))
        if asked := parts(body.get("prompt"), "prompt"):
            messages = (*messages, Message("user", asked, "prompt"))
        return Prompt(
            model=string(body.get("model")),
            tools=tools(body.get("tools")),
            system=(*parts(body.get("system"), "system"), *system),
            messages=messages,
            params=params(body, _TAKEN),
            streamed=body.get("stream") is not False and bool(body),
        )

    def answer(self, response: Response) -> Answer:
        """What the object, the lines or the error says."""
        body = read(response)
        reading = _Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame)
        return reading.answer(response)


@dataclass(slots=True)
class _Reading:
    """An answer while its lines are read."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    last: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extras: Extras = field(default_factory=dict[str, Any])
    calls: list[Any] = field(default_factory=list[Any])
    error: str = ""

    def take(self, frame: Frame) -> None:
        """Take the next line."""
        if self.streamed and frame.chunk is not None:
            self.draft.event(frame.chunk)
        value = mapping(frame.value)
        self.last = value or self.last
        collect(self.extras, value)
        if value.get("error"):
            self.error = "error"  # Ollama gives a sentence, no type
        message = mapping(value.get("message"))
        for kind, text in (
            (THINKING, string(message.get("thinking")) or string(value.get("thinking"))),
            (TEXT, string(message.get("content")) or string(value.get("response"))),
        ):
            if text:
                self.draft.grow(self.draft.block(kind, kind), text)
        for call in sequence(message.get("tool_calls")):
            self._call(mapping(call))

    def _call(self, call: Mapping[str, Any]) -> None:
        self.calls.append(call)
        function = mapping(call.get("function"))
        block = self.draft.block(len(self.calls), TOOL_JSON, string(function.get("name")), string(call.get("id")))
        self.draft.grow(block, compact(function.get("arguments") or {}))

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came."""
        counts = {key: self.last[key] for key in _COUNTS if key in self.last}
        done = self.last.get("done") is True
        return Answer(
            model=string(self.last.get("model")),
            # The prompt's count leaves out what was still in the slot's cache, and doesn't say how much that was.
            usage=normalise(Counts(tokens(counts.get(_COUNTS[0])), tokens(counts.get(_COUNTS[1]))), counts),
            blocks=self.draft.blocks(),
            stop_reason=string(self.last.get("done_reason")) or ("stop" if done else ""),
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=done,
            error=self.error or error_of_status(response.status),
            server=server_times(self.extras, {}, response, streamed=self.streamed),
            message=self._message(),
        )

    def _message(self) -> Message | None:
        texts = {block.kind: block.text for block in self.draft.blocks() if block.kind != TOOL_JSON}
        if not texts and not self.calls:
            return None
        entry = {"role": "assistant", "content": texts.get(TEXT, ""), "thinking": texts.get(THINKING, "")}
        return _message({**entry, "tool_calls": self.calls}, "message")


def _messages(value: Any) -> tuple[Message, ...]:
    return tuple(_message(mapping(each), f"messages[{at}]") for at, each in enumerate(sequence(value)))


def _message(entry: Mapping[str, Any], path: str) -> Message:
    role, text = string(entry.get("role")), string(entry.get("content"))
    if role == "tool":
        name, id_ = string(entry.get("tool_name")), string(entry.get("tool_call_id"))
        return Message(role, (Block("tool_result", text, f"{path}.content", canonical(entry), name, id_),), path)
    thought = string(entry.get("thinking"))
    blocks = [Block(THINKING, thought, f"{path}.thinking", canonical({"thinking": thought}))] if thought else []
    blocks += parts(text, f"{path}.content")
    for at, image in enumerate(sequence(entry.get("images"))):
        head = media_head(string(image))
        blocks.append(Block("image", "", f"{path}.images[{at}]", canonical(image), media=head))
    for at, call in enumerate(map(mapping, sequence(entry.get("tool_calls")))):
        function = mapping(call.get("function"))
        arguments, name = compact(function.get("arguments") or {}), string(function.get("name"))
        raw = canonical(function)
        blocks.append(Block("tool_use", arguments, f"{path}.tool_calls[{at}]", raw, name, string(call.get("id"))))
    return Message(role, tuple(blocks), path)

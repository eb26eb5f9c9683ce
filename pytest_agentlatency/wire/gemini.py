"""Gemini (`…/models/NAME:generateContent` and `:streamGenerateContent`), also on Vertex, as events or as a JSON array.

Owns that format's contents, parts and usage. Refuses to know hosts and cached contents, which stay on the server.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire.content import as_sent, media_head, params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import Frame, error_of_status, read
from pytest_agentlatency.wire.jsonedge import canonical, compact, loads, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Block, Message, Prompt, ToolDefinition
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import server_times
from pytest_agentlatency.wire.usage import Counts, normalise

_PATH = re.compile(
    r"/(?:models|tunedModels|endpoints)/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)$"
)
_SYSTEM = ("systemInstruction", "system_instruction")
_TAKEN = frozenset({"contents", "tools", "model", *_SYSTEM})
_MEMBERS = {
    "text": "text",
    "functionCall": "tool_use",
    "functionResponse": "tool_result",
    "inlineData": "image",
    "fileData": "document",
    "executableCode": "executableCode",
    "codeExecutionResult": "codeExecutionResult",
}


class Gemini:
    """The `Provider` of Gemini's content generation."""

    name = "gemini"

    def recognises(self, request: Request) -> bool:
        """Whether it generates content; counting tokens and embedding are other methods."""
        return bool(_PATH.search(path_of(request.url))) and b'"contents"' in request.body

    def prompt(self, request: Request) -> Prompt:
        """Tools, system instruction and contents of the request."""
        body = mapping(loads(request.body))
        found = _PATH.search(path_of(request.url))
        key = next((key for key in _SYSTEM if key in body), _SYSTEM[0])
        return Prompt(
            model=found.group("model") if found else string(body.get("model")),
            tools=_tools(body.get("tools")),
            system=_blocks(mapping(body.get(key)), key),
            messages=tuple(
                _message(mapping(each), f"contents[{index}]")
                for index, each in enumerate(sequence(body.get("contents")))
            ),
            params=params(body, _TAKEN),
            streamed=found is not None and found["method"].startswith("stream"),
        )

    def answer(self, response: Response) -> Answer:
        """What the response, its parts or the error says."""
        body = read(response)
        reading = _Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame)
        return reading.answer(response)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Usage in normal form.

    `candidatesTokenCount` leaves thoughts out; where the total only adds up without them, it holds them. Results of
    tools that ran on the server were read by the model too, beside the prompt.
    """
    prompt, output = tokens(usage.get("promptTokenCount")), tokens(usage.get("candidatesTokenCount"))
    thoughts, total = tokens(usage.get("thoughtsTokenCount")), tokens(usage.get("totalTokenCount"))
    from_tools = tokens(usage.get("toolUsePromptTokenCount")) or 0
    if output is None and prompt is not None and total is not None:
        output = tokens(total - prompt - from_tools - (thoughts or 0))  # left out when nothing but thoughts came
    inside = bool(thoughts) and total == (prompt or 0) + from_tools + (output or 0)
    counts = Counts(
        prompt=None if prompt is None else prompt + from_tools,
        completion=None if output is None else output + (0 if inside else thoughts or 0),
        reasoning=thoughts,
        cached=tokens(usage.get("cachedContentTokenCount")),
        multi_pass=from_tools > 0,
    )
    return normalise(counts, usage)


@dataclass(slots=True)
class _Reading:
    """An answer while its responses are read: each brings further parts of the first candidate."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    first: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stop_reason: str = ""
    error: str = ""

    def take(self, frame: Frame) -> None:
        """Take the next response."""
        if self.streamed and frame.chunk is not None:
            self.draft.event(frame.chunk)
        # Errors of the JSON-array form are wrapped into an array themselves, also where nothing was streamed.
        value = mapping(frame.value)
        self.usage.update(mapping(value.get("usageMetadata")))
        for key in ("responseId", "modelVersion"):
            self.first.setdefault(key, value.get(key))
        blocked = string(mapping(value.get("promptFeedback")).get("blockReason"))
        self.stop_reason = self.stop_reason or blocked
        if value.get("error"):
            error = mapping(value["error"])
            self.error = string(error.get("status")) or "error"
        for candidate in sequence(value.get("candidates"))[:1]:
            self.stop_reason = string(mapping(candidate).get("finishReason")) or self.stop_reason
            for part in sequence(mapping(mapping(candidate).get("content")).get("parts")):
                self._part(mapping(part))

    def _part(self, part: Mapping[str, Any]) -> None:
        block = _block(part, "")
        kind = TOOL_JSON if block.kind == "tool_use" else block.kind
        last = self.parts[-1] if self.parts else {}
        if kind in {TEXT, THINKING} and "text" in last and _block(last, "").kind == kind:
            last["text"] = string(last["text"]) + block.text
            last.update((key, value) for key, value in part.items() if key != "text")
        elif block.text or kind != TEXT:
            self.parts.append(dict(part))
        else:
            return
        found = self.draft.block(len(self.parts), kind, block.name, block.id)
        self.draft.grow(found, block.text)
        if kind not in {TEXT, THINKING, TOOL_JSON}:
            self.draft.token(found)

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came."""
        return Answer(
            id=string(self.first.get("responseId")),
            model=string(self.first.get("modelVersion")),
            usage=usage_of(self.usage),
            blocks=self.draft.blocks(),
            stop_reason=self.stop_reason,
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=bool(self.stop_reason),
            error=self.error or error_of_status(response.status),
            server=server_times({}, {}, response, streamed=self.streamed),
            message=_message({"role": "model", "parts": self.parts}, "content") if self.parts else None,
        )


def _tools(value: Any) -> tuple[ToolDefinition, ...]:
    """Tools of a request; Google takes one entry for a list of one, and clients send it."""
    entries = sequence(value) or [value]
    return tuple(tool for index, each in enumerate(entries) for tool in _declared(mapping(each), f"tools[{index}]"))


def _declared(value: Mapping[str, Any], path: str) -> tuple[ToolDefinition, ...]:
    """Functions of one entry, and the server-side tools it switches on."""
    found: list[ToolDefinition] = []
    for key, each in value.items():
        if key in {"functionDeclarations", "function_declarations"}:
            found.extend(
                ToolDefinition(
                    string(mapping(one).get("name")), canonical(one), f"{path}.{key}[{at}]", as_sent(mapping(one))
                )
                for at, one in enumerate(sequence(each))
            )
        else:
            found.append(ToolDefinition(key, canonical({key: each}), f"{path}.{key}", as_sent({key: each})))
    return tuple(found)


def _message(value: Mapping[str, Any], path: str) -> Message:
    role = string(value.get("role")) or "user"
    return Message("assistant" if role == "model" else role, _blocks(value, path), path)


def _blocks(content: Mapping[str, Any], path: str) -> tuple[Block, ...]:
    return tuple(_block(mapping(each), f"{path}.parts[{at}]") for at, each in enumerate(sequence(content.get("parts"))))


def _block(value: Mapping[str, Any], path: str) -> Block:
    """One part: an object with one telling member, beside `thought` and `thoughtSignature`."""
    member = next((key for key in value if key in _MEMBERS), "")
    inside = mapping(value.get(member))
    kind = _MEMBERS.get(member, member or "part")
    raw = canonical(value)
    text = raw
    if member == "text":
        kind, text = (THINKING if value.get("thought") is True else TEXT), string(value["text"])
    elif member in {"functionCall", "functionResponse"}:
        text = compact(inside.get("args" if member == "functionCall" else "response") or {})
    elif member in {"inlineData", "fileData"}:
        text = ""
    return Block(
        kind=kind,
        text=text,
        path=path,
        raw=raw,
        name=string(inside.get("name")),
        id=string(inside.get("id")),
        media=media_head(string(inside.get("data"))) if member == "inlineData" else b"",
    )

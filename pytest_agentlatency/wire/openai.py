"""OpenAI chat completions (`POST …/chat/completions`) and the many hosts that speak them, streamed or not.

Mistral's agents and Mistral on Vertex speak them under another path.

Owns that format's request, chunks, usage and errors. Refuses to know hosts; what hosts add is read where it stands.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire import openai_content as content
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import Frame, error_of_status, read
from pytest_agentlatency.wire.histories import Histories
from pytest_agentlatency.wire.jsonedge import compact, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Message, Prompt
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import Extras, collect, server_times
from pytest_agentlatency.wire.usage import Counts, normalise

_PATH = re.compile(r"/(chat|agents)/completions/?$|/publishers/mistralai/models/[^/:]+:(streamR|r)awPredict$")
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")  # Azure
_TAKEN = frozenset({"model", "tools", "messages", "stream"})
_REASONING = "reasoning_tokens"


class OpenAIChat:
    """The `Provider` of OpenAI's chat completions."""

    name = "openai"

    def __init__(self) -> None:
        """Know no history yet; the ones met later save time and change no result."""
        self._histories = Histories(_prompt_of, content.messages)

    def recognises(self, request: Request) -> bool:
        """Whether it is a chat completion."""
        return bool(_PATH.search(path_of(request.url))) and b'"messages"' in request.body

    def prompt(self, request: Request) -> Prompt:
        """Tools and messages of the request; the system messages at its head are the system prompt."""
        prompt = self._histories.prompt(request.body)
        deployment = _DEPLOYMENT.search(path_of(request.url))
        model = prompt.model or (deployment.group(1) if deployment else "")
        system, messages = content.split_system(prompt.messages)
        return replace(prompt, model=model, system=system, messages=messages)

    def answer(self, response: Response) -> Answer:
        """What the completion, its chunks or the error says."""
        body = read(response)
        reading = _Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame)
        return reading.answer(response)


def _prompt_of(body: Mapping[str, Any]) -> Prompt:
    """Prompt of a decoded body, its system messages still among the others."""
    return Prompt(
        model=string(body.get("model")),
        tools=content.tools(body.get("tools")),
        messages=content.messages(body.get("messages")),
        params=params(body, _TAKEN),
        streamed=body.get("stream") is True,
    )


def usage_of(usage: Mapping[str, Any], timings: Mapping[str, Any] | None = None) -> Usage:
    """Usage in normal form.

    DeepSeek, Moonshot, Together, Databricks and llama.cpp count cached tokens elsewhere than OpenAI, and Perplexity
    reasoning.
    """
    details = mapping(usage.get("prompt_tokens_details"))
    cached = (
        details.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cached_tokens"),
        usage.get("cache_read_input_tokens"),
        mapping(timings).get("cache_n"),
    )
    written = (details.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    counts = Counts(
        prompt=tokens(usage.get("prompt_tokens")),
        completion=tokens(usage.get("completion_tokens")),
        cached=_first(cached),
        written=_first(written),
        reasoning=_first((mapping(usage.get("completion_tokens_details")).get(_REASONING), usage.get(_REASONING))),
        total=tokens(usage.get("total_tokens")),
        multi_pass=any(tokens(each) for each in mapping(usage.get("server_tool_use")).values()),
    )
    return normalise(counts, usage)


def _first(values: Sequence[Any]) -> int | None:
    return next((found for each in values if (found := tokens(each)) is not None), None)


@dataclass(slots=True)
class _Reading:
    """A completion while its chunks are read; a body that is no stream is one chunk, with a `message` for its delta."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    id: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    extras: Extras = field(default_factory=dict[str, Any])
    done: bool = False
    error: str = ""
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def take(self, frame: Frame) -> None:
        """Take the next chunk."""
        if self.streamed and frame.chunk is not None:
            self.draft.event(frame.chunk)
        self.done = self.done or frame.done
        value = mapping(frame.value)
        collect(self.extras, value)
        self.id = self.id or string(value.get("id"))
        self.model = self.model or string(value.get("model"))
        for usage in _usages(value):  # cumulative where it comes more than once: the last one stands
            self.usage.update((key, each) for key, each in usage.items() if each is not None)
        if value.get("error"):
            self.error = error_type(value["error"])
        if value and not value.keys() & {"choices", "usage", "error"}:
            self.unknown[string(value.get("object")) or frame.name or "?"] = None
        for choice in sequence(value.get("choices")):
            self._choice(mapping(choice))

    def _choice(self, choice: Mapping[str, Any]) -> None:
        index = compact(choice.get("index", 0))
        self.stop_reason = self.stop_reason or string(choice.get("finish_reason"))
        # Text completions carry the text in the choice itself.
        delta = mapping(choice.get("delta") or choice.get("message") or {"content": choice.get("text")})
        for kind, text in _texts(delta):
            self.draft.grow(self.draft.block((index, kind), kind), text)
        for position, call in enumerate(_calls(delta)):
            function = mapping(call.get("function"))
            key = (index, TOOL_JSON, compact(call.get("index", position)))
            block = self.draft.block(key, TOOL_JSON, string(function.get("name")), string(call.get("id")))
            self.draft.grow(block, string(function.get("arguments")))

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came."""
        return Answer(
            id=self.id,
            model=self.model,
            usage=usage_of(self.usage, mapping(self.extras.get("timings"))),
            blocks=self.draft.blocks(),
            stop_reason=self.stop_reason,
            marks=self.draft.marks(),
            streamed=self.streamed,
            # Several hosts send no [DONE]; a stated reason to stop is their end.
            finished=self.done or bool(self.stop_reason),
            error=self.error or error_of_status(response.status),
            unknown_events=tuple(self.unknown),
            server=server_times(self.extras, self.usage, response, streamed=self.streamed),
            message=self._message(),
        )

    def _message(self) -> Message | None:
        """The first choice as history carries it."""
        first = [each for key, each in self.draft.items() if isinstance(key, tuple) and key[0] == "0"]
        texts = {each.kind: each.text for each in first if each.kind != TOOL_JSON}
        calls = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.text}}
            for each in first
            if each.kind == TOOL_JSON
        ]
        if not first:
            return None
        entry = {"role": "assistant", "content": texts.get(TEXT), "reasoning_content": texts.get(THINKING)}
        return content.message({**entry, "tool_calls": calls}, "message")


def error_type(error: Any) -> str:
    """Type of an error as OpenAI-like hosts state it: its `type`, its `code`, or that there was one."""
    found = mapping(error)
    code = found.get("code")
    return string(found.get("type")) or (str(code) if isinstance(code, str | int) and code else "") or "error"


def _usages(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Where hosts put usage: at the top, under `x_groq` (Groq), or inside a choice (Moonshot)."""
    yield mapping(mapping(value.get("x_groq")).get("usage"))
    for choice in sequence(value.get("choices")):
        yield mapping(mapping(choice).get("usage"))
    yield mapping(value.get("usage"))


def _texts(delta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Generated text of a delta with its block's kind; role preludes and empty strings give none."""
    yield from ((THINKING, text) for text in content.reasoning(delta))
    said = delta.get("content")
    if isinstance(said, str) and said:
        yield TEXT, said
    for part in sequence(said):
        block = content.part(mapping(part), "")
        if block.text:
            yield (block.kind if block.kind == THINKING else TEXT), block.text
    if refusal := string(delta.get("refusal")):
        yield "refusal", refusal


def _calls(delta: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from map(mapping, sequence(delta.get("tool_calls")))
    if legacy := mapping(delta.get("function_call")):
        yield {"index": "legacy", "function": legacy}

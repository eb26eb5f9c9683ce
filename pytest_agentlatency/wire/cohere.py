"""Cohere's chat (`POST /v1/chat` and `/v2/chat`): lines (version 1), server-sent events, or one object.

Owns both versions' messages, documents, events and usage. Refuses to know Cohere's OpenAI-compatible endpoint, which is
OpenAI's, and its embeddings.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire import openai_content as content
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.draft import TEXT, THINKING, TOOL_JSON, Draft
from pytest_agentlatency.wire.frames import Frame, error_of_status, read
from pytest_agentlatency.wire.jsonedge import canonical, compact, loads, mapping, sequence, string, tokens
from pytest_agentlatency.wire.message import Answer, Block, Message, Prompt
from pytest_agentlatency.wire.paths import path_of
from pytest_agentlatency.wire.servertimes import server_times
from pytest_agentlatency.wire.usage import Counts, normalise

_PATH = re.compile(r"/v[12]/chat/?$")
# Anybody's service may have such a path and take a `message`; the few chats with a model left to default aren't told
# apart from those.
_ASKS, _BESIDE = (b'"messages"', b'"message"'), (b'"model"', b'"chat_history"')
_TAKEN = frozenset(
    {"model", "tools", "messages", "message", "chat_history", "tool_results", "preamble", "documents", "stream"}
)
_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system", "TOOL": "tool"}
_EVENTS = frozenset({
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "stream-start",
    "search-queries-generation", "search-results", "text-generation", "citation-generation", "tool-calls-chunk",
    "tool-calls-generation", "stream-end", "debug",
})  # fmt: skip
_USAGE = ("billed_units", "tokens", "cached_tokens")
_FAILED = frozenset({"ERROR", "ERROR_TOXIC", "TIMEOUT"})
_PLAN = "plan"


class Cohere:
    """The `Provider` of Cohere's chat."""

    name = "cohere"

    def recognises(self, request: Request) -> bool:
        """Whether it is a chat of either version."""
        asks = any(key in request.body for key in _ASKS) and any(key in request.body for key in _BESIDE)
        return asks and bool(_PATH.search(path_of(request.url)))

    def prompt(self, request: Request) -> Prompt:
        """Tools, messages and documents of the request; the system messages at its head are the system prompt."""
        body = mapping(loads(request.body))
        found = _messages(body["messages"]) if "messages" in body else tuple(_turns(body))
        system, messages = content.split_system(found)
        return Prompt(
            model=string(body.get("model")),
            tools=content.tools(body.get("tools")),
            system=(*content.parts(body.get("preamble"), "preamble"), *system),
            messages=(*messages, *_documents(body.get("documents"))),
            params=params(body, _TAKEN),
            streamed=body.get("stream") is True,
        )

    def answer(self, response: Response) -> Answer:
        """What the object, the events or the error says."""
        body = read(response)
        reading = _Reading(streamed=body.streamed)
        for frame in body.frames:
            reading.take(frame)
        return reading.answer(response)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Usage in normal form, of version 2's `usage` or version 1's `meta`.

    `billed_units` leaves out what Cohere puts around a prompt, which the model reads too: the context is `tokens`, or
    unknown. Source: docs.cohere.com/docs/how-does-cohere-pricing-work. `cached_tokens` are part of it.
    """
    counted, billed = mapping(usage.get("tokens")), mapping(usage.get("billed_units"))
    counts = Counts(
        prompt=tokens(counted.get("input_tokens")),
        completion=tokens(counted.get("output_tokens")),
        cached=tokens(usage.get("cached_tokens")),
        multi_pass=bool(tokens(billed.get("search_units"))),
    )
    return normalise(counts, usage)


@dataclass(slots=True)
class _Reading:
    """An answer while its events are read; a body that is no stream is one event that holds everything."""

    streamed: bool
    draft: Draft = field(default_factory=Draft)
    id: str = ""
    first_version: bool = False
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    stop_reason: str = ""
    error: str = ""
    unknown: dict[str, None] = field(default_factory=dict[str, None])

    def take(self, frame: Frame) -> None:
        """Take the next event, or the whole answer."""
        if self.streamed and frame.chunk is not None:
            self.draft.event(frame.chunk)
        value = mapping(frame.value)
        delta, response = mapping(value.get("delta")), mapping(value.get("response"))
        self.id = self.id or string(value.get("id")) or string(value.get("generation_id"))
        for holder in (value, delta, response):
            self._end(holder)
        kind = string(value.get("event_type")) or string(value.get("type"))
        if kind and kind not in _EVENTS:
            self.unknown[kind] = None
        elif "event_type" in value or "text" in value:
            self.first_version = True
            self._first_version(kind, value, response or value)
        else:
            self._message(mapping(value.get("message")), None)
            self._message(mapping(delta.get("message")), compact(value.get("index", 0)))

    def _end(self, holder: Mapping[str, Any]) -> None:
        """Take what only the end of an answer has."""
        self.stop_reason = string(holder.get("finish_reason")) or self.stop_reason
        for counts in (mapping(holder.get("meta")), mapping(holder.get("usage"))):
            self.usage.update((key, counts[key]) for key in _USAGE if counts.get(key) is not None)
        if holder.get("error") or self.stop_reason in _FAILED:
            self.error = self.stop_reason or "error"

    def _message(self, message: Mapping[str, Any], index: str | None) -> None:
        """Take a message, or a part of one; the part stands at the index of its event."""
        self._say(_PLAN, TEXT, message.get("tool_plan"))
        for at, part in enumerate(_listed(message.get("content"))):
            kind = THINKING if part.get("type") == THINKING or part.get(THINKING) else TEXT
            block = self.draft.block((kind, index or str(at)), kind)
            self.draft.grow(block, string(part.get(kind)))
        for at, call in enumerate(_listed(message.get("tool_calls"))):
            function, key = mapping(call.get("function")), (TOOL_JSON, index or str(at))
            block = self.draft.block(key, TOOL_JSON, string(function.get("name")), string(call.get("id")))
            self.draft.grow(block, string(function.get("arguments")))

    def _first_version(self, kind: str, event: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        """Take an event of version 1; the text and the calls that its end repeats count where no event brought them."""
        call = mapping(event.get("tool_call_delta"))
        if kind in {"text-generation", "tool-calls-chunk"}:
            self._say(TEXT, TEXT, event.get("text") or call.get("text"))
        elif not self.draft.find(TEXT):
            self._say(TEXT, TEXT, whole.get("text"))
        if call.get("name") or call.get("parameters"):
            key = (TOOL_JSON, compact(call.get("index", 0)))
            self.draft.grow(self.draft.block(key, TOOL_JSON, string(call.get("name"))), string(call.get("parameters")))
        for at, each in enumerate(map(mapping, sequence(whole.get("tool_calls")))):
            if not self.draft.find((TOOL_JSON, str(at))):
                block = self.draft.block((TOOL_JSON, str(at)), TOOL_JSON, string(each.get("name")))
                self.draft.grow(block, compact(each.get("parameters") or {}))

    def _say(self, key: str, kind: str, text: Any) -> None:
        if string(text):
            self.draft.grow(self.draft.block(key, kind), string(text))

    def answer(self, response: Response) -> Answer:
        """Return the answer as far as it came; the response adds its status and its headers."""
        return Answer(
            id=self.id,
            usage=usage_of(self.usage),
            blocks=self.draft.blocks(),
            stop_reason=self.stop_reason,
            marks=self.draft.marks(),
            streamed=self.streamed,
            finished=bool(self.stop_reason),
            error=self.error or error_of_status(response.status),
            unknown_events=tuple(self.unknown),
            server=server_times({}, {}, response, streamed=self.streamed),
            message=self._history() if self.draft.blocks() else None,
        )

    def _history(self) -> Message:
        """The answer as the next request of its version carries it."""
        plan = self.draft.find(_PLAN)
        blocks = [each for key, each in self.draft.items() if key != _PLAN]
        said = [{"type": each.kind, each.kind: each.text} for each in blocks if each.kind != TOOL_JSON]
        calls = [each for each in blocks if each.kind == TOOL_JSON]
        if self.first_version:
            asked = [{"name": each.name, "parameters": loads(each.text)} for each in calls]
            text = "".join(each.get(TEXT, "") for each in said)
            return _turn({"role": "CHATBOT", "message": text, "tool_calls": asked}, "")
        functions = [{"id": each.id, "function": {"name": each.name, "arguments": each.text}} for each in calls]
        entry = {"role": "assistant", "content": said, "tool_calls": functions, "tool_plan": plan.text if plan else ""}
        return _planned(content.message(entry, "message"), entry)


def _listed(value: Any) -> Iterator[Mapping[str, Any]]:
    """Members of a list; an event of a stream has one of them in its place."""
    yield from map(mapping, sequence(value) or ([value] if value else []))


def _messages(value: Any) -> tuple[Message, ...]:
    """Messages of version 2, which are OpenAI's but for the plan."""
    found = content.messages(value)
    return tuple(_planned(one, mapping(entry)) for one, entry in zip(found, sequence(value), strict=True))


def _planned(message: Message, entry: Mapping[str, Any]) -> Message:
    """The message with the plan that its model wrote before the calls, as text: version 1 has it in its text."""
    plan = {"type": TEXT, TEXT: string(entry.get("tool_plan"))}
    if not plan[TEXT]:
        return message
    return replace(message, blocks=(content.part(plan, f"{message.path}.tool_plan"), *message.blocks))


def _turns(body: Mapping[str, Any]) -> Iterator[Message]:
    """Messages of version 1: the history, then what the request adds to it."""
    for at, each in enumerate(sequence(body.get("chat_history"))):
        yield _turn(mapping(each), f"chat_history[{at}]")
    for key, role in (("message", "USER"), ("tool_results", "TOOL")):
        if body.get(key):
            yield _turn({"role": role, key: body[key]}, "")


def _turn(entry: Mapping[str, Any], path: str) -> Message:
    role, within = string(entry.get("role")), f"{path}." if path else ""
    calls, results = sequence(entry.get("tool_calls")), sequence(entry.get("tool_results"))
    blocks = (
        *content.parts(entry.get("message"), f"{within}message"),
        *(_call(mapping(each), f"{within}tool_calls[{at}]") for at, each in enumerate(calls)),
        *(_result(mapping(each), f"{within}tool_results[{at}]") for at, each in enumerate(results)),
    )
    return Message(_ROLES.get(role, role.lower()), blocks, path or "message")


def _call(value: Mapping[str, Any], path: str) -> Block:
    name, given = string(value.get("name")), mapping(value.get("parameters"))
    return Block("tool_use", compact(given), path, canonical({"name": name, "parameters": given}), name)


def _result(value: Mapping[str, Any], path: str) -> Block:
    name = string(mapping(value.get("call")).get("name"))
    return Block("tool_result", compact(value.get("outputs") or []), path, canonical(value), name)


def _documents(value: Any) -> Iterator[Message]:
    """The documents that an answer shall rest on: behind the conversation, where Command R's template puts them."""
    blocks = tuple(
        Block("document", string(each) or compact(each), f"documents[{at}]", canonical(each))
        for at, each in enumerate(sequence(value))
    )
    if blocks:
        yield Message("document", blocks, "documents")

"""Anthropic request bodies of an exact size in tokens, by the rule of `testing.prompts`.

Owns filling. Refuses to know time and answers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.testing.costs import BYTES_PER_TOKEN
from pytest_agentlatency.testing.prompts import messages_blocks

Messages = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """What every request of a lane begins with."""

    model: str
    system: str
    tools: tuple[str, ...]

    def body(self, messages: Messages, *, streamed: bool) -> dict[str, Any]:
        """The whole request body."""
        tools = [
            {"name": name, "description": f"Tool {name}.", "input_schema": {"type": "object"}} for name in self.tools
        ]
        body: dict[str, Any] = {"model": self.model, "max_tokens": 4096, "system": self.system, "messages": messages}
        return body | ({"tools": tools} if tools else {}) | ({"stream": True} if streamed else {})


def filler(tokens: int, seed: str) -> str:
    """Text of exactly so many tokens, the same for the same seed."""
    size = BYTES_PER_TOKEN * tokens
    line = f"{seed}: the parcel is on its way. "
    return (line * (size // len(line) + 1))[:size]


def count(body: Mapping[str, Any]) -> int:
    """Tokens of a request body."""
    return sum(block.tokens for block in messages_blocks(body))


def opening(head: Head, context: int, seed: str) -> Messages:
    """One user message that makes the request so many tokens long. ValueError when the head alone is as long."""
    rest = context - count(head.body((), streamed=False))
    if rest < 1:
        msg = f"context {context!r} has no room: tools and system take {context - rest} tokens, a message at least 1"
        raise ValueError(msg)
    return (_user([_text(filler(rest, seed))]),)


def following(head: Head, history: Messages, answer: Sequence[Mapping[str, Any]], context: int, seed: str) -> Messages:
    """The history with an answer and what follows it, results of its tool calls or a user's text, to so many tokens.

    A context too small for that is what compaction makes: the history becomes one message.
    """
    said = (*history, {"role": "assistant", "content": list(answer)}) if answer else history
    rest = context - count(head.body(said, streamed=False))
    if rest < 1:
        return opening(head, context, f"summary {seed}")
    calls = [block["id"] for block in answer if block["type"] == "tool_use"]
    return (*said, _user(_results(calls, rest, seed) if calls else [_text(filler(rest, seed))]))


def _results(calls: Sequence[str], tokens: int, seed: str) -> list[dict[str, Any]]:
    share, left = divmod(tokens, len(calls))
    sizes = [share] * (len(calls) - 1) + [share + left]
    return [
        {"type": "tool_result", "tool_use_id": call, "content": filler(size, f"result {seed}.{number}")}
        for number, (call, size) in enumerate(zip(calls, sizes, strict=True), 1)
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _user(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def encoded(body: Mapping[str, Any]) -> bytes:
    """The body as an SDK sends it: compact JSON, characters beyond ASCII as they are."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()

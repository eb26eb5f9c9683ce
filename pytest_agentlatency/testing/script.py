"""What the simulated model says: replies, and which of them answers which request.

Owns the reply in provider-neutral form. Refuses to know how it travels and how long it takes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

from pytest_agentlatency.testing.costs import count_tokens, split_tokens


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of a reply."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def json(self) -> str:
        """The arguments as compact JSON, keys in the given order."""
        return json.dumps(self.input, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ReplyBlock:
    """One block of a reply: what is generated, and its tokens."""

    kind: Literal["thinking", "text", "tool"]
    text: str
    """Thinking, text, or the arguments' JSON."""
    name: str = ""

    @property
    def name_tokens(self) -> int:
        """A tool's name is one token, generated before its arguments."""
        return 1 if self.kind == "tool" else 0

    @property
    def tokens(self) -> int:
        """Output tokens: UTF-8 bytes / 4 rounded up, and one for a tool's name."""
        return self.name_tokens + count_tokens(self.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model: thinking, then text, then tool calls. `Reply()` is an empty answer."""

    text: str = ""
    thinking: str = ""
    tool_calls: Sequence[ToolUse] = ()
    stop_reason: str = ""
    """By default `tool_use` with tool calls and `end_turn` without."""
    hide_thinking: bool = False
    """Thinking takes its time and is counted, but no thinking text is sent."""

    @property
    def blocks(self) -> tuple[ReplyBlock, ...]:
        """The blocks that are generated, in order."""
        spoken = (ReplyBlock("thinking", self.thinking), ReplyBlock("text", self.text))
        calls = tuple(ReplyBlock("tool", call.json, call.name) for call in self.tool_calls)
        return tuple(block for block in spoken if block.text) + calls

    @property
    def output_tokens(self) -> int:
        """Generated tokens, thinking included."""
        return sum(block.tokens for block in self.blocks)

    @property
    def stop(self) -> str:
        """Why the answer ends."""
        return self.stop_reason or ("tool_use" if self.tool_calls else "end_turn")

    def limited(self, tokens: int | None) -> "Reply":
        """The reply with its text cut to what fits in so many output tokens; a tool call is never cut."""
        rest = 0 if tokens is None else tokens - count_tokens(self.thinking)
        if tokens is None or self.tool_calls or self.output_tokens <= tokens:
            return self
        text = "".join(piece for piece, _ in split_tokens(self.text, 1)[: max(0, rest)])
        return replace(self, text=text, stop_reason="max_tokens")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a script sees it, whatever the provider's format."""

    number: int
    """Of the HTTP request, from 1: `SimulatedModel.requests[number - 1]`."""
    body: Mapping[str, Any]
    """The JSON body as it came."""
    messages: Sequence[Mapping[str, Any]]
    """The whole history, also when the server holds a part of it."""
    system: str = ""
    tools: Sequence[str] = ()
    """Names of the tools offered."""
    model: str = ""

    @property
    def turn(self) -> int:
        """1 + the number of assistant messages in the history."""
        return 1 + len([message for message in self.messages if message.get("role") == "assistant"])

    @property
    def last(self) -> str:
        """The last message as JSON: enough to look for a word in it."""
        return json.dumps(self.messages[-1], ensure_ascii=False) if self.messages else ""


Script = Reply | Sequence[Reply] | Callable[[Asked], Reply]
"""One reply for every request, one reply after the other in the order of arrival, or a function of the request."""


class ScriptError(Exception):
    """The script has no reply for a request."""


class Prompter:
    """Gives the script's reply to each request."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._given = 0

    def reply(self, asked: Asked) -> Reply:
        """The reply to a request. ScriptError when a sequence is used up."""
        if isinstance(self._script, Reply):
            return self._script
        if callable(self._script):
            return self._script(asked)
        if self._given >= len(self._script):
            msg = (
                f"request {asked.number} finds no reply: the script holds {len(self._script)} and all were given; "
                "add a reply, or pass a function of the request"
            )
            raise ScriptError(msg)
        self._given += 1
        return self._script[self._given - 1]


def by_turn(replies: Sequence[Reply]) -> Callable[[Asked], Reply]:
    """A script that answers turn n of any conversation with reply n, however often and in whatever order it is asked.

    Unlike a plain sequence it survives a second run of the agent and several lanes. ScriptError past the last reply.
    """

    def reply(asked: Asked) -> Reply:
        if asked.turn > len(replies):
            msg = f"request {asked.number} is turn {asked.turn} of its conversation; the script ends at {len(replies)}"
            raise ScriptError(msg)
        return replies[asked.turn - 1]

    return reply


def by_lane(lanes: Mapping[str, Sequence[Reply]]) -> Callable[[Asked], Reply]:
    """A script of several conversations, told apart by a piece of their system prompt; each goes by its own turns.

    ScriptError when no key occurs in the request's system prompt.
    """
    scripts = {mark: by_turn(replies) for mark, replies in lanes.items()}

    def reply(asked: Asked) -> Reply:
        script = next((script for mark, script in scripts.items() if mark in asked.system), None)
        if script is None:
            msg = f"request {asked.number} has none of {sorted(scripts)} in its system prompt {asked.system[:60]!r}"
            raise ScriptError(msg)
        return script(asked)

    return reply


@dataclass(frozen=True, slots=True)
class Piece:
    """A bit of a block that is sent in one event."""

    text: str
    upto: int
    """Output tokens generated when it is complete, over the whole reply."""


def pieces(reply: Reply, tokens_per_event: int) -> list[tuple[ReplyBlock, int, list[Piece]]]:
    """Each block with the tokens generated before its text begins (its name included), and its text in pieces.

    The reply's very first piece is one token, so that it is out when prefill ends, whatever the size of the others.
    """
    before = accumulate((block.tokens for block in reply.blocks), initial=0)
    return [
        (block, start + block.name_tokens, _cut(block.text, start + block.name_tokens, tokens_per_event))
        for block, start in zip(reply.blocks, before, strict=False)
    ]


def _cut(text: str, start: int, tokens_per_event: int) -> list[Piece]:
    parts = split_tokens(text, tokens_per_event, first=None if start else 1)
    ends = accumulate((tokens for _, tokens in parts), initial=start)
    next(ends)
    return [Piece(text, end) for (text, _), end in zip(parts, ends, strict=True)]

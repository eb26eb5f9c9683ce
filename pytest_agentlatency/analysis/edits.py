"""Prompts as they would be if the agent kept less in its context: trimmed, summarised, without what nobody uses.

Owns edits of prompts, each a function from the prompts of one lane to others. Refuses to know tokens of a provider,
time, and whether the model would still answer as it did.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.wire.jsonedge import loads, mapping, sequence
from pytest_agentlatency.wire.message import Block, Message, Prompt

Edit = Callable[[Sequence[Prompt]], Sequence[Prompt]]
"""From the prompts of one lane, in order, to the same number of others."""

_LONG, _MANY = 80, 5  # characters of a text, entries of a list, up to which a field counts as key


def trimmed(tokens: int, counter: Counter) -> Edit:
    """Every tool result cut to its first tokens."""

    def cut(text: str) -> str:
        size = counter.count(text)
        return text if size <= tokens else text[: len(text) * tokens // size]

    return _results(cut)


def key_fields() -> Edit:
    """Every tool result that is JSON without empty fields, with texts cut to 80 characters and lists to 5 entries."""
    return _results(_key_fields)


def _results(change: Callable[[str], str]) -> Edit:
    def edit(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [
            replace(prompt, messages=tuple(_message(message, change) for message in prompt.messages))
            for prompt in prompts
        ]

    return edit


def _message(message: Message, change: Callable[[str], str]) -> Message:
    blocks = tuple(
        _with_text(block, change(block.text)) if _is_result(block, message) else block for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _is_result(block: Block, message: Message) -> bool:
    return block.kind == "tool_result" or (message.role == "tool" and block.kind == "text")


def _with_text(block: Block, text: str) -> Block:
    if text == block.text:
        return block
    raw = json.dumps({"content": text, "type": block.kind}, ensure_ascii=False)
    return replace(block, text=text, raw=raw, wire=raw)


def _key_fields(text: str) -> str:
    value = loads(text)
    if not isinstance(value, dict | list):
        return text
    short = json.dumps(_shortened(value), ensure_ascii=False, separators=(",", ":"))
    return short if len(short) < len(text) else text


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _shortened(each) for key, each in mapping(value).items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [_shortened(each) for each in sequence(value)[:_MANY]]
    return value[:_LONG] if isinstance(value, str) else value


def summarised(after: int, tokens: int) -> Edit:
    """From the turn behind `after` on, what the history held at that turn is one summary of about so many tokens.

    The first message stays. A lane whose later requests don't begin with that history is left alone.
    """

    def edit(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        if len(prompts) <= after:
            return prompts
        old = prompts[after - 1].messages
        summary = _summary(old[1:], tokens)
        return [
            _folded(prompt, old, summary) if turn > after and len(old) > 1 else prompt
            for turn, prompt in enumerate(prompts, 1)
        ]

    return edit


def _summary(messages: Iterable[Message], tokens: int) -> Message:
    """A message about as long as the summary would be, in the history's own words."""
    words = " ".join(block.text for message in messages for block in message.blocks)
    text = "Summary: " + words[: 4 * tokens]
    raw = json.dumps({"text": text, "type": "text"}, ensure_ascii=False)
    path = "messages[1]"
    return Message("user", (Block("text", text, f"{path}.content[0]", raw),), path)


def _folded(prompt: Prompt, old: Sequence[Message], summary: Message) -> Prompt:
    same = [_content(message) for message in prompt.messages[: len(old)]] == [_content(message) for message in old]
    if not same:
        return prompt
    return replace(prompt, messages=(prompt.messages[0], summary, *prompt.messages[len(old) :]))


def _content(message: Message) -> tuple[str, ...]:
    return (message.role, *(block.raw for block in message.blocks))


def without_tools(names: Collection[str]) -> Edit:
    """These tools never offered."""

    def edit(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [
            replace(prompt, tools=tuple(tool for tool in prompt.tools if tool.name not in names)) for prompt in prompts
        ]

    return edit


def last_without_tools() -> Edit:
    """No tools offered in the lane's last request."""

    def edit(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [*prompts[:-1], replace(prompts[-1], tools=())] if prompts else prompts

    return edit

"""Requests as the simulated model reads them: prompt blocks with tokens, and the script's view.

Deliberately not the plugin's own reading of requests (`wire`): it is what that one is measured against.

Tokens of a block are its text's UTF-8 bytes / 4, rounded up: a text's text; a tool call's arguments as compact
JSON, and 1 for its name; a tool result's text; for a tool definition and every other kind, its compact JSON with sorted
keys and without cache markers. An image or document counts 1,000. Roles and separators count nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agentlatency.testing.costs import PromptBlock, count_tokens
from pytest_agentlatency.testing.script import Asked

Json = Mapping[str, Any]
MEDIA_TOKENS = 1000
_MARK = "cache_control"


def messages_blocks(body: Json) -> tuple[PromptBlock, ...]:
    """Blocks of an Anthropic Messages request: tools, system, messages. Top-level `cache_control` marks the last."""
    blocks = list(_messages_blocks(body))
    if body.get(_MARK) and blocks:
        blocks[-1] = PromptBlock(blocks[-1].key, blocks[-1].tokens, marked=True)
    return tuple(blocks)


def _messages_blocks(body: Json) -> Iterator[PromptBlock]:
    model = str(body.get("model", ""))
    for tool in body.get("tools") or ():
        text = compact(tool)
        yield PromptBlock(f"{model} tool {text}", count_tokens(text), bool(tool.get(_MARK)))
    for block in listed(body.get("system")):
        yield _block(f"{model} system", block)
    for message in body.get("messages") or ():
        for block in listed(message.get("content")):
            yield _block(f"{model} {message.get('role')}", block)


def _block(place: str, block: Json) -> PromptBlock:
    return PromptBlock(f"{place} {compact(block)}", _block_tokens(block), bool(block.get(_MARK)))


def _block_tokens(block: Json) -> int:
    match block.get("type"):
        case "text":
            return count_tokens(str(block.get("text", "")))
        case "thinking":
            return count_tokens(str(block.get("thinking", "")))
        case "tool_use":
            arguments = json.dumps(block.get("input"), separators=(",", ":"), ensure_ascii=False)
            return 1 + count_tokens(arguments)
        case "tool_result":
            return sum(_block_tokens(part) for part in listed(block.get("content")))
        case "image" | "image_url" | "document" | "file":
            return MEDIA_TOKENS
        case _:
            return count_tokens(compact(block))


def chat_blocks(body: Json) -> tuple[PromptBlock, ...]:
    """Blocks of an OpenAI Chat Completions request: tools, then messages, each content part and tool call its own."""
    return tuple(_chat_blocks(body))


def _chat_blocks(body: Json) -> Iterator[PromptBlock]:
    model = str(body.get("model", ""))
    for tool in body.get("tools") or ():
        text = compact(tool)
        yield PromptBlock(f"{model} tool {text}", count_tokens(text))
    for message in body.get("messages") or ():
        place = f"{model} {message.get('role')} {message.get('tool_call_id', '')}"
        for part in listed(message.get("content")):
            yield _block(place, part)
        for call in message.get("tool_calls") or ():
            function = call.get("function", {})
            tokens = 1 + count_tokens(str(function.get("arguments", "")))
            yield PromptBlock(f"{place} {compact(call)}", tokens)


def asked(number: int, body: Json, history: Json | None = None) -> Asked:
    """The script's view of a request; `history` is the body with what the server holds put back."""
    whole = history or body
    messages: Sequence[Json] = whole.get("messages") or ()
    system = [*listed(whole.get("system"))]
    system += [
        part
        for message in messages
        if message.get("role") in {"system", "developer"}
        for part in listed(message.get("content"))
    ]
    tools = (tool.get("name") or tool.get("function", {}).get("name", "") for tool in whole.get("tools") or ())
    text = "\n".join(str(part.get("text", "")) for part in system)
    return Asked(number, body, messages, text, tuple(tools), str(body.get("model", "")))


def listed(content: Any) -> list[Json]:
    """Content as a list of blocks: a string is one text block, nothing is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts: Sequence[Any] = content or ()
    return [part for part in parts if isinstance(part, Mapping)]


def compact(value: Json) -> str:
    """JSON with sorted keys and no spaces, without this level's cache marker."""
    bare = {key: each for key, each in value.items() if key != _MARK}
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

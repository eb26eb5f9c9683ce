"""OpenAI's chat content: tools, messages, parts and tool calls of a request, as values.

Owns what of a message a tokenizer would be given. Refuses to know how an answer arrives.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_agentlatency.wire.content import as_sent, data_url_head, is_marked, lifetime, media_head, unmarked
from pytest_agentlatency.wire.draft import THINKING
from pytest_agentlatency.wire.jsonedge import canonical, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message, ToolDefinition

_SYSTEM = frozenset({"system", "developer"})
_TEXT_KINDS = frozenset({"text", "input_text", "output_text"})
_KINDS = {"image_url": "image", "input_image": "image", "file": "document", "input_file": "document"}


def tools(value: Any) -> tuple[ToolDefinition, ...]:
    """Tool definitions in the order sent."""
    return tuple(_tool(mapping(each), f"tools[{index}]") for index, each in enumerate(sequence(value)))


def _tool(value: Mapping[str, Any], path: str) -> ToolDefinition:
    plain = unmarked(value)
    name = string(mapping(value.get("function")).get("name")) or string(value.get("name"))
    return ToolDefinition(
        name=name or string(value.get("type")),
        raw=canonical(plain),
        path=path,
        wire=as_sent(value),
        cache_marked=is_marked(value),
        cache_ttl=lifetime(value),
        deferred=value.get("defer_loading") is True,
    )


def messages(value: Any, before: tuple[Message, ...] = ()) -> tuple[Message, ...]:
    """Messages in the order sent, behind those read before; a result gets its tool's name from the call before it."""
    names = dict(_named(before))
    found = list(before)
    for index, each in enumerate(sequence(value), len(before)):
        one = message(mapping(each), f"messages[{index}]", names)
        names.update(_named((one,)))
        found.append(one)
    return tuple(found)


def _named(read: Iterable[Message]) -> Iterator[tuple[str, str]]:
    return ((block.id, block.name) for each in read for block in each.blocks if block.kind == "tool_use")


def split_system(found: tuple[Message, ...]) -> tuple[tuple[Block, ...], tuple[Message, ...]]:
    """Blocks of the system messages at the head, and the messages after them."""
    head = 0
    while head < len(found) and found[head].role in _SYSTEM:
        head += 1
    return tuple(block for each in found[:head] for block in each.blocks), found[head:]


def message(entry: Mapping[str, Any], path: str, names: Mapping[str, str] | None = None) -> Message:
    """One message, with its reasoning, parts and tool calls as blocks."""
    role = string(entry.get("role"))
    if role in {"tool", "function"}:
        id_ = string(entry.get("tool_call_id"))
        name = string(entry.get("name")) or (names or {}).get(id_, "")
        found = result(entry.get("content"), f"{path}.content", id_, name)
        return Message(role, (replace(found, wire=found.raw),), path)
    thoughts = tuple(_thought(text, f"{path}.reasoning_content") for text in reasoning(entry))
    calls = tuple(
        _call(mapping(each), f"{path}.tool_calls[{index}]")
        for index, each in enumerate(sequence(entry.get("tool_calls")))
    )
    return Message(role, (*thoughts, *parts(entry.get("content"), f"{path}.content"), *calls), path)


def reasoning(entry: Mapping[str, Any]) -> Iterator[str]:
    """Reasoning text of a message or delta, where hosts put it: DeepSeek and others, or OpenRouter and vLLM."""
    text = string(entry.get("reasoning_content")) or string(entry.get("reasoning"))
    if text:
        yield text


def parts(value: Any, path: str) -> tuple[Block, ...]:
    """Blocks of a content that is a string or a list of parts; a string reads as one text part."""
    if isinstance(value, str):
        return (part({"type": "text", "text": value}, f"{path}[0]"),) if value else ()
    return tuple(part(mapping(each), f"{path}[{index}]") for index, each in enumerate(sequence(value)))


def part(value: Mapping[str, Any], path: str) -> Block:
    """One content part."""
    return replace(_part(value, path), wire=as_sent(value), cache_ttl=lifetime(value))


def _part(value: Mapping[str, Any], path: str) -> Block:
    kind = string(value.get("type"))
    raw = canonical(unmarked(value))
    if kind in _TEXT_KINDS:
        text = string(value.get("text"))
        return Block("text", text, path, canonical({"text": text, "type": "text"}), cache_marked=is_marked(value))
    if kind == THINKING:  # Mistral: {"type": "thinking", "thinking": [{"type": "text", "text": ...}]}
        return Block(THINKING, "".join(_inner_texts(value.get(THINKING))), path, raw)
    if kind == "refusal":
        return Block(kind, string(value.get(kind)), path, raw)
    media = _media(value)
    known = kind in _KINDS or media
    return Block(_KINDS.get(kind, kind), "" if known else raw, path, raw, media=media, cache_marked=is_marked(value))


def result(value: Any, path: str, id_: str, name: str) -> Block:
    """A tool's result: a string, or parts."""
    inside = parts(value, path)
    return Block(
        kind="tool_result",
        text="\n".join(block.text for block in inside if block.text),
        path=path,
        raw=canonical({"content": [block.raw for block in inside], "id": id_}),
        name=name,
        id=id_,
        media=next((block.media for block in inside if block.media), b""),
        cache_marked=any(block.cache_marked for block in inside),
    )


def _thought(text: str, path: str) -> Block:
    raw = canonical({"reasoning": text})
    return Block(THINKING, text, path, raw, wire=raw)


def _call(value: Mapping[str, Any], path: str) -> Block:
    function = mapping(value.get("function") or value.get("custom"))
    name, id_ = string(function.get("name")), string(value.get("id"))
    arguments = string(function.get("arguments")) or string(function.get("input"))
    raw = canonical({"arguments": arguments, "id": id_, "name": name})
    return Block("tool_use", arguments, path, raw, name, id_, wire=as_sent(value))


def _inner_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    yield from (string(mapping(each).get("text")) for each in sequence(value))


def _media(value: Mapping[str, Any]) -> bytes:
    image = value.get("image_url")
    url = string(image) or string(mapping(image).get("url"))
    file = string(value.get("file_data")) or string(mapping(value.get("file")).get("file_data"))
    audio = string(mapping(value.get("input_audio")).get("data"))
    return data_url_head(url or file) or media_head(audio)

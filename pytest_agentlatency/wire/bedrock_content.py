"""Converse's content: tools, messages and blocks of a request, as values.

Owns what of a block a tokenizer would be given, and that a cache point belongs to the block before it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agentlatency.wire.content import as_sent, media_head
from pytest_agentlatency.wire.draft import THINKING
from pytest_agentlatency.wire.jsonedge import canonical, compact, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message, ToolDefinition

_POINT = "cachePoint"
_MEDIA = ("image", "document", "video", "audio")


def tools(config: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    """Tool definitions in the order sent."""
    found: list[ToolDefinition] = []
    for index, each in enumerate(map(mapping, sequence(config.get("tools")))):
        if _POINT in each:
            found[-1:] = [replace(tool, cache_marked=True) for tool in found[-1:]]
            continue
        kind = next(iter(each), "")
        name = string(mapping(each.get(kind)).get("name")) or kind
        found.append(ToolDefinition(name, canonical(each), f"toolConfig.tools[{index}]", as_sent(each)))
    return tuple(found)


def tool_params(config: Mapping[str, Any]) -> dict[str, str]:
    """What the tool configuration holds beside the tools: the choice."""
    return {f"toolConfig.{key}": canonical(value) for key, value in config.items() if key != "tools"}


def messages(value: Any) -> tuple[Message, ...]:
    """Messages in the order sent; a result gets its tool's name from the call before it."""
    names: dict[str, str] = {}
    found: list[Message] = []
    for index, each in enumerate(map(mapping, sequence(value))):
        one = message(string(each.get("role")), each.get("content"), f"messages[{index}].content", names)
        names.update((inside.id, inside.name) for inside in one.blocks if inside.kind == "tool_use")
        found.append(one)
    return tuple(found)


def message(role: str, value: Any, path: str, names: Mapping[str, str] | None = None) -> Message:
    """One message; its blocks stand at the path given."""
    return Message(role, blocks(value, path, names or {}), path.removesuffix(".content"))


def blocks(value: Any, path: str, names: Mapping[str, str]) -> tuple[Block, ...]:
    """Blocks of a content, cache points taken into the block that they follow."""
    found: list[Block] = []
    for index, each in enumerate(map(mapping, sequence(value))):
        if _POINT in each:
            found[-1:] = [replace(last, cache_marked=True) for last in found[-1:]]
        else:
            found.append(block(each, f"{path}[{index}]", names))
    return tuple(found)


def block(value: Mapping[str, Any], path: str, names: Mapping[str, str]) -> Block:
    """One block: an object whose one member names its kind."""
    kind = next(iter(value), "")
    inside = mapping(value.get(kind))
    raw = canonical(value)
    if kind == "text":
        return Block("text", string(value[kind]), path, raw)
    if kind == "toolUse":
        name, id_ = string(inside.get("name")), string(inside.get("toolUseId"))
        return Block("tool_use", compact(inside.get("input")), path, raw, name, id_)
    if kind == "toolResult":
        return _result(inside, path, raw, names)
    if kind == "reasoningContent":
        return Block(THINKING, string(mapping(inside.get("reasoningText")).get("text")), path, raw)
    if kind in _MEDIA:
        return Block(kind, "", path, raw, media=_media(inside))
    return Block(kind, raw, path, raw)


def _result(value: Mapping[str, Any], path: str, raw: str, names: Mapping[str, str]) -> Block:
    id_ = string(value.get("toolUseId"))
    inside = [mapping(each) for each in sequence(value.get("content"))]
    images = (mapping(each.get(kind)) for each in inside for kind in _MEDIA)
    return Block(
        kind="tool_result",
        text="\n".join(filter(None, map(_result_text, inside))),
        path=path,
        raw=raw,
        name=names.get(id_, ""),
        id=id_,
        media=next((head for image in images if (head := _media(image))), b""),
        error=value.get("status") == "error",
    )


def _result_text(value: Mapping[str, Any]) -> str:
    return compact(value["json"]) if "json" in value else string(value.get("text"))


def _media(value: Mapping[str, Any]) -> bytes:
    return media_head(string(mapping(value.get("source")).get("bytes")))

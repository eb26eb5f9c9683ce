"""Anthropic's content: tools, messages and blocks of a request, as values.

Owns what of a block a tokenizer would be given, and which parts never are: base64, signatures, encrypted data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pytest_agentlatency.wire.content import as_sent, is_marked, lifetime, media_head, unmarked
from pytest_agentlatency.wire.jsonedge import canonical, compact, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message, ToolDefinition

Names = Mapping[str, str]
"""Tool call id -> tool name, of the calls met so far."""


def tools(value: Any) -> tuple[ToolDefinition, ...]:
    """Tool definitions in the order sent."""
    return tuple(_tool(mapping(each), f"tools[{index}]") for index, each in enumerate(sequence(value)))


def _tool(value: Mapping[str, Any], path: str) -> ToolDefinition:
    plain = unmarked(value)
    return ToolDefinition(
        name=string(value.get("name")) or string(value.get("mcp_server_name")) or string(value.get("type")),
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
        entry = mapping(each)
        one = message(string(entry.get("role")), entry.get("content"), f"messages[{index}].content", names)
        names.update(_named((one,)))
        found.append(one)
    return tuple(found)


def _named(read: Iterable[Message]) -> Iterator[tuple[str, str]]:
    return (
        (block.id, block.name) for each in read for block in each.blocks if block.id and block.kind != "tool_result"
    )


def message(role: str, content: Any, path: str, names: Names | None = None) -> Message:
    """One message; its content, a string or blocks, stands at the path given."""
    return Message(role, blocks(content, path, names or {}), path.removesuffix(".content"))


def blocks(value: Any, path: str, names: Names) -> tuple[Block, ...]:
    """Blocks of a content that is a string or a list; a string reads as one text block."""
    if isinstance(value, str):
        return (_block({"type": "text", "text": value}, f"{path}[0]", names),) if value else ()
    return tuple(_block(mapping(each), f"{path}[{index}]", names) for index, each in enumerate(sequence(value)))


def _block(value: Mapping[str, Any], path: str, names: Names) -> Block:
    kind = string(value.get("type"))
    id_ = string(value.get("tool_use_id")) or string(value.get("id"))
    plain, marked = _without_markers(value)
    raw = canonical(plain)
    return Block(
        kind=kind,
        text=_TEXTS[kind](value) if kind in _TEXTS else raw,
        path=path,
        raw=raw,
        name=string(value.get("name")) or names.get(id_, ""),
        id=id_,
        media=_media(value),
        cache_marked=marked,
        error=value.get("is_error") is True,
        wire=as_sent(value),
        cache_ttl=lifetime(value),
    )


def _without_markers(value: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Copy of a block without cache markers, its own and those of the blocks inside, and whether there was one."""
    plain, marked = unmarked(value), is_marked(value)
    inner = plain.get("content")
    if isinstance(inner, list):
        marked = marked or any(is_marked(mapping(each)) for each in sequence(inner))
        plain["content"] = [unmarked(mapping(each)) for each in sequence(inner)]
    return plain, marked


def _nested(value: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (mapping(each) for each in sequence(value.get("content")))


def _text(value: Mapping[str, Any]) -> str:
    return string(value.get("text"))


def _result(value: Mapping[str, Any]) -> str:
    content = value.get("content")
    return content if isinstance(content, str) else "\n".join(filter(None, map(_inside_result, _nested(value))))


def _inside_result(value: Mapping[str, Any]) -> str:
    kind = string(value.get("type"))
    if kind == "tool_result":  # can't be nested; read flat, so that no input recurses
        return ""
    return _TEXTS[kind](value) if kind in _TEXTS else canonical(unmarked(value))


def _document(value: Mapping[str, Any]) -> str:
    source = mapping(value.get("source"))
    plain = string(source.get("data")) if source.get("type") == "text" else ""
    inside = source.get("content")
    body = inside if isinstance(inside, str) else "\n".join(map(_text, map(mapping, sequence(inside))))
    return "\n".join(filter(None, (string(value.get("title")), string(value.get("context")), plain, body)))


def _search_result(value: Mapping[str, Any]) -> str:
    return "\n".join((string(value.get("title")), string(value.get("source")), *map(_text, _nested(value))))


def _arguments(value: Mapping[str, Any]) -> str:
    return compact(value.get("input"))


def _none(_value: Mapping[str, Any]) -> str:
    return ""


_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "text": _text,
    "thinking": lambda value: string(value.get("thinking")),
    "redacted_thinking": _none,
    "tool_use": _arguments,
    "server_tool_use": _arguments,
    "mcp_tool_use": _arguments,
    "tool_result": _result,
    "mcp_tool_result": _result,
    "tool_reference": lambda value: string(value.get("tool_name")),
    "image": _none,
    "document": _document,
    "search_result": _search_result,
    "compaction": lambda value: string(value.get("content")),
}
"""A kind that isn't here is counted by its JSON: too much is noticed, nothing at all would not be."""


def _media(value: Mapping[str, Any]) -> bytes:
    for each in (value, *_nested(value)):
        source = mapping(each.get("source"))
        if source.get("type") == "base64":
            return media_head(string(source.get("data")))
    return b""

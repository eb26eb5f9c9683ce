"""OpenAI Responses' items: messages, reasoning, calls and their outputs, as messages of blocks.

Owns which items make one message: an answer's items are several, and come back as several, but are one turn's message.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agentlatency.wire.content import unmarked
from pytest_agentlatency.wire.draft import THINKING
from pytest_agentlatency.wire.jsonedge import canonical, compact, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message
from pytest_agentlatency.wire.openai_content import parts, result

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ON_SERVER = frozenset({"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"})
_VOLATILE = frozenset({"id", "status"})  # an SDK sends an item back with or without them


def messages(value: Any) -> tuple[Message, ...]:
    """Messages of an input, a string or items: adjacent items of the model are one, and so are adjacent results."""
    if isinstance(value, str):
        return (Message("user", parts(value, "input"), "input"),) if value else ()
    names: dict[str, str] = {}
    found: list[Message] = []
    for index, each in enumerate(sequence(value)):
        item, path = mapping(each), f"input[{index}]"
        role, blocks = _role(item), item_blocks(item, path, names)
        names.update((block.id, block.name) for block in blocks if block.kind == "tool_use")
        if found and found[-1].role == role and role in {"assistant", "tool"}:
            found[-1] = Message(role, found[-1].blocks + blocks, found[-1].path)
        else:
            found.append(Message(role, blocks, path))
    return tuple(found)


def answer_message(items: Sequence[Mapping[str, Any]]) -> Message | None:
    """Return the output items as one message; None when there are none."""
    blocks = tuple(block for index, item in enumerate(items) for block in item_blocks(item, f"output[{index}]"))
    return Message("assistant", blocks, "output") if blocks else None


def on_server(item: Mapping[str, Any]) -> bool:
    """Whether an output item says that the server ran a tool and asked the model again within the one call."""
    return string(item.get("type")) in _ON_SERVER


def item_blocks(item: Mapping[str, Any], path: str, names: Mapping[str, str] | None = None) -> tuple[Block, ...]:
    """Blocks of one item."""
    kind = string(item.get("type"))
    if kind == "message" or (not kind and "role" in item):
        return parts(item.get("content"), f"{path}.content")
    id_ = string(item.get("call_id"))
    if kind in _CALLS:
        arguments = string(item.get(_CALLS[kind])) or compact(item.get(_CALLS[kind]) or {})
        name = string(item.get("name"))
        return (Block("tool_use", arguments, path, _raw(item), name, id_),)
    if kind in _OUTPUTS:
        return (result(item.get("output"), path, id_, (names or {}).get(id_, "")),)
    if kind == "reasoning":
        return (Block(THINKING, _thoughts(item), path, _raw(item)),)
    raw = _raw(item)
    return (Block(kind, raw, path, raw, string(item.get("name")), id_),)


def _role(item: Mapping[str, Any]) -> str:
    kind = string(item.get("type"))
    return string(item.get("role")) or ("tool" if kind.endswith("_output") else "assistant")


def _raw(item: Mapping[str, Any]) -> str:
    return canonical({key: value for key, value in unmarked(item).items() if key not in _VOLATILE})


def _thoughts(item: Mapping[str, Any]) -> str:
    inside = (*sequence(item.get("summary")), *sequence(item.get("content")))
    return "".join(string(mapping(each).get("text")) for each in inside)

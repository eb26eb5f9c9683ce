"""How a tool's definition looks to the model: not the JSON that was sent, but what providers make of it.

Owns the renderings, as far as they were found by comparing requests with their usage. Refuses to know counters.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pytest_agentlatency.wire.jsonedge import loads, mapping, sequence, string

_OPENAI = re.compile(r"(?:^|[/.])(?:gpt-|o\d|chatgpt)")
_DEEPEST = 16


def shown(raw: str, model: str) -> str:
    """The text of a definition, given as JSON, for a model: a TypeScript type for OpenAI's, JSON for the others."""
    return _typed(raw) if _OPENAI.search(model) else _json(raw)


@lru_cache(maxsize=4096)
def _json(raw: str) -> str:
    """Name, description and parameters as JSON with spaces: Claude's form, near enough for open models' templates."""
    tool = _tool(raw)
    if not tool:
        return raw
    named = {"description": tool.get("description", ""), "name": tool["name"], "parameters": _schema(tool)}
    return json.dumps(named, ensure_ascii=False)


@lru_cache(maxsize=4096)
def _typed(raw: str) -> str:
    """OpenAI's form. What a type can't say (`additionalProperties`, `strict`, titles) isn't shown and isn't billed."""
    tool = _tool(raw)
    if not tool:
        return raw
    lines = [*_comment(tool), f"type {tool['name']} = (_: {{", *_members(_schema(tool), 0), "}) => any;"]
    return "\n".join(lines)


def _tool(raw: str) -> Mapping[str, Any]:
    value = mapping(loads(raw))
    inner = mapping(value.get("function")) or value
    return inner if inner.get("name") else {}


def _schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(tool.get("input_schema")) or mapping(tool.get("parameters"))


def _comment(value: Mapping[str, Any]) -> Iterator[str]:
    words = string(value.get("description"))
    if words:
        yield f"// {words}"


def _members(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    required = sequence(schema.get("required"))
    for name, member in mapping(schema.get("properties")).items():
        yield from _comment(mapping(member))
        yield f"{name}{'' if name in required else '?'}: {_type(mapping(member), depth)},"


def _type(schema: Mapping[str, Any], depth: int) -> str:
    if depth > _DEEPEST:
        return "any"
    if choices := sequence(schema.get("enum")):
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in choices)
    if options := sequence(schema.get("anyOf")) or sequence(schema.get("oneOf")):
        return " | ".join(_type(mapping(each), depth + 1) for each in options)
    kind = schema.get("type")
    if kind == "array":
        return f"{_type(mapping(schema.get('items')), depth + 1)}[]"
    if kind == "object":
        return "\n".join(["{", *_members(schema, depth + 1), "}"])
    return {"integer": "number"}.get(kind, kind) if isinstance(kind, str) else "any"

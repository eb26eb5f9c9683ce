"""A request as the bytes that a provider's cache would see: tools, system, messages, piece by piece.

Owns that rendering. Key order is kept as sent; cache markers, nulls and the spelling of a plain text are not part of
it, and neither is white space between JSON tokens.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pytest_agentlatency.wire.content import unmarked
from pytest_agentlatency.wire.jsonedge import compact, loads, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message, Prompt


class Segment(NamedTuple):
    """One piece of a request."""

    section: str
    """`tools`, `system` or `messages`."""
    path: str
    kind: str
    """The block's kind; `tool` for a definition."""
    data: bytes
    marked: bool = False
    """A cache breakpoint stands on it."""
    ttl: str = ""
    """The lifetime that the breakpoint asks for, as sent (`1h`)."""


_HEAD_ROLES = frozenset({"system", "developer"})


Known = dict[int, tuple[Message, tuple[Segment, ...]]]
"""Segments of messages rendered before, by the message's identity. Each holds its message, so that no id is reused."""


def segments(prompt: Prompt, body: bytes = b"", known: Known | None = None) -> tuple[Segment, ...]:
    """The pieces of a prompt in the order in which providers cache.

    System messages that open a history are its system section. Pieces that the body doesn't hold (a history kept by
    the server) are rendered from the prompt.

    What is known of an earlier body's messages is used again where the prompt has the same objects, and is added to.
    A provider shares one between prompts only where the bytes are the same; give none for prompts from elsewhere.
    """
    sent = loads(body) if body else None
    return (*_tools(prompt, sent), *_system(prompt, sent), *_messages(prompt, sent, {} if known is None else known))


def _tools(prompt: Prompt, sent: Any) -> Iterator[Segment]:
    for tool in prompt.tools:
        value = _at(sent, tool.path)
        text = compact(_unmarked(value)) if isinstance(value, dict) else tool.wire or tool.raw
        yield Segment("tools", tool.path, "tool", text.encode(), *_marker(tool.cache_marked, tool.path, sent))


def _system(prompt: Prompt, sent: Any) -> Iterator[Segment]:
    for block in prompt.system:
        yield _segment("system", "", block, sent)


def _messages(prompt: Prompt, sent: Any, known: Known) -> Iterator[Segment]:
    section = "system"
    for message in prompt.messages:
        section = section if message.role in _HEAD_ROLES else "messages"
        _, found = known.get(id(message), (None, None))
        if found is None or (found and found[0].section != section):
            found = tuple(_segment(section, message.role, block, sent) for block in message.blocks)
            known[id(message)] = message, found
        yield from found


def _segment(section: str, role: str, block: Block, sent: Any) -> Segment:
    text = block.raw
    if block.kind == "text":
        text = block.text + _beside_text(block.raw)
    elif sent is not None:
        value = _at(sent, block.path)
        text = compact(_unmarked(value)) if isinstance(value, dict) else block.raw
    marker = _marker(block.cache_marked, block.path, sent)
    return Segment(section, block.path, block.kind, f"{role}:{text}\n".encode(), *marker)


def _marker(marked: bool, path: str, sent: Any) -> tuple[bool, str]:  # noqa: FBT001 - the value itself
    value = _at(sent, path) if marked else None
    return marked, string(mapping(mapping(value).get("cache_control")).get("ttl"))


_PLAIN = '","type":"text"}'


def _beside_text(raw: str) -> str:
    """What a text block carries beside its text (citations), and nothing for the many that carry nothing."""
    if raw.startswith('{"text":"') and raw.endswith(_PLAIN):
        return ""
    rest = {key: each for key, each in mapping(loads(raw)).items() if key not in {"type", "text"}}
    return compact(rest) if rest else ""


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in sequence(value)]
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in unmarked(mapping(value)).items()}
    return value


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def _at(value: Any, path: str) -> Any:
    """The value at a path like `messages[4].content[0]`; None when there is none."""
    for key, index in _STEP.findall(path):
        items = sequence(value)
        value = mapping(value).get(key) if key else items[int(index)] if int(index) < len(items) else None
    return value

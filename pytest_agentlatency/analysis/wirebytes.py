"""A request as the bytes that a provider's cache would see: tools, system, messages, piece by piece.

Owns that rendering. Key order is kept as sent; cache markers, nulls and the spelling of a plain text are not part of
it, and neither is white space between JSON tokens.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from pytest_agentlatency.wire.content import as_sent, lifetime
from pytest_agentlatency.wire.jsonedge import compact, loads, mapping, sequence
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
    sent = _Body(body)
    return (*_tools(prompt), *_system(prompt, sent), *_messages(prompt, sent, {} if known is None else known))


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class _Body:
    """A request's body, decoded when a place in it is asked for: most blocks know how they were sent."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _value(self) -> Any:
        return loads(self._data) if self._data else None

    def at(self, path: str) -> Mapping[str, Any]:
        """The object at a path like `messages[4].content[0]`; an empty one when there is none."""
        value = self._value
        for key, index in _STEP.findall(path):
            items = sequence(value)
            value = mapping(value).get(key) if key else items[int(index)] if int(index) < len(items) else None
        return mapping(value)


def _tools(prompt: Prompt) -> Iterator[Segment]:
    for tool in prompt.tools:
        text = tool.wire or tool.raw
        yield Segment("tools", tool.path, "tool", text.encode(), tool.cache_marked, tool.cache_ttl)


def _system(prompt: Prompt, sent: _Body) -> Iterator[Segment]:
    for block in prompt.system:
        yield _segment("system", "", block, sent)


def _messages(prompt: Prompt, sent: _Body, known: Known) -> Iterator[Segment]:
    section = "system"
    for message in prompt.messages:
        section = section if message.role in _HEAD_ROLES else "messages"
        _, found = known.get(id(message), (None, None))
        if found is None or (found and found[0].section != section):
            found = tuple(_segment(section, message.role, block, sent) for block in message.blocks)
            known[id(message)] = message, found
        yield from found


def _segment(section: str, role: str, block: Block, sent: _Body) -> Segment:
    text = block.wire
    if block.kind == "text":
        text = block.text + _beside_text(block.raw)
    elif not text:
        found = sent.at(block.path)
        text = (as_sent(found) if found else "") or block.raw
    ttl = block.cache_ttl if block.wire or not block.cache_marked else lifetime(sent.at(block.path))
    return Segment(section, block.path, block.kind, f"{role}:{text}\n".encode(), block.cache_marked, ttl)


_PLAIN = '","type":"text"}'


def _beside_text(raw: str) -> str:
    """What a text block carries beside its text (citations), and nothing for the many that carry nothing."""
    if raw.startswith('{"text":"') and raw.endswith(_PLAIN):
        return ""
    rest = {key: each for key, each in mapping(loads(raw)).items() if key not in {"type", "text"}}
    return compact(rest) if rest else ""

"""What a request says before its conversation starts, and how like two such heads are.

Owns the measure of likeness. Refuses to know what follows from it: `lineage` and the matching of cassettes decide.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from pytest_agentlatency.wire.message import Message, Prompt

ALIKE = 0.5
"""Two heads are alike when their system texts (see `overlap`) or tool names (Jaccard) overlap at least this much."""

_OPENING = (
    4000  # characters: a system prompt says at its beginning whose it is; comparing the rest would only cost time
)
_HEAD_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its conversation starts."""

    tools: frozenset[str]
    """Names."""
    system: str
    """Text of the system blocks and of the system messages that open the history."""


def head_of(prompt: Prompt) -> Head:
    """What the prompt says before its conversation starts."""
    return Head(frozenset(tool.name for tool in prompt.tools), "\n".join(_system_texts(prompt)))


def _system_texts(prompt: Prompt) -> Iterator[str]:
    yield from (block.text for block in prompt.system)
    for message in takewhile(opens_system, prompt.messages):
        yield from (block.text for block in message.blocks)


def opens_system(message: Message) -> bool:
    """Whether a message that opens a history is part of the head."""
    return message.role in _HEAD_ROLES


def alike(one: Head, other: Head) -> bool:
    """Whether two heads may belong to one lane: a clock in the system prompt or one more tool makes no new agent."""
    if one == other:
        return True
    if overlap(one.system, other.system) >= ALIKE and one.system:
        return True
    if one.tools and other.tools:
        return shared(one.tools, other.tools) >= ALIKE
    return not one.system and not other.system


def shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard index of two sets, 0-1; 1 for two empty ones."""
    return len(one & other) / len(one | other) if one or other else 1.0


def overlap(one: str, other: str) -> float:
    """Likeness of two texts, 0-1: 1 when one contains the other, since prompts grow by additions.

    Otherwise the Dice coefficient of the words in their first 4000 characters.
    """
    if one and other and (one in other or other in one):
        return 1.0
    left, right = Counter(one[:_OPENING].split()), Counter(other[:_OPENING].split())
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else float(one == other)

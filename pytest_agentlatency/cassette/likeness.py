"""How likely a live conversation and a recorded one are the same part of an agent, by how they open.

Owns the score. Refuses to know turns: once two lanes are paired, their turns are paired by number.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import dropwhile

from pytest_agentlatency.wire.head import Head, head_of, opens_system, overlap, shared
from pytest_agentlatency.wire.message import Prompt

ENOUGH = 0.5
"""Score from which a live lane may be paired with a recorded one."""

_SYSTEM, _TASK, _TOOLS, _MODEL = 0.35, 0.30, 0.25, 0.10


@dataclass(frozen=True, slots=True)
class Opening:
    """How a conversation starts."""

    provider: str
    model: str
    head: Head
    task: str
    """Text of the first message."""
    streamed: bool


def opening(provider: str, prompt: Prompt) -> Opening:
    """How the conversation of a prompt starts."""
    first = next(dropwhile(opens_system, prompt.messages), None)
    task = "\n".join(block.text for block in first.blocks) if first else ""
    return Opening(provider, prompt.model, head_of(prompt), task, prompt.streamed)


def answerable(recorded: Opening, live: Opening) -> bool:
    """Whether the live caller could read the recorded answer at all: same format, streamed or not alike."""
    return (recorded.provider, recorded.streamed) == (live.provider, live.streamed)


def score(recorded: Opening, live: Opening) -> float:
    """0-1: system text 35%, first message 30%, tool names 25%, model 10%; what neither has doesn't count.

    0 when they have nothing but a model: a body that can't be read is like no other.
    """
    features = [*_features(recorded, live)]
    if not features:
        return 0.0
    features.append((_MODEL, float(recorded.model == live.model)))
    return sum(share * likeness for share, likeness in features) / sum(share for share, _ in features)


def _features(recorded: Opening, live: Opening) -> Iterable[tuple[float, float]]:
    if recorded.head.system or live.head.system:
        yield _SYSTEM, overlap(recorded.head.system, live.head.system)
    if recorded.task or live.task:
        yield _TASK, overlap(recorded.task, live.task)
    if recorded.head.tools or live.head.tools:
        yield _TOOLS, shared(recorded.head.tools, live.head.tools)

"""How big a prompt is, and what a changed one would have been billed.

Owns the inventory of a prompt (what is in the context, piece by piece) and the ruler that is laid beside a recorded
count. Refuses to give an absolute count of its own: a counter is only trusted for differences, because every
provider adds tokens that no request shows.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.images import image_tokens
from pytest_agentlatency.analysis.toolforms import shown
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire.jsonedge import loads, mapping, sequence
from pytest_agentlatency.wire.message import Block, Message, Prompt


class Source(StrEnum):
    """What a piece of the context is."""

    SYSTEM = "system"
    TOOL_DEFINITION = "tool_definition"
    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    IMAGE = "image"
    DOCUMENT = "document"
    OTHER = "other"
    HIDDEN = "hidden"
    """What the provider adds and the request doesn't show."""


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of a context."""

    source: Source
    path: str
    """Where it stands in the request: `tools[0]`, `messages[4].content[0]`."""
    text: str
    """What is counted."""
    name: str = ""
    """The tool's name, for a definition, a call and a result."""
    raw: str = ""
    """The piece as canonical JSON: its identity."""
    fixed: int = 0
    """Tokens beside the text: pixels, and what the provider puts around a piece of this kind."""


def size(prompt: Prompt, counter: Counter) -> int:
    """Tokens of everything that the prompt puts before the model, by the counter. A ruler's reading, not a bill."""
    return sum(measure(item, counter) for item in items(prompt))


def measure(item: Item, counter: Counter) -> int:
    """Tokens of one piece, by the counter."""
    return counter.count(item.text) + item.fixed


class Part(NamedTuple):
    """What one message is in a context."""

    items: tuple[Item, ...]
    later: tuple[Item, ...]
    """In later tool loops, for models that aren't shown their earlier thinking."""
    asks: bool
    """A user speaks in it rather than a tool: a tool loop starts there."""
    replaces: bool
    """Its summary stands for all before it (Anthropic's compaction block)."""


def part_of(message: Message, model: str) -> Part:
    """A message, taken apart. Depends on nothing beside it."""
    kinds = {block.kind for block in message.blocks}
    said = tuple(_message_items(message.blocks, message.role, model))
    unthought = [block for block in message.blocks if block.kind not in _THINKING]
    later = tuple(_message_items(unthought, message.role, model)) if kinds & _THINKING else said
    return Part(said, later, message.role == "user" and "tool_result" not in kinds, "compaction" in kinds)


def items(prompt: Prompt, part: Callable[[Message, str], Part] = part_of) -> tuple[Item, ...]:
    """Every piece of the context, in the provider's order: tools, system, messages, then answer schemas.

    Left out: tools that wait to be referenced, thinking that the provider drops, signatures, the bytes of images.
    `part`: `part_of`, or who remembers what it gave.
    """
    parts = [part(message, prompt.model) for message in prompt.messages]
    return (*_tool_items(prompt), *_system_items(prompt), *_shown(parts, prompt.model), *_param_items(prompt))


def _shown(parts: Sequence[Part], model: str) -> Iterator[Item]:
    """The items of the messages that the model is shown; thinking where it keeps it, and of the current tool loop."""
    start = max((index for index, part in enumerate(parts) if part.replaces), default=0)
    asked = (index for index in range(len(parts) - 1, -1, -1) if parts[index].asks)
    current = start if keeps_thinking(model) else max(start, next(asked, 0))
    for part in parts[start:current]:
        yield from part.later
    for part in parts[current:]:
        yield from part.items


@dataclass(frozen=True, slots=True)
class Frame:
    """Tokens that a model family puts around a piece, beyond the piece's own text."""

    message: int
    tool: int
    call: int
    result: int


# Medians of turn-to-turn differences in public recordings: docs/context.md.
_CLAUDE = Frame(message=3, tool=8, call=36, result=10)
_OTHERS = Frame(message=4, tool=0, call=4, result=4)


def frame_of(model: str) -> Frame:
    """The framing of a model's family."""
    return _CLAUDE if "claude" in model.lower() else _OTHERS


def hidden_tokens(prompt: Prompt) -> int:
    """The most that the provider is expected to add to this prompt, in its own tokens: its tool prompt, mostly."""
    if "claude" not in prompt.model.lower():
        return 60
    return 650 if prompt.tools else 20


def _tool_items(prompt: Prompt) -> Iterator[Item]:
    referenced = _referenced(prompt) if any(tool.deferred for tool in prompt.tools) else frozenset[str]()
    extra = frame_of(prompt.model).tool
    for tool in prompt.tools:
        if not tool.deferred or tool.name in referenced:
            yield Item(Source.TOOL_DEFINITION, tool.path, shown(tool.raw, prompt.model), tool.name, tool.raw, extra)


_REFERENCE = re.compile(r'"tool_name":"([^"]+)"')


def _referenced(prompt: Prompt) -> frozenset[str]:
    called = {block.name for block in prompt.blocks if block.kind == "tool_use"}
    named = {
        name for block in prompt.blocks if '"tool_reference"' in block.raw for name in _REFERENCE.findall(block.raw)
    }
    return frozenset(called | named)


def _system_items(prompt: Prompt) -> Iterator[Item]:
    for block in prompt.system:
        yield _item(block, Source.SYSTEM, prompt.model, 0)


def _message_items(blocks: Iterable[Block], role: str, model: str) -> Iterator[Item]:
    extra = frame_of(model).message
    for block in blocks:
        yield _item(block, _source(block, role), model, extra)
        extra = 0


def keeps_thinking(model: str) -> bool:
    """Whether the model is shown its thinking of earlier tool loops. Older ones are not, and it isn't billed."""
    return bool(_KEEPERS.search(model.replace(".", "-")))


_KEEPERS = re.compile(r"opus-4-[5-9]|sonnet-4-[6-9]|claude-[a-z]+-[5-9]")
_NEWER = re.compile(r"opus-4-[7-9]|claude-[a-z]+-[5-9]")


def _newer(model: str) -> bool:
    """Whether the model has the tokenizer that came with Opus 4.7."""
    return bool(_NEWER.search(model.replace(".", "-")))


_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_KINDS = {
    "thinking": Source.THINKING,
    "redacted_thinking": Source.THINKING,
    "reasoning": Source.THINKING,
    "tool_use": Source.TOOL_CALL,
    "tool_result": Source.TOOL_RESULT,
    "image": Source.IMAGE,
    "document": Source.DOCUMENT,
    "compaction": Source.ASSISTANT,
}
_ROLES = {
    "assistant": Source.ASSISTANT,
    "system": Source.SYSTEM,
    "developer": Source.SYSTEM,
    "tool": Source.TOOL_RESULT,
}


def _source(block: Block, role: str) -> Source:
    if block.kind == "text":
        return _ROLES.get(role, Source.USER)
    return _KINDS.get(block.kind, Source.OTHER)


# An image or a document whose size can't be read still costs about this much; usage settles it where there is one.
_UNSEEN = {Source.IMAGE: 1_000, Source.DOCUMENT: 2_000}


def _item(block: Block, source: Source, model: str, extra: int) -> Item:
    frame = frame_of(model)
    text = block.text if block.text not in ("", block.raw) or source is not Source.OTHER else _unknown(block.raw)
    if source is Source.TOOL_CALL:
        text, extra = f"{block.name} {text}", extra + frame.call
    elif source is Source.TOOL_RESULT:
        extra += frame.result
    return Item(source, block.path, text, block.name, block.raw, extra + _media(block, source, model))


def _media(block: Block, source: Source, model: str) -> int:
    seen = image_tokens(block.media, model) if block.media else None
    if seen is not None:
        return seen
    return 0 if block.text else _UNSEEN.get(source, 0)


_OPAQUE = frozenset({"signature", "data", "encrypted_content", "encrypted_index", "file_data", "image_url", "id"})


@lru_cache(maxsize=4096)
def _unknown(raw: str) -> str:
    """A block of a kind that this version doesn't know, by its JSON, without what only machines read."""
    return json.dumps(_readable(loads(raw)), ensure_ascii=False)


def _readable(value: Any) -> Any:
    if isinstance(value, list):
        return [_readable(each) for each in sequence(value)]
    if isinstance(value, dict):
        return {key: _readable(each) for key, each in mapping(value).items() if key not in _OPAQUE}
    return value


def _param_items(prompt: Prompt) -> Iterator[Item]:
    for name, raw in prompt.params.items():
        if '"schema"' in raw or '"json_schema"' in raw or name == "functions":
            yield Item(Source.OTHER, name, raw, raw=raw)


@dataclass(frozen=True, slots=True)
class Ruler:
    """Turns a difference in a counter's tokens into a difference in a provider's.

    `live = recorded + ratio x (size(live) - size(recorded))`.
    """

    counter: Counter
    ratio: float = 1.0
    """Provider's tokens per token of the counter."""
    spread: float = 0.25
    """One standard deviation of the ratio, as a fraction of it."""
    source: str = "default"
    """`N recorded calls`, or `default` when the recording doesn't tell."""

    @classmethod
    def fit(cls, pairs: Iterable[tuple[int, int]], counter: Counter, model: str = "") -> Self:
        """A ruler from the recording's own calls, given as (size by the counter, context by the provider).

        Leave out calls whose usage is the sum of several passes.
        """
        known = list(pairs)
        ratio, spread = _estimate(known, _prior(counter.id, model))
        return cls(counter, ratio, spread, f"{len(known)} recorded calls" if known else "default")

    def live_context(self, recorded_usage: Usage, recorded: Prompt, live: Prompt) -> Tokens | None:
        """Tokens that the live prompt would have been billed; None when the recorded call has no usage.

        Exactly the recorded count when the prompts are equally big; otherwise off it in the direction of the change.
        """
        if recorded_usage.context is None:
            return None
        change = size(live, self.counter) - size(recorded, self.counter)
        return Tokens(max(0, recorded_usage.context + self.scaled(change)))

    def scaled(self, change: int) -> int:
        """The provider's tokens for a change in the counter's: 0 only for 0, and never of the other sign."""
        if change == 0:
            return 0
        moved = max(1, round(self.ratio * abs(change)))
        return moved if change > 0 else -moved


@dataclass(frozen=True, slots=True)
class _Prior:
    """What is known of a counter on a model family before any call was seen."""

    ratio: float
    hidden: int
    """Tokens that the provider adds to a prompt and no request shows; wrong by as much again."""


_PRIOR_SPREAD = 0.15


def _prior(counter: str, model: str) -> _Prior:
    if "claude" not in model.lower():
        return _Prior(0.92 if counter.startswith("chars") else 1.0, 60)
    if counter.startswith("claude"):
        return _Prior(1.0, 400)
    return _Prior(1.3 if _newer(model) else 1.08, 400)


_MIX = 0.08
"""How far the ratio of one kind of text is off that of another, as a fraction."""
_FRAMING = 60
"""Tokens by which the framing of a turn may be off."""


def _estimate(pairs: Sequence[tuple[int, int]], prior: _Prior) -> tuple[float, float]:
    """Ratio and its spread: the inverse-variance mean of the prior, the largest call's level, and the slope.

    A level (context / size) misleads for a small prompt, most of which is hidden; a slope misleads for calls that
    hardly differ. Each is weighed by how far it can be off.
    """
    evidence = [(prior.ratio, _PRIOR_SPREAD * prior.ratio), *_level(pairs, prior), *_slope(pairs)]
    weights = [1 / spread**2 for _, spread in evidence]
    ratio = sum(value * weight for (value, _), weight in zip(evidence, weights, strict=True)) / sum(weights)
    ratio = min(2 * prior.ratio, max(prior.ratio / 2, ratio))
    return ratio, max(_MIX / 2, float(sum(weights) ** -0.5) / ratio)


def _level(pairs: Sequence[tuple[int, int]], prior: _Prior) -> Iterator[tuple[float, float]]:
    count, context = max(pairs, default=(0, 0))
    if count > prior.hidden:
        yield (context - prior.hidden) / count, prior.hidden / count + _MIX


def _slope(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[float, float]]:
    """The median of the slopes between calls, each weighed by the difference that it spans (Theil-Sen)."""
    ordered = sorted(set(pairs))
    spans = [
        ((context - less) / (count - low), count - low)
        for index, (low, less) in enumerate(ordered)
        for count, context in ordered[index + 1 :]
        if count > low
    ]
    if spans:
        yield _weighted_median(spans), _MIX + _FRAMING / max(span for _, span in spans)


def _weighted_median(values: Sequence[tuple[float, int]]) -> float:
    half, passed = sum(weight for _, weight in values) / 2, 0
    for value, weight in sorted(values):
        passed += weight
        if passed >= half:
            return value
    return 1.0


def doubts(pairs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Reasons not to believe a lane's usages, given in order as (size by the counter, context by the provider).

    Bodies that were edited after the recording, and servers that report only what they prefilled.
    """
    found = [
        f"turn {turn}: usage says {context:,} tokens for a prompt of about {count:,}; was the recording edited?"
        for turn, (count, context) in enumerate(pairs, 1)
        if abs(context - count) > _GAP and not _LOWEST * count < context < _HIGHEST * count
    ]
    for turn, ((count, context), (more, less)) in enumerate(pairwise(pairs), 2):
        if more > count and less < context / 2:
            found.append(
                f"turn {turn}: the prompt grew and its usage fell from {context:,} to {less:,} tokens; "
                f"the server may report only what it prefilled"
            )
    return tuple(found)


_LOWEST, _HIGHEST, _GAP = 0.5, 20, 500


def server_side(prompt: Prompt) -> bool:
    """Whether the provider runs part of the turn itself or edits the context: usage is then no size of this prompt.

    Server tools' code containers, MCP servers, context editing, compaction, tools that are searched for.
    """
    if _SERVED & prompt.params.keys() or any(tool.deferred for tool in prompt.tools):
        return True
    return any(block.kind in _SERVED_BLOCKS for block in prompt.blocks)


_SERVED = frozenset({"container", "mcp_servers", "context_management"})
_SERVED_BLOCKS = frozenset({"server_tool_use", "mcp_tool_use", "compaction", "container_upload"})

"""Whether a recording's usage fits its own text: bodies edited after recording, servers that count only new tokens.

Owns the doubts about foreign recordings. Refuses to change a figure: a doubt says that a call must not be re-timed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_agentlatency.model.recording import Attempt
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.jsonedge import loads, mapping
from pytest_agentlatency.wire.message import Answer, Prompt, ToolDefinition

CHARS_PER_TOKEN = 4
"""The estimate's ruler. English prose is 4-5, JSON 3, Chinese 1; the bounds leave room for all of them."""
LEAST, MOST = 0.5, 20.0
"""Recorded over estimated tokens: outside of this, and further apart than `GAP`, the text isn't what was counted.

Source: 2,465 public calls of Claude and 758 of OpenAI; small prompts with tools reach 10 (a hidden tool prompt).
"""
GAP = 300
"""Tokens by which usage and estimate must differ too: a small prompt's hidden parts are no edit."""
AROUND = {"cohere": 1_500}
"""Tokens that a provider puts around a prompt beyond that: Cohere 200, and 900 to 1,400 with tools or documents.

Source: its documentation's examples and public recordings, which say beside them what was billed.
"""

_PLAIN_ANSWER = frozenset({"text", "thinking", "tool_json"})
_MEDIA = frozenset({"image", "document", "audio", "input_audio", "file", "input_file", "video"})
_NAMING = frozenset({"name", "function", "toolSpec"})
_HELD_BY_SERVER = frozenset({
    "mcp_servers", "container", "context_management", "conversation", "web_search_options", "prompt", "cachedContent",
    "modalities", "conversation_id", "connectors",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that a reader of the recording's figures must know."""

    kind: str
    """`implausible`: usage and text don't belong together. `incremental`: usage falls while the request grows.
    `body`: how the bytes were stored."""
    text: str
    call: int | None = None
    """`CallRecord.id`; None when it is about the whole file."""

    @property
    def forbids_retiming(self) -> bool:
        """Whether the call's usage can't anchor a re-timing."""
        return self.call is not None and self.kind in {"implausible", "incremental"}

    def __str__(self) -> str:
        return self.text if self.call is None else f"call {self.call}: {self.text}"


@dataclass(frozen=True, slots=True)
class _Seen:
    call: int
    provider: str
    prompt: Prompt
    answer: Answer
    endpoint: str

    @property
    def counted(self) -> Tokens | None:
        return self.answer.usage.context


def doubts(attempts: Sequence[Attempt]) -> Iterator[Doubt]:
    """Doubts about the usage of model calls, one or none of each kind a call."""
    seen = [each for attempt in attempts if (each := _seen(attempt))]
    for each in seen:
        if text := _implausible(each):
            yield Doubt("implausible", text, each.call)
    for before, after in pairwise(seen):
        if text := _incremental(before, after):
            yield Doubt("incremental", text, after.call)


def _seen(attempt: Attempt) -> _Seen | None:
    provider = registry.recognise(attempt.request)
    if provider is None or attempt.response is None:
        return None
    prompt, answer = provider.prompt(attempt.request), provider.answer(attempt.response)
    endpoint = f"{provider.name} {attempt.request.url} {prompt.model}"
    return _Seen(attempt.call, provider.name, prompt, answer, endpoint) if answer.usage.context is not None else None


def estimate(prompt: Prompt) -> tuple[int, int]:
    """Least and most tokens of a prompt by its characters; rough, and meant for `LEAST` and `MOST` only.

    The least is without the thinking of earlier turns, which is sent and not counted, and without tools, of which
    OpenAI counts a third of their JSON.
    """
    said = sum(len(block.text) for block in prompt.blocks if "thinking" not in block.kind)
    thought = sum(len(block.text) for block in prompt.blocks if "thinking" in block.kind)
    tools = sum(len(tool.raw) for tool in prompt.tools)
    return said // CHARS_PER_TOKEN, max(1, (said + thought + tools) // CHARS_PER_TOKEN)


def _implausible(seen: _Seen) -> str:
    counted, (least, most) = seen.counted or 0, estimate(seen.prompt)
    low = counted < LEAST * least and least - counted > GAP
    high = counted > MOST * most and counted - most > GAP + AROUND.get(seen.provider, 0)
    if not (low or high) or not _all_in_view(seen):
        return ""
    return (
        f"usage says {counted:,} input tokens, the request's text is about {least if low else most:,}: it was edited "
        "after recording, or the server counts something else, so this call is not re-timed; record it again if you can"
    )


def _all_in_view(seen: _Seen) -> bool:
    """Whether the tokens that the provider counted are the request's own text, all of it."""
    prompt, answer = seen.prompt, seen.answer
    return not (
        answer.usage.multi_pass
        or prompt.previous_id
        or _HELD_BY_SERVER & set(prompt.params)
        or any(block.media or block.kind in _MEDIA or not block.text for block in prompt.blocks)
        or any(block.kind not in _PLAIN_ANSWER for block in answer.blocks)
        or not all(_own(tool) for tool in prompt.tools)
    )


def _own(tool: ToolDefinition) -> bool:
    """The agent's own tool; one that the server runs puts its results into the counted tokens, unseen."""
    definition = mapping(loads(tool.raw))
    typed = str(definition.get("type") or "function") in {"function", "custom"}
    return typed and bool(_NAMING & set(definition)) and not tool.deferred


def _incremental(before: _Seen, after: _Seen) -> str:
    if _unseen(before) != _unseen(after) or not _all_in_view(before) or not _all_in_view(after):
        return ""
    one, other = _raws(before.prompt), _raws(after.prompt)
    grew = len(other) > len(one) and other[: len(one)] == one
    fell = (before.counted or 0) - (after.counted or 0)
    if not grew or fell <= GAP:
        return ""
    return (
        f"usage falls by {fell:,} input tokens to {after.counted or 0:,} while the request grows (usage=incremental): "
        "the server counts only new tokens, so this call is not re-timed"
    )


def _unseen(seen: _Seen) -> tuple[object, ...]:
    """What may put hidden tokens into a prompt: a change of it explains a fall."""
    return seen.endpoint, seen.prompt.tools, dict(seen.prompt.params)


def _raws(prompt: Prompt) -> list[str]:
    return [block.raw for block in prompt.blocks]

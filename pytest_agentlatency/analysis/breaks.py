"""One break of a prefix: where it is, what changed there, and what kind of change it was.

Owns the description. Refuses to judge: a break may be allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from pytest_agentlatency.analysis.inventory import Listing
from pytest_agentlatency.analysis.ledger import apportion
from pytest_agentlatency.analysis.volatile import kind_of_change
from pytest_agentlatency.analysis.wirebytes import Segment
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.wire.message import Prompt


class Reason(StrEnum):
    """Why a prefix can't be read from a cache, in the providers' own terms where they have one."""

    MODEL_CHANGED = "model_changed"
    TOOLS_CHANGED = "tools_changed"
    SYSTEM_CHANGED = "system_changed"
    MESSAGES_CHANGED = "messages_changed"
    PARAMS_CHANGED = "params_changed"
    """`tool_choice`, thinking and the like: the messages must be read again, tools and system need not."""
    TTL_EXPIRED = "ttl_expired"
    LOOKBACK_EXCEEDED = "lookback_exceeded"
    """More blocks were added than the provider looks back from a breakpoint."""
    BELOW_MINIMUM = "below_minimum"
    NO_BREAKPOINT = "no_breakpoint"
    NOT_YET_WRITTEN = "not_yet_written"
    """The response that writes the entry had not begun (calls side by side)."""


@dataclass(frozen=True, slots=True)
class Break:
    """The first place at which a request stops to repeat the one before it."""

    turn: int
    """The turn that changed, from 1."""
    reason: Reason
    path: str
    offset: int
    """Bytes of the earlier request, in the provider's order, that are repeated."""
    before: str
    after: str
    """Snippets from the place on, at most 60 characters."""
    detail: str
    """`tools reordered (same set)`, `thinking dropped at messages[3]`, `time differs`, ..."""
    lost: Tokens
    """Tokens of the earlier request that must be read again."""
    saved: int
    """Tokens by which the request is smaller than the one before it; negative when it is larger."""


@dataclass(frozen=True)
class Reading:
    """A request, taken apart."""

    prompt: Prompt
    segments: tuple[Segment, ...]
    listing: Listing
    context: Tokens | None = None
    """Its tokens by the provider, when known."""

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Tokens of each segment; they add up to the context when it is known."""
        sizes = {item.path: size for item, size in zip(self.listing.items, self.listing.sizes, strict=True)}
        counts = [sizes.get(part.path, 0) for part in self.segments]
        return tuple(counts if self.context is None else apportion(self.context, counts))

    @cached_property
    def tokens(self) -> int:
        """Of the whole request."""
        if self.context is not None and self._begins_with_something:
            return self.context  # as the weights would add up to; few requests need these
        return sum(self.weights)

    @property
    def _begins_with_something(self) -> bool:
        items, sizes = self.listing
        return bool(self.segments and items and sizes[0] and items[0].path == self.segments[0].path)

    @property
    def messages_start(self) -> int:
        """Index of the first segment that is neither a tool nor system."""
        return sum(1 for part in self.segments if part.section != "messages")


_MATTERS = frozenset(
    {"tool_choice", "thinking", "reasoning", "output_format", "output_config", "response_format", "speed"}
)


def params(prompt: Prompt) -> Mapping[str, str]:
    """The parameters that a cached prefix depends on."""
    return {name: value for name, value in prompt.params.items() if name in _MATTERS}


def shared_bytes(before: Reading, after: Reading, index: int) -> int:
    """Bytes that two differing segments share at their start."""
    if index >= min(len(before.segments), len(after.segments)):
        return 0
    one, other = before.segments[index].data, after.segments[index].data
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


_SNIPPET = 60
_ORDER = {"tools": 0, "system": 1, "messages": 2}


class Place(NamedTuple):
    """Two requests and the first segment in which they differ."""

    turn: int
    reason: Reason
    before: Reading
    after: Reading
    at: int
    """Of the first segment that isn't repeated."""
    shared: int
    """Bytes of it that are."""

    def described(self) -> Break:
        """The break, in words and numbers."""
        old, new = self._segment(self.before), self._segment(self.after)
        lost = sum(self.before.weights[self.at :])
        if old and old.data:
            lost -= self.before.weights[self.at] * self.shared // len(old.data)
        return Break(
            turn=self.turn,
            reason=self.reason,
            path=self._path(old, new),
            offset=sum(len(part.data) for part in self.before.segments[: self.at]) + self.shared,
            before=self._snippet(old),
            after=self._snippet(new),
            detail=self._detail(old, new),
            lost=Tokens(lost),
            saved=self.before.tokens - self.after.tokens,
        )

    def _segment(self, reading: Reading) -> Segment | None:
        return reading.segments[self.at] if self.at < len(reading.segments) else None

    def _path(self, old: Segment | None, new: Segment | None) -> str:
        if self.reason is Reason.MODEL_CHANGED:
            return "model"
        if self.reason is Reason.PARAMS_CHANGED:
            return ", ".join(self._changedparams())
        here = min((part for part in (old, new) if part), key=lambda part: _ORDER[part.section], default=None)
        return here.path if here else ""

    def _changedparams(self) -> list[str]:
        one, other = params(self.before.prompt), params(self.after.prompt)
        return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))

    def _snippet(self, part: Segment | None) -> str:
        return part.data[self.shared :].decode("utf-8", "replace")[:_SNIPPET] if part else ""

    def _detail(self, old: Segment | None, new: Segment | None) -> str:
        match self.reason:
            case Reason.MODEL_CHANGED:
                return f"{self.before.prompt.model} -> {self.after.prompt.model}"
            case Reason.PARAMS_CHANGED:
                return f"{', '.join(self._changedparams())} changed"
            case Reason.TOOLS_CHANGED:
                return _tools_detail(self.before.prompt, self.after.prompt)
            case _:
                return self._text_detail(old, new)

    def _text_detail(self, old: Segment | None, new: Segment | None) -> str:
        if old is None or new is None:
            return "cut off here" if new is None else "added"
        later = self.before.segments[self.at + 1 :]
        if old.kind in _THINKING and new.data in {part.data for part in later[:2]}:
            return f"thinking dropped at {old.path.partition('.')[0]}"
        if any(part.data == new.data for part in later):
            return f"{old.path} removed, what followed it moved up"
        if any(part.data == old.data for part in self.after.segments[self.at + 1 :]):
            return f"something inserted before {old.path}"
        return _change(old.data.decode("utf-8", "replace"), new.data.decode("utf-8", "replace"))


_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})


def _change(old: str, new: str) -> str:
    if len(new) < len(old) / 2:
        return f"shortened from {len(old):,} to {len(new):,} characters"
    at = next((index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    kind = kind_of_change(old, new, at)
    return f"{kind} differs" if kind else "text differs"


def _tools_detail(before: Prompt, after: Prompt) -> str:
    old, new = {tool.name: tool.raw for tool in before.tools}, {tool.name: tool.raw for tool in after.tools}
    if sorted(old.values()) == sorted(new.values()):
        return "tools reordered (same set)" if list(old) != list(new) else "keys reordered in a definition"
    if not new:
        return f"all {len(old)} tools dropped"
    return "; ".join(_listed(old, new))


def _listed(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    groups: Sequence[tuple[str, list[str]]] = (
        ("added", [name for name in new if name not in old]),
        ("removed", [name for name in old if name not in new]),
        ("changed", [name for name in new if name in old and old[name] != new[name]]),
    )
    for word, names in groups:
        if names:
            yield f"{word}: {', '.join(names)}"

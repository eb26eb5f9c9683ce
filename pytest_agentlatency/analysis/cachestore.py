"""The two kinds of prompt cache that providers run: entries at marked places, and the longest common prefix.

Owns what is kept, for how long, and what is found again. Refuses to know who asks, and what the provider reported.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from pytest_agentlatency.analysis.breaks import Reading, Reason, params
from pytest_agentlatency.analysis.cacherules import CacheRules
from pytest_agentlatency.analysis.wirebytes import Segment
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.wire.message import Prompt

_SECOND = 1_000_000_000


class Split(NamedTuple):
    """A context by what a cache did with it."""

    read: Tokens
    written: Tokens
    uncached: Tokens

    @property
    def total(self) -> Tokens:
        """The whole context."""
        return Tokens(self.read + self.written + self.uncached)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as keys: the key of a place stands for everything up to and including it."""

    settings: str
    """Model and parameters that a cached message depends on."""
    parts: tuple[Segment, ...]
    keys: tuple[bytes, ...]
    ends: tuple[int, ...]
    """Tokens up to and including each segment."""
    marks: tuple[tuple[int, bool], ...]
    """Indices of the segments with a breakpoint, and whether it asks for the longer lifetime."""
    at: int | None
    began: int | None

    @property
    def total(self) -> int:
        """Tokens of the whole request."""
        return self.ends[-1] if self.ends else 0


def request_of(reading: Reading, rules: CacheRules, times: tuple[int | None, int | None]) -> Request:
    """A request as the cache keys it. `times`: when it was sent, and when its response began."""
    prompt, parts, counts = reading.prompt, reading.segments, reading.weights
    order = sorted(range(len(parts)), key=lambda index: _TEMPLATE[parts[index].section] if rules.system_first else 0)
    ordered = tuple(parts[index] for index in order)
    settings = f"{prompt.model} {params(prompt)}"
    return Request(
        settings=settings,
        parts=ordered,
        keys=_keys(prompt.model, settings, ordered),
        ends=tuple(accumulate(counts[index] for index in order)),
        marks=_marks(prompt, ordered, rules),
        at=times[0],
        began=times[1],
    )


def _marks(prompt: Prompt, parts: Sequence[Segment], rules: CacheRules) -> tuple[tuple[int, bool], ...]:
    """Index and lifetime (long or not) of the breakpoints that count."""
    marks = {index: part.ttl == "1h" for index, part in enumerate(parts) if part.marked}
    if parts and (rules.implicit or "cache_control" in prompt.params):
        long = "1h" in prompt.params.get("cache_control", "")
        marks[len(parts) - 1] = long or "24h" in prompt.params.get("prompt_cache_retention", "")
    return tuple(sorted(marks.items()))[-rules.breakpoints or None :]


_TEMPLATE = {"system": 0, "tools": 1, "messages": 2}


def _keys(model: str, settings: str, parts: Sequence[Segment]) -> tuple[bytes, ...]:
    running = hashlib.blake2b(model.encode(), digest_size=16)
    keys: list[bytes] = []
    section = ""
    for part in parts:
        if part.section == "messages" != section:
            running.update(settings.encode())
        section = part.section
        running.update(len(part.data).to_bytes(8, "big") + part.data)
        keys.append(running.digest())
    return tuple(keys)


@dataclass(slots=True)
class _Entry:
    tokens: int
    ready: int | None
    """From when on it can be read."""
    expires: int | None
    ttl: int

    def expired(self, at: int | None) -> bool:
        return at is not None and self.expires is not None and at > self.expires

    def coming(self, at: int | None) -> bool:
        return at is not None and self.ready is not None and at < self.ready

    def touch(self, at: int | None) -> None:
        self.expires = None if at is None or not self.ttl else at + self.ttl


def _entry(tokens: int, request: Request, rules: CacheRules, *, long: bool) -> _Entry:
    entry = _Entry(tokens, request.began, None, (rules.ttl_long if long else rules.ttl) * _SECOND)
    entry.touch(request.at)
    return entry


class Breakpoints:
    """A cache that writes and reads at marked places only (Anthropic; OpenAI from GPT-5.6 on)."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._entries: dict[bytes, _Entry] = {}
        self.left = 0
        """Tokens that the last request left in the cache."""

    def take(self, request: Request) -> tuple[Split, Reason | None]:
        """What is read and written, and what kept more from being read, as far as the cache can tell."""
        marked = {mark: long for mark, long in request.marks if request.ends[mark] >= self._rules.minimum}
        marks = list(marked)
        hit, why = self._look_up(request, marks)
        read = min(hit.tokens, request.total) if hit else 0
        end = max([read, *(request.ends[mark] for mark in marks)])
        self.left = end
        if hit:
            hit.touch(request.at)
        self._write(request, marked)
        if not marks:
            why = Reason.BELOW_MINIMUM if request.marks else Reason.NO_BREAKPOINT
        return Split(Tokens(read), Tokens(end - read), Tokens(request.total - end)), why

    def _look_up(self, request: Request, marks: Sequence[int]) -> tuple[_Entry | None, Reason | None]:
        """The longest entry within reach of a breakpoint, and what kept the longest one of all from being read."""
        known = [(index, self._entries[key]) for index, key in enumerate(request.keys) if key in self._entries]
        reach = self._rules.lookback or len(request.keys)
        near = [(index, entry) for index, entry in known if any(mark - reach < index <= mark for mark in marks)]
        alive = [entry for _, entry in near if not entry.expired(request.at) and not entry.coming(request.at)]
        return (alive[-1] if alive else None), self._obstacle(request, known, near)

    def _obstacle(
        self, request: Request, known: Sequence[tuple[int, _Entry]], near: Sequence[tuple[int, _Entry]]
    ) -> Reason | None:
        if not known:
            return None
        longest = known[-1]
        if longest[1].expired(request.at):
            return Reason.TTL_EXPIRED
        if longest[1].coming(request.at):
            return Reason.NOT_YET_WRITTEN
        return None if near and near[-1] == longest else Reason.LOOKBACK_EXCEEDED

    def _write(self, request: Request, marks: Mapping[int, bool]) -> None:
        for mark, long in marks.items():
            known = self._entries.get(request.keys[mark])
            if known is None or known.expired(request.at):
                self._entries[request.keys[mark]] = _entry(request.ends[mark], request, self._rules, long=long)
        for key in list(self._entries)[: -self._rules.entries] if self._rules.entries else ():
            del self._entries[key]


@dataclass(slots=True)
class _Whole:
    request: Request
    entry: _Entry


@dataclass(slots=True)
class Prefixes:
    """A cache of the longest common prefix (OpenAI up to GPT-5.5, vLLM, llama.cpp)."""

    _rules: CacheRules
    _wholes: list[_Whole] = field(default_factory=list[_Whole])
    left: int = 0
    """Tokens that the last request left in the cache."""

    def take(self, request: Request) -> tuple[Split, Reason | None]:
        """What is read and written, and what kept more from being read, as far as the cache can tell."""
        best, why = 0, None
        for whole in self._wholes:
            repeated = _shared(whole.request, request) + (_answer(whole.request, request) if self._rules.output else 0)
            shared = self._rounded(repeated, request.total)
            expired, coming = whole.entry.expired(request.at), whole.entry.coming(request.at)
            if shared > best and not expired and not coming:
                best, why = shared, None
                whole.entry.touch(request.at)
            elif shared > best:
                why = Reason.TTL_EXPIRED if expired else Reason.NOT_YET_WRITTEN
        self.left = self._rounded(request.total, request.total)
        self._wholes.append(
            _Whole(request, _entry(request.total, request, self._rules, long=any(long for _, long in request.marks)))
        )
        if self._rules.entries:
            del self._wholes[: -self._rules.entries]
        if request.total < self._rules.minimum:
            why = Reason.BELOW_MINIMUM
        return Split(Tokens(best), Tokens(0), Tokens(request.total - best)), why

    def _rounded(self, shared: int, total: int) -> int:
        usable = min(shared, total - self._rules.evaluated)
        whole = max(0, usable) // self._rules.block * self._rules.block
        return whole if whole >= self._rules.minimum else 0


def _shared(before: Request, after: Request) -> int:
    """Tokens of the earlier request up to the first byte that differs."""
    pairs = range(min(len(before.keys), len(after.keys)))
    # A key stands for all before it, so that equal keys come first and different ones after.
    equal = bisect_left(pairs, 1, key=lambda at: before.keys[at] != after.keys[at])
    tokens = before.ends[equal - 1] if equal else 0
    if before.settings != after.settings or equal in {len(before.keys), len(after.keys)}:
        return tokens
    one, other = before.parts[equal].data, after.parts[equal].data
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return tokens + (before.ends[equal] - tokens) * same // max(1, len(one))


def _answer(before: Request, after: Request) -> int:
    """Tokens of the answer to the earlier request, when the later one goes on from it."""
    start = end = len(before.keys)
    if not start or start >= len(after.keys) or before.keys[-1] != after.keys[start - 1]:
        return 0
    while end < len(after.parts) and after.parts[end].data.startswith(_BY_MODEL):
        end += 1
    return after.ends[end - 1] - after.ends[start - 1]


_BY_MODEL = (b"assistant:", b"model:")

"""What the simulated model charges: tokens by a stated rule, a prefix cache, nanoseconds by a stated formula.

Owns the rule, the cache and the formula; every figure can be worked out by hand. Refuses to know HTTP and providers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Literal

from pytest_agentlatency.analysis.prefill import LatencyModel

CacheRule = Literal["off", "prefix", "markers"]
"""`off`; `prefix`: every block of a prefix seen before is read; `markers`: Anthropic's `cache_control`."""

BYTES_PER_TOKEN = 4
LOOKBACK = 20
"""Blocks that a cache marker looks back for an entry written earlier; Anthropic documents 20."""


def count_tokens(text: str) -> int:
    """Tokens of a text by the simulated model's rule: UTF-8 bytes / 4, rounded up; 0 for an empty text."""
    return -(-len(text.encode(errors="surrogatepass")) // BYTES_PER_TOKEN)


def split_tokens(text: str, tokens: int, first: int | None = None) -> tuple[tuple[str, int], ...]:
    """Cut a text into pieces of so many tokens each, as (piece, its tokens); the first may have another size.

    The last has what is left. Pieces are never empty and never split a character: a character has at most 4 bytes, so
    that a text has at least as many characters as tokens.
    """
    count = count_tokens(text)
    edges = sorted({0, *range(min(first or tokens, count), count, tokens), count})
    return tuple(
        (text[start * len(text) // count : end * len(text) // count], end - start) for start, end in pairwise(edges)
    )


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One block of a prompt as the model sees it, in the order tools, system, messages."""

    key: str
    """Equal for equal blocks; cache markers left out."""
    tokens: int
    marked: bool = False
    """Carries a cache breakpoint."""


@dataclass(frozen=True, slots=True)
class InputTokens:
    """Input tokens of one request; the three add up to the context."""

    uncached: int
    read: int = 0
    written: int = 0

    @property
    def context(self) -> int:
        """All input tokens."""
        return self.uncached + self.read + self.written

    @property
    def work(self) -> int:
        """Tokens that had to be prefilled: all that were not read from the cache."""
        return self.uncached + self.written


@dataclass(frozen=True, slots=True)
class Cost:
    """What one answer takes on the model's own clock, in nanoseconds."""

    queue: int = 0
    prefill: int = 0
    """Prefill begun -> first generated token."""
    decode: int = 0
    """First -> last generated token."""
    output: int = 0
    """Generated tokens; they are spread evenly over `decode`."""

    def scaled(self, factor: float) -> "Cost":
        """The same with every time multiplied by the factor, rounded to whole nanoseconds."""
        queue, prefill, decode = (round(factor * each) for each in (self.queue, self.prefill, self.decode))
        return Cost(queue, prefill, decode, self.output)

    @property
    def first_token(self) -> int:
        """Request received -> first generated token."""
        return self.queue + self.prefill

    @property
    def last_token(self) -> int:
        """Request received -> last generated token."""
        return self.first_token + self.decode

    def token(self, number: int) -> int:
        """Request received -> generated token of this number, from 1; for 0, the first token's time."""
        return self.first_token + self.decode * max(0, number - 1) // max(1, self.output - 1)


@dataclass(frozen=True, slots=True)
class CostModel:
    """How long the simulated model takes. Times are integer nanoseconds; all 0 answers at once.

    With P tokens read from the cache and D tokens prefilled, of which the cache knew nothing:

        prefill = fixed + prefill * D + attention * (2*P*D + D*D) / 1000
        decode  = decode * (output tokens - 1)

    the cost law of a transformer: a constant, a part linear in the new tokens, and attention of every new token to all
    before it.
    """

    connect: int = 0
    """Added to the first answer on a new connection. The kernel completes a loopback handshake by itself, so without
    TLS a client sees this after it sent its request, with TLS as part of the handshake."""
    queue: int = 0
    fixed: int = 0
    prefill: int = 0
    """Nanoseconds per token prefilled."""
    attention: int = 0
    """Picoseconds per pair of tokens; with `prefill` 30,000 ns and attention as costly as the rest at 60,000 tokens,
    500."""
    decode: int = 0
    """Nanoseconds per output token after the first."""
    cache: CacheRule = "off"
    cache_minimum: int = 0
    """Shorter prefixes, in tokens, are neither written nor read."""

    @classmethod
    def from_latency(cls, latency: LatencyModel, *, decode: int = 0, cache: CacheRule = "off") -> "CostModel":
        """The costs that a latency model was fitted on: `CostModel.from_latency(calibration.latency)`."""
        attention = round(1000 * latency.token_ns / (2 * latency.attention_tokens))
        return cls(
            fixed=round(latency.fixed_ns),
            prefill=round(latency.token_ns),
            attention=attention,
            decode=decode,
            cache=cache,
        )

    def cost(self, tokens: InputTokens, output: int) -> Cost:
        """What a request with these input tokens and so many output tokens takes."""
        cached, new = tokens.read, tokens.work
        pairs = 2 * cached * new + new * new
        prefill = self.fixed + self.prefill * new + self.attention * pairs // 1000
        return Cost(self.queue, prefill, self.decode * max(0, output - 1), output)


class PrefixCache:
    """Which prefixes were prefilled before.

    Entries never expire; prompts are entered, answers aren't; an entry is readable from the time of the answer's first
    token, so that requests sent side by side miss, as Anthropic documents it.
    """

    def __init__(self, rule: CacheRule = "off", minimum: int = 0) -> None:
        self._rule = rule
        self._minimum = minimum
        self._readable: dict[bytes, int] = {}

    def count(self, blocks: Sequence[PromptBlock], at: int = 0) -> InputTokens:
        """Input tokens of a prompt against what can be read at a time; changes nothing.

        `prefix` reads the longest known run of leading blocks, at least one token short of the whole prompt.
        `markers` reads up to the longest known prefix that ends at a marked block or at most 20 blocks before one, and
        writes from there to the last marked block.
        """
        total = sum(block.tokens for block in blocks)
        if self._rule == "off" or not blocks:
            return InputTokens(total)
        read = self._tokens(blocks, self._known(blocks, at))
        if self._rule == "prefix":
            read = min(read, total - 1) if total else 0
            return InputTokens(total - read, read)
        marked = self._tokens(blocks, max(_marks(blocks), default=0))
        written = max(0, marked - read)
        return InputTokens(total - read - written, read, written)

    def store(self, blocks: Sequence[PromptBlock], at: int = 0) -> None:
        """Enter a prompt, readable from a time on: each of its prefixes, or with `markers` those that end at a mark."""
        if self._rule == "off":
            return
        chain = _chain(blocks)
        ends = _marks(blocks) if self._rule == "markers" else range(1, len(blocks) + 1)
        for end in ends:
            if self._tokens(blocks, end):
                self._readable[chain[end - 1]] = min(at, self._readable.get(chain[end - 1], at))

    def _known(self, blocks: Sequence[PromptBlock], at: int) -> int:
        """Length in blocks of the longest known prefix that the rule may read."""
        chain = _chain(blocks)
        ends = set(range(1, len(blocks) + 1))
        if self._rule == "markers":
            ends = {end for mark in _marks(blocks) for end in range(max(1, mark - LOOKBACK), mark + 1)}
        return max((end for end in ends if self._readable.get(chain[end - 1], at + 1) <= at), default=0)

    def _tokens(self, blocks: Sequence[PromptBlock], end: int) -> int:
        tokens = sum(block.tokens for block in blocks[:end])
        return tokens if tokens >= self._minimum else 0


def _marks(blocks: Sequence[PromptBlock]) -> list[int]:
    return [number for number, block in enumerate(blocks, 1) if block.marked]


def _chain(blocks: Sequence[PromptBlock]) -> list[bytes]:
    """For each block, a digest of it and all before it."""
    digests: list[bytes] = []
    last = b""
    for block in blocks:
        last = blake2b(last + block.key.encode(errors="surrogatepass"), digest_size=16).digest()
        digests.append(last)
    return digests

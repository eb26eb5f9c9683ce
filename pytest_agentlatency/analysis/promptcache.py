"""What a provider's prompt cache would have read and written, request by request.

Owns a pure simulation: prompts, times and rules in, tokens out. Where the provider said what it did, its word stands
beside the prediction and wins. Refuses to know prices, and what other users do to a shared cache.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_agentlatency.analysis.breaks import Break, Reading, Reason
from pytest_agentlatency.analysis.cacherules import CacheRules
from pytest_agentlatency.analysis.cachestore import Breakpoints, Prefixes, Split, request_of
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.inventory import Inventory
from pytest_agentlatency.analysis.prefix import Sent, compared, reading
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.usage import Usage


class Asked(NamedTuple):
    """One request as a cache meets it."""

    sent: Sent
    at: Ns | None = None
    """When it was sent. Without times nothing expires and every entry is there in time."""
    began: Ns | None = None
    """When its response began: what it writes can be read from then on."""
    lane: int = 1
    usage: Usage | None = None
    miss_reason: str = ""
    """The provider's own diagnosis."""


@dataclass(frozen=True, slots=True)
class CacheTurn:
    """Prediction and record of one request."""

    lane: int
    turn: int
    """Within its lane, from 1."""
    predicted: Split
    reason: Reason | None = None
    """Why less was read than the lane's previous request had left; None when nothing was missed."""
    broken: Break | None = None
    """Where the prefix broke, when it did."""
    recorded: Split | None = None
    recorded_reason: str = ""

    @property
    def split(self) -> Split:
        """The record where there is one, the prediction otherwise."""
        return self.recorded or self.predicted

    @property
    def miss_reason(self) -> str:
        """The provider's diagnosis where there is one, the predicted one otherwise; empty when nothing was missed."""
        return self.recorded_reason or (self.reason.value if self.reason else "")


def simulate(requests: Iterable[Asked], rules: CacheRules, counter: Counter) -> tuple[CacheTurn, ...]:
    """What the cache would have done with each request. They share the cache, in the order given (that of sending)."""
    known = list(requests)
    inventory = Inventory(counter)
    readings = [reading(each.sent, inventory) for each in known]
    broken = _breaks([each.lane for each in known], readings)
    cache = Prefixes(rules) if rules.match == "prefix" else Breakpoints(rules)
    turns: dict[int, int] = defaultdict(int)
    left: dict[int, int] = {}
    found: list[CacheTurn] = []
    for index, each in enumerate(known):
        turns[each.lane] += 1
        request = request_of(readings[index], rules, (each.at, each.began))
        split, why = cache.take(request)
        missed = each.lane in left and split.read < min(left[each.lane], request.total)
        reason = _reason(broken[index], why) if missed or why in _STANDING else None
        left[each.lane] = cache.left
        found.append(
            CacheTurn(
                each.lane, turns[each.lane], split, reason, broken[index], _recorded(each.usage), each.miss_reason
            )
        )
    return tuple(found)


def predicted_cache_n(lane: Iterable[Sent], rules: CacheRules, counter: Counter) -> tuple[int, ...]:
    """For each request of one conversation, the tokens that a server reports as read from its cache (`cache_n`).

    Give each request its own token count as `context` (llama.cpp: `cache_n + prompt_n`).
    """
    return tuple(turn.predicted.read for turn in simulate(map(Asked, lane), rules, counter))


_STANDING = frozenset({Reason.NO_BREAKPOINT, Reason.BELOW_MINIMUM})
"""Reasons that hold for a request by itself, a lane's first one included."""


def _reason(broken: Break | None, why: Reason | None) -> Reason | None:
    if why in _STANDING or why is Reason.TTL_EXPIRED or broken is None:
        return why
    return broken.reason


def _breaks(lanes: Sequence[int], readings: Sequence[Reading]) -> list[Break | None]:
    """For each request, where it stops to repeat the one before it in its lane."""
    members: dict[int, list[int]] = defaultdict(list)
    for index, lane in enumerate(lanes):
        members[lane].append(index)
    found: list[Break | None] = [None] * len(readings)
    for indices in members.values():
        for index, turn in zip(indices, compared([readings[i] for i in indices]), strict=True):
            found[index] = turn.broken
    return found


def _recorded(usage: Usage | None) -> Split | None:
    if usage is None or usage.uncached is None:
        return None
    return Split(usage.cache_read, usage.cache_write, usage.uncached)

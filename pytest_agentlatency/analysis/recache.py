"""What the prompt cache does with requests that differ from the recorded ones.

Owns the calibration of a simulated cache by the record: what was read then stays read, unless the rules say that the
live request shares less, or more, with what went before it. Refuses to know time and what a token costs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.cacherules import CacheRules, rules_for
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.prefix import Sent, prefixes
from pytest_agentlatency.analysis.promptcache import Asked, CacheTurn, simulate
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.usage import Tokens, Usage

_UNKNOWN = CacheRules("unknown", evaluated=1)
"""Of a provider without published rules: the longest common prefix."""


@dataclass(frozen=True, slots=True)
class Recached:
    """The live usage of one call, and why it reads less than recorded, when it does."""

    usage: Usage
    miss: str = ""


def recached(
    recorded: Sequence[Reading], live: Sequence[Reading], contexts: Sequence[Tokens | None], counter: Counter
) -> tuple[Recached, ...]:
    """For each call, the recorded usage as the live requests make it.

    recorded, live: pairwise; contexts: of the live requests. A call whose context is unknown keeps what was recorded.
    """
    rules = _rules(recorded, counter)
    before = _simulated(recorded, rules, [each.call.usage.context for each in recorded], counter)
    after = _simulated(live, rules, contexts, counter)
    kept = _kept_share(recorded, before)
    return tuple(
        _moved(_Pair(old, new, then, now, kept[old.lane]), context, counter)
        for old, new, context, then, now in zip(recorded, live, contexts, before, after, strict=True)
    )


def promised(readings: Sequence[Reading], counter: Counter) -> list[int]:
    """Tokens that each call would read if the cache did all that the published rules promise."""
    contexts = [each.call.usage.context for each in readings]
    turns = _simulated(readings, [rules_of(each) for each in readings], contexts, counter)
    return [turn.predicted.read for turn in turns]


def rules_of(reading: Reading) -> CacheRules:
    """The published rules of the cache that a call met; a plain longest prefix where none are known."""
    call = reading.call
    response = call.attempts[-1].response if call.attempts else None
    server = (response.header("server") or "") if response else ""
    known = rules_for("llama.cpp") if server.startswith("llama.cpp") else rules_for(call.provider, call.model)
    return known or _UNKNOWN


def _rules(recorded: Sequence[Reading], counter: Counter) -> Sequence[CacheRules]:
    """For each call, the published rules, or a plain longest prefix where that explains better what was read.

    Gateways and local servers speak a provider's format and keep a cache of their own.
    """
    published = [rules_of(each) for each in recorded]
    plain = [_UNKNOWN] * len(recorded)
    if not any(each.call.usage.cache_read for each in recorded):
        return published
    contexts = [each.call.usage.context for each in recorded]
    off = [_off(recorded, _simulated(recorded, rules, contexts, counter)) for rules in (published, plain)]
    return plain if off[1] < off[0] else published


def _off(recorded: Sequence[Reading], simulated: Sequence[CacheTurn]) -> int:
    """Tokens by which the reads were not as simulated."""
    pairs = zip(recorded, simulated, strict=True)
    return sum(abs(reading.call.usage.cache_read - turn.predicted.read) for reading, turn in pairs)


def _simulated(
    readings: Sequence[Reading], rules: Sequence[CacheRules], contexts: Sequence[Tokens | None], counter: Counter
) -> Sequence[CacheTurn]:
    """What each provider's cache would have done, in the order of the calls."""
    groups: dict[tuple[CacheRules, str], list[int]] = defaultdict(list)
    for index, reading in enumerate(readings):
        groups[rules[index], reading.call.provider].append(index)
    found: dict[int, CacheTurn] = {}
    for (each, _), members in groups.items():
        asked = [_asked(readings[index], contexts[index]) for index in members]
        found.update(zip(members, simulate(asked, each, counter), strict=True))
    return [found[index] for index in range(len(readings))]


def _asked(reading: Reading, context: Tokens | None) -> Asked:
    at, attempts = reading.call.milestones, reading.call.attempts
    body = attempts[-1].request.body if attempts else b""
    return Asked(Sent(reading.prompt, body, context), at.sent or at.call, at.first_event, reading.lane)


def _kept_share(recorded: Sequence[Reading], simulated: Sequence[CacheTurn]) -> Mapping[int, float]:
    """By lane, how much of what the rules promise was really read: 0 for a server without a cache."""
    read: dict[int, int] = defaultdict(int)
    promised: dict[int, int] = defaultdict(int)
    for reading, turn in zip(recorded, simulated, strict=True):
        read[reading.lane] += min(reading.call.usage.cache_read, turn.predicted.read)
        promised[reading.lane] += turn.predicted.read
    return {each.lane: read[each.lane] / promised[each.lane] if promised[each.lane] else 0.0 for each in recorded}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A recorded call, the live one, and what the rules promised each."""

    recorded: Reading
    live: Reading
    before: CacheTurn
    after: CacheTurn
    kept: float


def _moved(pair: _Pair, context: Tokens | None, counter: Counter) -> Recached:
    usage = pair.recorded.call.usage
    if context is None or usage.uncached is None:
        return Recached(usage)
    if usage.multi_pass:  # a sum over passes, of which each grew by the difference at least
        return Recached(divided(usage, context, usage.cache_read) if context != usage.context else usage)
    read = max(0, min(_read(pair, counter), context))
    if context == usage.context and read == usage.cache_read:
        return Recached(usage)
    return Recached(divided(usage, context, read), pair.after.miss_reason if read < usage.cache_read else "")


def _read(pair: _Pair, counter: Counter) -> int:
    """Tokens read now: the recorded ones, scaled by what the rules promise now and promised then."""
    recorded = int(pair.recorded.call.usage.cache_read)
    then, now = pair.before.predicted.read, pair.after.predicted.read
    if recorded > then:
        # Somebody else's request had filled the cache, one that began as the recorded one did.
        return max(now, min(recorded, _shared(pair.recorded, pair.live, counter)))
    if then == now:
        return recorded
    return round(recorded / then * now) if then else round(pair.kept * now)


def _shared(recorded: Reading, live: Reading, counter: Counter) -> int:
    """Tokens that both requests begin with."""
    old = _asked(recorded, recorded.call.usage.context).sent
    return prefixes([old, _asked(live, None).sent], counter)[1].shared


def divided(usage: Usage, context: int, read: int) -> Usage:
    """A usage with another context, so much of it read from the cache, the answer as recorded.

    What isn't read is written where the recorded call wrote, but for the uncached tail that it had.
    """
    rest = max(0, context - read)
    tail = min(int(usage.uncached or 0), rest) if usage.cache_write else rest
    return replace(
        usage,
        uncached=Tokens(tail),
        cache_write=Tokens(rest - tail),
        cache_read=Tokens(min(read, context)),
        provenance=Provenance.PROJECTED,
        output_from=usage.output_provenance,
    )

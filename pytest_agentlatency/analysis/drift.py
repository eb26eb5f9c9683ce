"""A replay as a run: the recorded times and answers, with the requests that the agent sends now.

Owns what a changed request does to token counts, and what a call that was recorded and not made does to the timeline.
Times stay recorded here; `analysis.retiming` projects them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.changes import Changes
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.recache import Recached, recached
from pytest_agentlatency.analysis.tokens import Ruler, size
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Attempt, Pause, Recording, Request
from pytest_agentlatency.model.run import Difference, Drift, Run, Verdict
from pytest_agentlatency.model.usage import Tokens, Usage


@dataclass(frozen=True, slots=True)
class LiveCall:
    """One call of the agent as it is now, and the recorded call that answered it."""

    recorded: int
    """`CallRecord.id` in the recording."""
    request: Request
    verdict: Verdict
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay's run beside the readings it was made of, live and recorded, in the order of the recording."""

    run: Run
    readings: tuple[Reading, ...]
    recorded: tuple[Reading, ...]
    """The recorded calls that were made; pairwise with `readings`."""
    recording: Recording = Recording()
    """The recorded times, calls that were not made taken out."""
    unmade: tuple[Reading, ...] = ()
    """The recorded calls that were not made."""


def replayed(recording: Recording, live: Sequence[LiveCall], counter: Counter) -> Replayed:
    """The run of an agent that made these calls against this recording.

    A live request equal to the recorded one changes nothing. A drifted one keeps answer and times; its context is the
    recorded usage plus the scaled difference of counts. Recorded calls that were not made are taken out, time and all.
    """
    recorded = assembly.read(recording)
    made = {each.recorded: each for each in live}
    kept = tuple(reading for reading in recorded if reading.call.record.id in made)
    readings = tuple(_judged(kept, _live_readings(recording, live), made, counter))
    shortened = _without_unmade(recording, recorded, made)
    run = assembly.from_readings(readings, shortened, provenance=Provenance.REPLAYED)
    unmade = tuple(reading for reading in recorded if reading.call.record.id not in made)
    return Replayed(replace(run, recorded_turns=len(recorded)), readings, kept, shortened, unmade)


def _live_readings(recording: Recording, live: Sequence[LiveCall]) -> Mapping[int, Reading]:
    """What the live requests put before the model, histories held by the server filled in, by recorded call."""
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in recording.attempts:
        attempts[attempt.call].append(attempt)
    if all(attempts[each.recorded][0].request.body == each.request.body for each in live if attempts[each.recorded]):
        return {}  # nothing changed, to the byte: the recorded readings are the live ones
    records = {record.id: record for record in recording.calls}
    order = dict(enumerate(live, start=1))
    now = Recording(
        attempts=tuple(
            replace(attempt, call=number, request=each.request)
            for number, each in order.items()
            for attempt in attempts[each.recorded]
        ),
        calls=tuple(replace(records[each.recorded], id=number) for number, each in order.items()),
    )
    return {order[reading.call.record.id].recorded: reading for reading in assembly.read(now)}


def _judged(
    kept: Sequence[Reading], live: Mapping[int, Reading], made: Mapping[int, LiveCall], counter: Counter
) -> Iterable[Reading]:
    sent = [_sent(reading, live.get(reading.call.record.id), made[reading.call.record.id]) for reading in kept]
    return weighed(kept, sent, counter)


def weighed(kept: Sequence[Reading], sent: Sequence[Reading], counter: Counter) -> Sequence[Reading]:
    """Recorded calls that sent other requests, with what those would have been billed and read from a cache.

    kept, sent: pairwise, the same calls; the readings of `sent` when nothing differs.
    """
    rulers = _rulers(kept, counter)
    contexts = [
        rulers[old.call.model].live_context(old.call.usage, old.prompt, new.prompt)
        for old, new in zip(kept, sent, strict=True)
    ]
    drifted = [
        new.call.verdict is Verdict.DRIFTED or context != old.call.usage.context
        for old, new, context in zip(kept, sent, contexts, strict=True)
    ]
    if not any(drifted):
        return sent
    usages = recached(kept, sent, contexts, counter)
    lanes: dict[int, Changes] = defaultdict(lambda: Changes(counter))
    return [
        _drifted(old, new, context, now, lanes[old.lane]) if moved else _with_usage(new, now.usage)
        for old, new, context, now, moved in zip(kept, sent, contexts, usages, drifted, strict=True)
    ]


def _sent(recorded: Reading, live: Reading | None, pair: LiveCall) -> Reading:
    """The recorded call with the live request in it."""
    call = replace(recorded.call, verdict=pair.verdict)
    if live is None:
        return replace(recorded, call=call)
    attempts = tuple(replace(attempt, request=pair.request) for attempt in call.attempts)
    drift = Drift(None, None, pair.difference) if pair.difference else None
    return replace(recorded, prompt=live.prompt, call=replace(call, attempts=attempts, drift=drift))


def _drifted(old: Reading, new: Reading, context: Tokens | None, now: Recached, changes: Changes) -> Reading:
    """The live call with what it changed: in all, piece by piece, and in the cache."""
    before = old.call.usage.context
    delta = 0 if before is None or context is None else context - before
    drift = Drift(
        before,
        context,
        new.call.drift.difference if new.call.drift else None,
        changes.of(old.prompt, new.prompt, delta, old.turn) if before is not None else (),
        old.call.usage.cache_read,
        now.miss,
    )
    return replace(new, call=replace(new.call, verdict=Verdict.DRIFTED, drift=drift, usage=now.usage))


def _with_usage(reading: Reading, usage: Usage) -> Reading:
    return replace(reading, call=replace(reading.call, usage=usage))


def _rulers(readings: Sequence[Reading], counter: Counter) -> Mapping[str, Ruler]:
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for reading in readings:
        known = pairs[reading.call.model]
        context = reading.call.usage.context
        if context is not None and reading.whole and not reading.call.usage.multi_pass:
            known.append((size(reading.prompt, counter), context))
    return {model: Ruler.fit(known, counter, model) for model, known in pairs.items()}


def _without_unmade(recording: Recording, recorded: Sequence[Reading], made: Mapping[int, LiveCall]) -> Recording:
    """The recording with calls that were not made taken out, so that their time is nobody's."""
    unmade = [reading for reading in recorded if reading.call.record.id not in made]
    if not unmade:
        return recording
    gaps = [_gap(reading, recorded) for reading in unmade]
    owners = assembly.tool_owners(recorded, recording.tools)
    gone = {reading.call.record.id for reading in unmade}
    return replace(
        recording,
        attempts=tuple(each for each in recording.attempts if each.call not in gone),
        calls=tuple(each for each in recording.calls if each.id not in gone),
        tools=tuple(
            tool
            for tool in recording.tools
            if not any(lane == owners.get(tool.id) and start <= tool.start < end for lane, start, end in gaps)
        ),
        pauses=recording.pauses
        + tuple(Pause(Ns(start), Ns(end), "recorded turn not made") for _, start, end in gaps if end != _NEVER),
        bounds=None,
    )


_NEVER = 1 << 62


def _gap(reading: Reading, recorded: Sequence[Reading]) -> tuple[int, int, int]:
    """Lane, start and end of what a recorded turn took; without end when it was its lane's last."""
    later = [each for each in recorded if each.lane == reading.lane and each.turn > reading.turn]
    start = reading.call.record.entered or reading.call.milestones.call or 0
    following = later[0].call if later else None
    end = (following.record.entered or following.milestones.call or 0) if following else _NEVER
    return reading.lane, start, end

"""What a run would have taken with another agent, cache or model, answers unchanged.

Owns the four levers in the order in which they pay (context, prefix, tool output, model), what each assumes, and their
ranking. Each is a function from a run to a run: they compose. Refuses to promise that the model would answer the same.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_agentlatency.analysis import assembly, edits, retiming
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.drift import Replayed, weighed
from pytest_agentlatency.analysis.recache import divided, promised
from pytest_agentlatency.analysis.retiming import ModelOf, Retimed, Takes
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.model.usage import Usage

SUMMARY_TOKENS = 200
RESULT_TOKENS = 200
FASTER = 2.0
"""A model whose decode is twice as fast."""
SPECULATION = (2.0, 3.0, 1.3)
"""Speed-up of decode by speculative decoding, with its best and worst: 2-3 in the papers that introduced it (Leviathan
and others 2023, Chen and others 2023), less where drafts are often refused."""


@dataclass(frozen=True, slots=True)
class Start:
    """The run that the question is asked of."""

    told: Replayed
    model_of: ModelOf
    counter: Counter


Change = Callable[[Start], Retimed]


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing that could be changed."""

    rank: int
    """Place in the order in which levers pay, 1 to 4."""
    name: str
    change: Change
    note: str = ""
    """What it assumes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a lever would do to a run."""

    lever: Lever
    retimed: Retimed
    before: Run

    @property
    def run(self) -> Run:
        """The run with the lever pulled."""
        return self.retimed.run

    @property
    def saving(self) -> tuple[int, int, int] | None:
        """Nanoseconds saved, with the ends of the interval; negative when it costs. None without a latency model."""
        ends = (self.run, self.retimed.high, self.retimed.low)
        known = [each.duration for each in ends if each.duration is not None]
        if self.before.duration is None or len(known) < len(ends) or self.retimed.stale:
            return None
        saved, least, most = (self.before.duration - each for each in known)
        return saved, min(least, most, saved), max(least, most, saved)

    @property
    def work_saved(self) -> int:
        """Input tokens that need not be prefilled any more; negative when there are more."""
        return _work(self.before) - _work(self.run)

    @property
    def bottleneck(self) -> Phase | None:
        """The phase that would take most of the run."""
        phases = self.run.phases
        return max(phases, key=lambda phase: phases[phase], default=None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the lever assumes, and where it breaks the cached prefix."""
        return (*filter(None, [self.lever.note]), *self._breaks())

    @property
    def caution(self) -> str:
        """How far its times can be believed; empty where they may decide something."""
        return next(iter(self.retimed.stale.values()), "") or self.retimed.caution(None)

    def _breaks(self) -> Iterator[str]:
        for old, new in zip(self.before.all_turns, self.run.all_turns, strict=True):
            before, after = old.call.usage, new.call.usage
            more = (after.prefill_work or 0) - (before.prefill_work or 0)
            if after.cache_read < before.cache_read and more > 0 and self.lever.rank != _REUSE:
                now, then = units.tokens(after.prefill_work), units.tokens(before.prefill_work)
                yield f"breaks the cached prefix at turn {new.number}: {now} tokens to prefill there, {then} before"


def _work(run: Run) -> int:
    return sum(call.usage.prefill_work or 0 for call in run.calls)


# --- putting a change into a run


def altered(start: Start, usage_of: Callable[[int, Reading], Usage]) -> Retimed:
    """The run whose calls, given by place and reading, have other token counts."""
    readings = tuple(
        replace(each, call=replace(each.call, usage=usage_of(place, each)))
        for place, each in enumerate(start.told.readings)
    )
    return _retimed(start, readings)


def edited(start: Start, edit: edits.Edit, *, lanes: Iterable[int] | None = None) -> Retimed:
    """The run whose prompts, lane by lane, were edited."""
    chosen = None if lanes is None else frozenset(lanes)
    prompts: dict[int, list[int]] = defaultdict(list)
    sent = list(map(_bare, start.told.readings))
    for place, reading in enumerate(sent):
        prompts[reading.lane].append(place)
    for lane, places in prompts.items():
        if chosen is None or lane in chosen:
            changed = edit([sent[place].prompt for place in places])
            for place, prompt in zip(places, changed, strict=True):
                sent[place] = replace(sent[place], prompt=prompt)
    found = weighed(list(map(_bare, start.told.readings)), sent, start.counter)
    pairs = zip(start.told.readings, found, strict=True)
    return _retimed(start, tuple(_with_request(old, new) for old, new in pairs))


def _bare(reading: Reading) -> Reading:
    """The call without its body: an edited prompt has none, and keys of both must be made the same way."""
    attempts = tuple(replace(each, request=replace(each.request, body=b"")) for each in reading.call.attempts)
    return replace(reading, call=replace(reading.call, attempts=attempts))


def _with_request(old: Reading, new: Reading) -> Reading:
    return replace(new, call=replace(new.call, attempts=old.call.attempts))


def _retimed(start: Start, readings: tuple[Reading, ...]) -> Retimed:
    told = start.told
    run = assembly.from_readings(readings, told.recording, provenance=told.run.provenance)
    run = replace(run, recorded_turns=told.run.recorded_turns, notes=told.run.notes)
    return retiming.retime(replace(told, run=run, readings=readings, recorded=told.readings), start.model_of)


def combined(*changes: Change) -> Change:
    """One change after the other; the interval is that of the last."""

    def change(start: Start) -> Retimed:
        found = changes[0](start)
        for following in changes[1:]:
            found = following(replace(start, told=found.again()))
        return found

    return change


# --- the levers


def halved(start: Start) -> Retimed:
    """Half of every context, cached and uncached alike."""

    def half(_: int, reading: Reading) -> Usage:
        usage = reading.call.usage
        if usage.context is None:
            return usage
        return divided(usage, usage.context // 2, usage.cache_read // 2)

    return altered(start, half)


def uncached(start: Start) -> Retimed:
    """Nothing read from a cache."""
    return altered(start, lambda _, reading: _reading(reading.call.usage, 0))


def by_the_rules(start: Start) -> Retimed:
    """What the provider's published rules promise for these requests."""
    reads = promised(start.told.readings, start.counter)
    return altered(start, lambda place, reading: _reading(reading.call.usage, reads[place]))


def perfect(start: Start) -> Retimed:
    """All of a lane's previous request read from the cache, as far as the context holds as much."""
    last: dict[int, int] = defaultdict(int)
    reads: list[int] = []
    for reading in start.told.readings:
        context = reading.call.usage.context or 0
        reads.append(min(last[reading.lane], max(0, context - 1)))
        last[reading.lane] = context
    return altered(start, lambda place, reading: _reading(reading.call.usage, reads[place]))


def _reading(usage: Usage, read: int) -> Usage:
    if usage.context is None or read == usage.cache_read:
        return usage
    return divided(replace(usage, uncached=usage.prefill_work), usage.context, read)


def decode(factor: float, best: float = 0.0, worst: float = 0.0) -> Change:
    """Decode so many times as fast, with the ends of an interval."""

    def change(start: Start) -> Retimed:
        takes = Takes(decode=(1 / factor, 1 / (best or factor), 1 / (worst or factor)))
        return retiming.lay_out(start.told, {each.call.record.id: takes for each in start.told.readings})

    return change


_CONTEXT, _REUSE, _OUTPUT, _MODEL = 1, 2, 3, 4


def levers(start: Start, *, after: int = 0, summary: int = SUMMARY_TOKENS, result: int = RESULT_TOKENS) -> list[Lever]:
    """Every lever that this run has a use for, in the order in which they pay.

    after: the turn behind which the history is summarised (0: half the turns); summary, result: tokens that are left.
    """
    return [
        *_context_levers(start, after or max(1, len(start.told.run.turns) // 2), summary, result),
        Lever(_REUSE, "no prefix cache", uncached, "what the cache is worth now"),
        Lever(
            _REUSE, "prefix cache by the provider's rules", by_the_rules, "as published, with these requests' markers"
        ),
        Lever(_REUSE, "perfect prefix cache", perfect, "a prefix that never changes, nothing expires"),
        Lever(
            _OUTPUT,
            "tool output as key fields",
            lambda s: edited(s, edits.key_fields()),
            "texts 80 characters, lists 5 entries",
        ),
        Lever(_MODEL, "decode twice as fast", decode(FASTER), "a faster model, the same output"),
        Lever(_MODEL, "speculative decoding", decode(*SPECULATION), "decode 2 times as fast, 1.3 to 3"),
    ]


def _context_levers(start: Start, after: int, summary: int, result: int) -> Iterator[Lever]:
    yield Lever(_CONTEXT, "context halved", halved, "every piece of it, evenly")
    if after < len(start.told.run.turns):
        name = f"history summarised after turn {after}"
        note = f"a summary of {summary} tokens; the call that writes it is not counted"
        yield Lever(_CONTEXT, name, lambda s: edited(s, edits.summarised(after, summary), lanes=[1]), note)
    yield Lever(_CONTEXT, f"tool results cut to {result} tokens", lambda s: edited(s, edits.trimmed(result, s.counter)))
    unused = unused_tools(start.told.readings)
    if unused:
        note = f"never called: {', '.join(sorted(unused))}"
        yield Lever(_CONTEXT, "unused tools dropped", lambda s: edited(s, edits.without_tools(unused)), note)
    last = next((each for each in reversed(start.told.readings) if each.lane == 1), None)
    if last is not None and last.turn > 1 and last.prompt.tools:
        change: Change = lambda s: edited(s, edits.last_without_tools(), lanes=[1])  # noqa: E731 - as the others
        yield Lever(_CONTEXT, "no tools on the last turn", change)


def unused_tools(readings: Sequence[Reading]) -> frozenset[str]:
    """Names of tools that were offered and that no answer called."""
    offered = {tool.name for reading in readings for tool in reading.prompt.tools}
    called = {block.name for reading in readings for block in reading.answer.blocks if block.name}
    called |= {block.name for reading in readings for block in reading.prompt.blocks if block.kind == "tool_use"}
    return frozenset(offered - called)


def outcomes(start: Start, asked: Iterable[Lever]) -> list[Outcome]:
    """What each lever would do, in the order given; those that change nothing are left out."""
    found = [Outcome(lever, lever.change(start), start.told.run) for lever in asked]
    return [each for each in found if _differs(each)]


def _differs(outcome: Outcome) -> bool:
    return bool(outcome.work_saved) or outcome.run.duration != outcome.before.duration


def ranked(found: Iterable[Outcome]) -> list[Outcome]:
    """The most saved first: time where it is projected, prefill tokens otherwise."""
    return sorted(found, key=lambda each: each.saving or (each.work_saved, 0, 0), reverse=True)


def by_name(names: Iterable[str], known: Sequence[Lever]) -> list[Lever]:
    """Levers by name. ValueError, listing what there is, for a name that none has."""
    table: Mapping[str, Lever] = {lever.name: lever for lever in known}
    for name in names:
        if name not in table:
            msg = f"no what-if is called {name!r}: allowed are {', '.join(map(repr, table))}"
            raise ValueError(msg)
    return [table[name] for name in names]

"""The block at the end of a session.

Owns what is counted and how it is said. An entry is plain numbers and words, so that a worker process can send it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from pytest_agentlatency.budgets.headroom import little
from pytest_agentlatency.budgets.phrase import Bound, StablePrefix
from pytest_agentlatency.budgets.subjects import SERIES, registry
from pytest_agentlatency.budgets.verdict import Judgement, Ruling
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run, Verdict
from pytest_agentlatency.report.suggest import block

_NAMED = 5  # tests named in a line


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of one test, as counted in the summary."""

    test: str
    """Node id."""
    mode: str
    """`replayed`, `recorded` or `live`."""
    turns: int
    """Turns made, over all lanes."""
    recorded_turns: int | None
    duration: int | None
    """Nanoseconds."""
    provenance: str
    """Of the duration."""
    context: int | None
    """Context tokens of the main lane's last turn."""
    rulings: Mapping[str, int]
    """Ruling -> budgets."""
    verdicts: Mapping[str, int]
    """Verdict on a live request -> calls."""
    headline: str = ""
    """Of the first budget that isn't kept."""
    volatile: str = ""
    """What in the requests depends on clock, hash seed or chance, by a second pass."""
    accepted: bool = False
    """Figures of a changed agent were accepted, and its cassette is of before the change."""
    basis: Mapping[str, int] = field(default_factory=dict[str, int])
    """What budgets were judged on -> budgets; empty where no request changed."""
    offered: str = ""
    """Budgets, a line each, that a test which nothing guards would keep; empty for any other test."""
    tight: str = ""
    """Budgets that a measured time kept with too little room, with what is left."""

    @property
    def short(self) -> bool:
        """Fewer turns than recorded."""
        return self.recorded_turns is not None and self.turns < self.recorded_turns

    def to_json(self) -> dict[str, object]:
        """Plain JSON types, for a worker process to send."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Entry":
        """Read back what `to_json` gave; keys of a newer version are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})  # type: ignore[arg-type]


def entry(test: str, mode: str, run: Run, judgements: Sequence[Judgement], volatile: str = "") -> Entry:
    """Count one run of a test."""
    told = (each.overrun.headline for each in judgements if each.overrun)
    return Entry(
        test,
        mode,
        turns=len(run.all_turns),
        recorded_turns=run.recorded_turns,
        duration=run.duration,
        provenance=str(run.provenance),
        context=run.turns[-1].call.usage.context if run.turns else None,
        rulings=dict(Counter(str(each.ruling) for each in judgements)),
        verdicts=dict(Counter(str(call.verdict) for call in run.calls if call.verdict)),
        headline=next(told, ""),
        volatile=volatile,
        basis=dict(Counter(map(_basis, judgements))) if any(call.drift for call in run.calls) else {},
        tight=", ".join(
            f"{each.phrase.text!r} by {units.share(part)}" for each in judgements if (part := little(each)) is not None
        ),
    )


_BASES = ("counts of the changed requests", "projected times", "recorded times", "recorded times of changed requests")


def _basis(judgement: Judgement) -> str:
    """What a budget of a drifted run was judged on, as one of `_BASES`."""
    phrase = judgement.phrase
    if isinstance(phrase, StablePrefix):
        return _BASES[0]
    subject = registry()[phrase.subject if isinstance(phrase, Bound) else SERIES[phrase.series]]
    figures = [point.figure for point in ((judgement.point,) if judgement.point else judgement.points)]
    if not subject.clock:
        return _BASES[0]
    if any(figure.caution and figure.provenance is not Provenance.PROJECTED for figure in figures):
        return _BASES[3]
    return _BASES[1] if any(figure.provenance is Provenance.PROJECTED for figure in figures) else _BASES[2]


def lines(entries: Sequence[Entry], verbosity: int = 0) -> list[str]:
    """What a session's runs came to: a few lines, none for no runs; with verbosity above 0, a line a test too."""
    if not entries:
        return []
    return [*_block(entries), *(_tests(entries) if verbosity > 0 else ())]


def _block(entries: Sequence[Entry]) -> Iterator[str]:
    modes = Counter(each.mode for each in entries)
    yield f"{_count(len(entries), 'run')}: {_listed(modes, sorted(modes))}"
    rulings = _summed(each.rulings for each in entries)
    if rulings:
        yield f"budgets: {_listed(rulings, map(str, Ruling))}"
    verdicts = _summed(each.verdicts for each in entries)
    if verdicts:
        yield f"calls: {_listed(verdicts, map(str, Verdict))}"
    bases = _summed(each.basis for each in entries)
    if bases:
        yield f"judged after a change on: {_listed(bases, _BASES)}"
    short = [each for each in entries if each.short]
    if short:
        yield f"{_count(len(short), 'run')} shorter than recorded: {', '.join(_short(each) for each in short)}"
    accepted = [each.test for each in entries if each.accepted]
    if accepted:
        yield f"accepted re-timed, not recorded again: {', '.join(accepted)}"
    for each in sorted(entries, key=lambda entry: entry.test):
        if each.tight:
            yield f"kept with little headroom, and measured: {each.test} ({each.tight})"
    yield from _unguarded(sorted((each for each in entries if each.offered), key=lambda entry: entry.test))
    for each in entries:
        if each.volatile:
            yield f"requests that a second pass changed: {each.test} ({each.volatile})"


def _unguarded(entries: Sequence[Entry]) -> Iterator[str]:
    """Tests without a budget, and what the first of them would keep."""
    if entries:
        named = ", ".join(each.test for each in entries[:_NAMED])
        more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
        yield f"{_count(len(entries), 'test')} without a budget: {named}{more}"
        yield f"{'it' if len(entries) == 1 else 'the first'} would keep:"
        yield from block(entries[0].offered.split("\n"), "    ")


def _short(each: Entry) -> str:
    return f"{each.test} ({each.turns}/{each.recorded_turns} turns)"


def _tests(entries: Sequence[Entry]) -> Iterator[str]:
    for each in sorted(entries, key=lambda entry: entry.test):
        figures = f"{_count(each.turns, 'turn')}, {_duration(each)}, context {units.tokens(each.context)}"
        rulings = _listed(each.rulings, map(str, Ruling)) or "no budgets"
        drift = _listed({k: v for k, v in each.verdicts.items() if k != str(Verdict.IDENTICAL)}, map(str, Verdict))
        yield "  " + "; ".join(filter(None, [f"{each.test}: {each.mode}, {figures}", rulings, drift, each.headline]))


def _duration(each: Entry) -> str:
    return units.duration(each.duration, Provenance(each.provenance))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(counts: Mapping[str, int], order: Iterable[str]) -> str:
    return ", ".join(f"{counts[key]} {key}" for key in order if counts.get(key))


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total

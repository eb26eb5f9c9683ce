"""What each lever would do to a run, as lines of text and as JSON.

Owns the words and the columns. Refuses to compute.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from pytest_agentlatency.analysis.whatif import Outcome, ranked
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report.jsonfile import Json
from pytest_agentlatency.report.layout import Column, grid

ORDER = {1: "shrink the context", 2: "reuse the prefix", 3: "trim tool output", 4: "a faster model"}
"""The levers' groups in the order in which they pay."""
VERSION = 1
_PROJECTED = Provenance.PROJECTED


def lines(run: Run, found: Sequence[Outcome], width: int = 80) -> list[str]:
    """The run as it is, each lever in order with what it saves and where it ranks, the curves, and the notes."""
    head = f"{len(run.turns)} turns, {units.duration(run.duration, run.provenance)}, {_shares(run)}"
    if not found:
        return [head, "", "no lever changes this run"]
    body = [*grid(_keys(found), _columns(found), width), "", *_curves(run, found, width), "", *_notes(found)]
    return [head, "", *(part for line in body for part in (wrap(line, width) if len(line) > width else [line]))]


def _shares(run: Run) -> str:
    phases = sorted(run.phases.items(), key=lambda item: -item[1])
    return ", ".join(f"{phase} {units.share(run.share(phase))}" for phase, _ in phases[:3]) or "no times"


def _keys(found: Sequence[Outcome]) -> list[Column]:
    return [Column("what if", tuple(f"{each.lever.rank} {each.lever.name}" for each in found), left=True)]


def _columns(found: Sequence[Outcome]) -> list[Column]:
    places = {id(each): place for place, each in enumerate(ranked(found), 1)}
    return [
        Column("total", tuple(_total(each) for each in found)),
        Column("saves", tuple(_saving(each) for each in found)),
        Column("90 % interval", tuple(_interval(each) for each in found)),
        Column("prefill tokens", tuple(_tokens(each) for each in found)),
        Column("rank", tuple(str(places[id(each)]) for each in found)),
        Column("then most in", tuple(str(each.bottleneck or units.MISSING) for each in found), left=True),
    ]


def _total(outcome: Outcome) -> str:
    return units.MISSING if outcome.saving is None else units.duration(outcome.run.duration, _PROJECTED)


def _saving(outcome: Outcome) -> str:
    return units.MISSING if outcome.saving is None else units.duration(outcome.saving[0], _PROJECTED)


def _tokens(outcome: Outcome) -> str:
    return units.signed(units.tokens(-outcome.work_saved)) if outcome.work_saved else "-"


def _interval(outcome: Outcome) -> str:
    if outcome.saving is None:
        return units.MISSING
    _, low, high = outcome.saving
    if low == high:
        return "as assumed"
    return f"{units.duration(low)} to {units.duration(high)}"


def _curves(run: Run, found: Sequence[Outcome], width: int) -> Iterator[str]:
    """Duration of every turn of the main lane, as it is and with each lever."""
    named = [("as it is", run), *((each.lever.name, each.run) for each in found if each.saving is not None)]
    yield "turn by turn:"
    keys = [Column("", tuple(name for name, _ in named), left=True)]
    columns = [
        Column(str(number), tuple(units.duration(each.turns[number - 1].duration) for _, each in named))
        for number in range(1, len(run.turns) + 1)
    ]
    yield from grid(keys, columns, width)


def _notes(found: Sequence[Outcome]) -> Iterator[str]:
    groups = ", ".join(f"{rank} {name}" for rank, name in ORDER.items())
    yield f"levers in the order in which they pay: {groups}"
    yield "answers, tool times and overhead are taken as they are; ~ projected"
    for caution in dict.fromkeys(each.caution for each in found if each.caution):
        yield f"believe the times as far as this goes: {caution}"
    for each in found:
        for note in each.notes:
            yield f"{each.lever.name}: {note}"


def to_json(run: Run, found: Sequence[Outcome]) -> dict[str, Json]:
    """The same as plain JSON types; times in nanoseconds, null where no latency model speaks."""
    places = {id(each): place for place, each in enumerate(ranked(found), 1)}
    return {
        "schema": "agentlatency.whatif",
        "version": VERSION,
        "duration_ns": run.duration,
        "turns_ns": [turn.duration for turn in run.turns],
        "levers": [_lever(each, places[id(each)]) for each in found],
    }


def _lever(outcome: Outcome, place: int) -> dict[str, Json]:
    saved, low, high = outcome.saving or (None, None, None)
    known = outcome.saving is not None
    return {
        "order": outcome.lever.rank,
        "group": ORDER[outcome.lever.rank],
        "name": outcome.lever.name,
        "rank": place,
        "duration_ns": outcome.run.duration if known else None,
        "saved_ns": saved,
        "saved_low_ns": low,
        "saved_high_ns": high,
        "turns_ns": [turn.duration if known else None for turn in outcome.run.turns],
        "prefill_tokens_saved": outcome.work_saved,
        "bottleneck": str(outcome.bottleneck) if outcome.bottleneck else None,
        "notes": list(outcome.notes),
        "caution": outcome.caution,
    }

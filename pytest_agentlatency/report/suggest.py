"""Suggested budgets as words: the marker to paste, the table of what was seen, the warnings.

Owns the wording. Refuses to work out a limit.
"""

from collections.abc import Iterator, Sequence

from pytest_agentlatency.budgets.headroom import LEAST, Spread
from pytest_agentlatency.budgets.phrase import Bound
from pytest_agentlatency.model import units
from pytest_agentlatency.report.jsonfile import Json
from pytest_agentlatency.report.layout import Column, grid

VERSION = 1
_P90 = 0.9


def block(phrases: Sequence[str], indent: str = "") -> list[str]:
    """The marker with these budgets, as it stands in a test's file."""
    return [f"{indent}@pytest.mark.latency_budget(", *(f'{indent}    "{each}",' for each in phrases), f"{indent})"]


def refusal(phrases: Sequence[str]) -> str:
    """Why a test that nothing guards fails where budgets are asked for, and what would do."""
    return "\n".join([
        "no latency budget: nothing guards this test",
        "",
        "This run would keep:",
        "",
        *block(phrases, "    "),
        "",
        "latency_require_budget wants a budget, or an assert on a figure of agent_run.",
    ])  # fmt: skip


def table(spreads: Sequence[Spread], width: int) -> list[str]:
    """A row a budget: what the runs gave, and the room that the worst of them leaves."""
    runs = len(spreads[0].judgements)
    keys = [Column("budget", tuple(each.phrase.text for each in spreads), left=True)]
    columns = [
        Column("min", tuple(_shown(each, each.quantile(0)) for each in spreads)),
        Column("median", tuple(_shown(each, each.median) for each in spreads)),
        Column("p90", tuple(_shown(each, each.quantile(_P90)) for each in spreads)),
        Column("max", tuple(_shown(each, each.quantile(1)) for each in spreads)),
        Column("headroom", tuple(_room(each) for each in spreads)),
        Column("kept by", tuple(f"{each.kept} of {runs}" for each in spreads)),
    ]
    return grid(keys, columns, width)


def _shown(each: Spread, value: float | None) -> str:
    return each.phrase.limit.unit.show(value) if isinstance(each.phrase, Bound) else "-"


def _room(each: Spread) -> str:
    return "-" if each.room is None else units.share(each.room)


def warnings(each: Spread) -> Iterator[str]:
    """What speaks against a limit; a sentence each."""
    runs, text = len(each.judgements), each.phrase.text
    if each.unmeasured:
        yield f"{text!r} is not measured in {len(each.unmeasured)} of {runs} runs: {each.unmeasured[0].reason}"
    if each.undecided:
        yield f"{text!r} can't be decided in {each.undecided} of {runs} runs"
    if each.broken:
        yield f"{text!r} is broken by {each.broken} of {runs} runs: {units.share(each.kept / runs)} of them keep it"
    if each.is_little:
        room = f"the worst of {runs} runs {units.share(each.room)} of room"
        yield f"{text!r} leaves {room}: with under {units.share(LEAST)} it may break in a run and not in the next"


def to_json(runs: int, suggested: Sequence[Spread], given: Sequence[Spread]) -> dict[str, Json]:
    """Everything of the tables, in base units (nanoseconds, fraction, tokens, bytes); null where there is none."""
    return {
        "schema": "agentlatency.suggest",
        "version": VERSION,
        "runs": runs,
        "suggested": [_json(each) for each in suggested],
        "given": [_json(each) for each in given],
    }


def _json(each: Spread) -> dict[str, Json]:
    return {
        "phrase": each.phrase.text,
        "unit": str(each.phrase.limit.unit) if isinstance(each.phrase, Bound) else None,
        "values": list(each.values),
        "median": each.median,
        "p90": each.quantile(_P90),
        "headroom": None if each.room is None else round(each.room, 6),
        "kept": each.kept,
        "warnings": list(warnings(each)),
    }

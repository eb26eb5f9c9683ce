"""The table of turns and phases, as lines of plain text.

Owns which columns there are and the notes below them. Refuses to compute a figure that a run doesn't give.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from textwrap import wrap

from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Run, Turn
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.report.layout import Column, grid
from pytest_agentlatency.report.rows import AT_LEAST, call_cell, phase_cells, total_cell, verdict_cell

_MS, _US = 1_000_000, 1_000
_SMALL = 20 * _MS  # a shorter run is shown in microseconds
_TIMES, _TOKENS = 0, 1

REFERENCE: Mapping[Phase, str] = {
    Phase.PREFILL: "35-45%",
    Phase.DECODE: "20-35%",
    Phase.SERIALIZATION: "8-12%",
    Phase.TOOL: "5-15%",
    Phase.OVERHEAD: "5-10%",
    Phase.RETRY: "0-30%",
}
"""Shares that an essay reports of a ReAct loop with about 8K tokens of context a turn; an expectation of nobody."""


def turns(run: Run, width: int = 80, *, reference: bool = False) -> list[str]:
    """Lines no wider than `width`: turns by phases and tokens, the run's totals, and notes on how to read them.

    reference: add a row of published shares beside the run's own.
    """
    if not run.all_turns:
        return list(_folded(["no model calls", *_notes(run)], width))
    scale = _US if run.duration is not None and run.duration < _SMALL else _MS
    last = ["reference"] if reference else []
    columns = [*_time_columns(run, scale, last), *_token_columns(run, last)]
    lines = grid(_keys(run, last), columns, width, rule_before=len(run.all_turns))
    return [*lines, "", *_folded([*_legend(lines, scale, run.provenance), *_notes(run)], width)]


def _folded(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, max(1, width))


# --- columns


def _keys(run: Run, last: list[str]) -> list[Column]:
    numbers = Column("turn", (*(str(turn.number) for turn in run.all_turns), "run", *last))
    lanes = Column("lane", (*(str(turn.lane) for turn in run.all_turns), "all", *("" for _ in last)))
    return [lanes, numbers] if len(run.lanes) > 1 else [numbers]


def _time_columns(run: Run, scale: int, last: list[str]) -> Iterator[Column]:
    owners: tuple[Turn | Run, ...] = (*run.all_turns, run)
    yield Column("total", (*(total_cell(owner, scale) for owner in owners), *("" for _ in last)), _TIMES)
    rows = [phase_cells(owner, scale) for owner in owners]
    for phase in Phase:
        if any(phase in owner.phases for owner in owners):
            published = [REFERENCE.get(phase, "") for _ in last]
            yield Column(str(phase), (*(row[phase] for row in rows), *published), _TIMES)
    yield _call_column("ttft", run, [turn.call.ttft for turn in run.all_turns], scale, last)
    delivered = [turn.call.delivered for turn in run.all_turns]
    if any(time is not None for time in delivered):
        yield _call_column("delivered", run, delivered, scale, last)


def _call_column(name: str, run: Run, times: Sequence[int | None], scale: int, last: list[str]) -> Column:
    cells = (call_cell(turn, time, scale) for turn, time in zip(run.all_turns, times, strict=True))
    return Column(name, (*cells, "", *("" for _ in last)), _TIMES)


@dataclass(frozen=True, slots=True)
class _Count:
    """One column of tokens."""

    header: str
    read: Callable[[Usage], int | None]
    origin: Callable[[Usage], Provenance] = attrgetter("provenance")


_COUNTS = (
    _Count("context", lambda usage: usage.context),
    _Count("cached", lambda usage: None if usage.uncached is None else usage.cache_read),
    _Count("output", lambda usage: usage.output, attrgetter("output_provenance")),
)


def _token_columns(run: Run, last: list[str]) -> Iterator[Column]:
    usages = [turn.call.usage for turn in run.all_turns]
    for count in _COUNTS:
        cells = (units.tokens(count.read(usage), count.origin(usage)) for usage in usages)
        yield Column(count.header, (*cells, _sum(usages, count), *("" for _ in last)), _TOKENS)
    if any(turn.call.verdict for turn in run.all_turns):
        verdicts = (verdict_cell(turn.call) for turn in run.all_turns)
        yield Column("request", (*verdicts, "", *("" for _ in last)), _TOKENS, left=True)


def _sum(usages: Sequence[Usage], count: _Count) -> str:
    values = [count.read(usage) for usage in usages]
    known = [value for value in values if value is not None]
    total = sum(known) if len(known) == len(values) else None
    return units.tokens(total, weakest(map(count.origin, usages)))


# --- notes


def _legend(lines: list[str], scale: int, provenance: Provenance) -> Iterator[str]:
    """How to read the cells, as far as they need it."""
    shown = "\n".join(lines)
    yield f"times in {'ms' if scale == _MS else 'us'}, {provenance}; beside them the share of the row's total"
    marks = {
        Provenance.PROJECTED.mark: "projected",
        Provenance.ESTIMATED.mark: "estimated",
        AT_LEAST: "at least: not every call could be split into prefill and decode",
        units.MISSING: "not measured",
    }
    for mark, meaning in marks.items():
        if mark in shown:
            yield f"{mark} {meaning}"


def _notes(run: Run) -> Iterator[str]:
    duration, work = run.duration, sum(run.work.values())
    if duration is not None and run.work:
        overlap = max(0, work - duration)
        yield f"work {units.duration(work)}, overlap {units.duration(overlap)}"
    if run.paused:
        reasons = ", ".join(sorted({pause.reason for pause in run.pauses if pause.reason}))
        yield f"paused {units.duration(run.paused)}{f' ({reasons})' if reasons else ''}, left out"
    if run.recorded_turns is not None and run.recorded_turns > len(run.all_turns):
        yield f"short run: {len(run.all_turns)} of {run.recorded_turns} recorded turns were made"
    yield from _flagged(run)
    yield from run.notes


_FLAGS = {
    "buffered": "came in one burst, held back on the way: prefill and decode can't be told apart",
    "client-bound": "the agent read more slowly than chunks came: decode shows its pace, not the model's",
    "hidden-thinking": "thinks without showing it: the wait for the first output is not prefill alone",
    "multi-pass": "sums several hidden passes: its tokens are not the size of one context",
    "no-tokens": "generated no token",
}


def _flagged(run: Run) -> Iterator[str]:
    """What a reader must know of single calls before believing their times and tokens."""
    for flag, meaning in _FLAGS.items():
        turns = [turn for turn in run.all_turns if flag in turn.call.flags]
        if turns:
            several = len(run.lanes) > 1
            named = ", ".join(f"{turn.lane}.{turn.number}" if several else str(turn.number) for turn in turns)
            yield f"turn{'' if len(turns) == 1 else 's'} {named} ({flag}): {meaning}"

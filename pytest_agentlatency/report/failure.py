"""What a test that broke its latency budgets says: a message, and sections for the report.

Owns the order of things in the message. Refuses to judge and to know pytest.
"""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from pytest_agentlatency.budgets.headroom import little
from pytest_agentlatency.budgets.verdict import HEADLINE, Judgement, Ruling
from pytest_agentlatency.model import units
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import table

WIDTH = 100
"""Columns of a message and of the budgets' section; a line that needs more is continued below, indented."""
_RULING = 14  # columns of a ruling and the gap behind it


def message(judgements: Sequence[Judgement], run: Run, *, strict: bool = False) -> str:
    """What a failed test shows. Its first line is at most 60 characters; empty when nothing fails.

    strict: inconclusive budgets fail too.
    """
    failed = sorted(_failed(judgements, strict=strict), key=lambda each: each.ruling is not Ruling.BROKEN)
    if not failed:
        return ""
    lines = [_first(failed), ""]
    for judgement in failed:
        lines += _told(judgement, told_already=lines)
    step = next((each.overrun.next_step for each in failed if each.overrun and each.overrun.next_step), "")
    lines += [f"next step: {step}"] if step else []
    return "\n".join(_folded([*lines, *_recorded(run)])).rstrip()


def _failed(judgements: Sequence[Judgement], *, strict: bool) -> list[Judgement]:
    return [each for each in judgements if each.fails or (strict and each.ruling is Ruling.INCONCLUSIVE)]


def _first(failed: Sequence[Judgement]) -> str:
    more = f" (+{len(failed) - 1} more)" if len(failed) > 1 else ""
    line = _headline(failed[0])
    room = HEADLINE - len(more)
    return (line if len(line) <= room else line[: room - 1] + "…") + more


def _headline(judgement: Judgement) -> str:
    return judgement.overrun.headline if judgement.overrun else f"{judgement.ruling}: {judgement.phrase.text}"


def _told(judgement: Judgement, told_already: Sequence[str]) -> list[str]:
    evidence = [f"  {line}" for line in judgement.overrun.evidence] if judgement.overrun else []
    new = [line for line in evidence if line not in told_already]
    return [f"{judgement.phrase.text!r}: {_headline(judgement)}", *new, ""]


def _folded(lines: Iterable[str], indent: int = 0) -> Iterator[str]:
    """The lines within the width. No word is cut: a path or a name stays whole, though it be longer."""
    for line in lines:
        further = " " * (indent or len(line) - len(line.lstrip()) + 2)
        yield from wrap(line, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False) or [""]


def _recorded(run: Run) -> Iterator[str]:
    if run.facts.recorded:
        yield f"recorded {run.facts.recorded}"


def sections(run: Run, judgements: Sequence[Judgement], width: int = 80) -> list[tuple[str, str]]:
    """Titles and texts for a test's report: the table, and the budgets one by one."""
    found = [("latency: turns and phases", "\n".join(table.turns(run, width)))]
    if judgements:
        found.append(("latency: budgets", "\n".join(_folded(budgets(judgements), _RULING))))
    return found


def budgets(judgements: Sequence[Judgement]) -> list[str]:
    """One line a budget: what became of it, the phrase, the figure that decided, how far inside the limit it stayed."""
    return [f"{each.ruling:<12}  {each.phrase.text}{_figure(each)}" for each in judgements]


def _figure(judgement: Judgement) -> str:
    point = judgement.point
    if point is None or point.figure.value is None:
        return f": {judgement.reason}" if judgement.reason else ""
    place = f" at turn {point.turn}" if point.turn else ""
    note = f"; {judgement.reason}" if judgement.reason else ""
    room = "" if point.headroom is None or point.headroom < 0 else f", headroom {_room(judgement, point.headroom)}"
    return f": {point.figure}{place}{room} ({point.figure.provenance}){note}"


def _room(judgement: Judgement, headroom: float) -> str:
    """How far inside the limit; marked where that is too little for a time that is measured anew each time."""
    shown = judgement.point.figure.unit.show(headroom) if judgement.point else ""
    part = little(judgement)
    return shown if part is None else f"{shown}, only {units.share(part)} of the figure: it may break next time"

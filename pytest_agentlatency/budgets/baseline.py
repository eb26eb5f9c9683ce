"""Accepted figures: what each budget's figure was when somebody last looked, and whether it may get worse.

Owns the comparison, and the rule that nothing is loosened in silence. Refuses to know files and test frameworks; limits
stay where they are written, in the test.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pytest_agentlatency.budgets.figure import Figure, Unit
from pytest_agentlatency.budgets.phrase import Bound, Comparison
from pytest_agentlatency.budgets.subjects import registry
from pytest_agentlatency.budgets.verdict import HEADLINE, Judgement

VERSION = 1
TOLERANCE = 0.05
"""By how much a time may be worse than the accepted one; counts have no tolerance."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One budget's figure, in its base unit."""

    value: float
    unit: Unit

    def __str__(self) -> str:
        """The value as people read it."""
        return self.unit.show(self.value)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures of one test that were accepted."""

    recorded: str
    """When the cassette was recorded that they belong to; another recording makes them void."""
    retimed: bool = False
    """They are those of a changed agent, and the cassette was not recorded again."""
    figures: Mapping[str, Accepted] = field(default_factory=dict[str, Accepted])
    """By phrase."""


class BaselineError(ValueError):
    """A file of accepted figures that isn't one."""


def to_dict(baseline: Baseline) -> dict[str, Any]:
    """Plain values, in a fixed order."""
    return {
        "version": VERSION,
        "recorded": baseline.recorded,
        "retimed": baseline.retimed,
        "figures": {
            phrase: {"value": each.value, "unit": str(each.unit), "shown": str(each)}
            for phrase, each in baseline.figures.items()
        },
    }


def from_dict(values: object) -> Baseline:
    """What `to_dict` wrote. BaselineError, saying what is wrong, for anything else."""
    try:
        known = cast("Mapping[str, Any]", values)
        if known["version"] != VERSION:
            msg = f"version {known['version']!r} is not {VERSION}, which this release reads"
            raise BaselineError(msg)
        figures = {
            str(phrase): Accepted(float(each["value"]), Unit(each["unit"])) for phrase, each in known["figures"].items()
        }
        return Baseline(str(known["recorded"]), known["retimed"] is True, figures)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, BaselineError):
            raise
        msg = f"{type(error).__name__}: {error}"
        raise BaselineError(msg) from None


def baseline(judgements: Sequence[Judgement], recorded: str, *, retimed: bool) -> Baseline:
    """The figures that decided these budgets. A budget without one, growth or a prefix, has nothing to compare."""
    figures = {
        judgement.phrase.text: Accepted(figure.value, figure.unit)
        for judgement in judgements
        if (figure := _figure(judgement)) is not None and figure.value is not None
    }
    return Baseline(recorded, retimed, figures)


def without(accepted: Baseline, reasons: Mapping[str, str]) -> tuple[Baseline, tuple[str, ...]]:
    """A baseline without the figures that none may be (phrase -> why), and a line for each of them."""
    firm = {phrase: figure for phrase, figure in accepted.figures.items() if phrase not in reasons}
    lines = tuple(f"{each}: not accepted, {reasons[each]}" for each in accepted.figures if each in reasons)
    return replace(accepted, figures=firm), lines


def _figure(judgement: Judgement) -> Figure | None:
    return judgement.point.figure if judgement.point is not None else None


@dataclass(frozen=True, slots=True)
class Movement:
    """One budget's figure, accepted and now."""

    phrase: str
    old: Accepted | None
    """None: it was not there before."""
    new: Figure
    looser: bool

    def __str__(self) -> str:
        """`context tokens under 20k: 12,000 -> ~14,800, worse`."""
        before = "none" if self.old is None else str(self.old)
        return f"{self.phrase}: {before} -> {self.new}{', worse' if self.looser else ''}"


def movements(held: Baseline, judgements: Sequence[Judgement]) -> tuple[Movement, ...]:
    """Where each budget's figure went."""
    found = ((judgement, _figure(judgement)) for judgement in judgements)
    return tuple(
        Movement(each.phrase.text, old := held.figures.get(each.phrase.text), figure, _looser(each, old, figure))
        for each, figure in found
        if figure is not None and figure.value is not None
    )


def _looser(judgement: Judgement, old: Accepted | None, figure: Figure) -> bool:
    """Whether a figure is worse than accepted: with its whole interval, and by more than the tolerance of a time."""
    phrase = judgement.phrase
    if old is None or not isinstance(phrase, Bound) or figure.value is None or figure.caution:
        return False
    room = TOLERANCE * abs(old.value) if registry()[phrase.subject].clock else 0.0
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    too_much, too_little = low > old.value + room, high < old.value - room
    if phrase.comparison is Comparison.IS:
        return too_much or too_little
    return too_much if phrase.comparison is Comparison.AT_MOST else too_little


@dataclass(frozen=True, slots=True)
class Settled:
    """What becomes of accepted figures after a run."""

    failure: str = ""
    """Why the test fails; empty when it doesn't for this."""
    lines: tuple[str, ...] = ()
    """What to show beside the budgets."""
    written: Baseline | None = None
    """What to accept from now on; None: nothing new."""
    retimed: bool = False
    """What is accepted belongs to a changed agent whose cassette was not recorded again."""


def settle(held: Baseline | None, now: Baseline, judgements: Sequence[Judgement]) -> Settled:
    """Compare a run with what was accepted; worse is a failure."""
    if held is None:
        return Settled()
    if held.recorded != now.recorded:
        return Settled(lines=("accepted figures are of an earlier recording: accept again with --latency-update",))
    worse = [each for each in movements(held, judgements) if each.looser]
    if not worse:
        return Settled(retimed=held.retimed)
    first = f"worse than accepted: {worse[0]}"[:HEADLINE]
    told = (first, "", *map(str, worse), "", "Accept it with --latency-update --latency-loosen, or mend the agent.")
    return Settled("\n".join(told))


def update(held: Baseline, now: Baseline, judgements: Sequence[Judgement], *, loosen: bool) -> Settled:
    """Accept a run's figures. What is worse than before is only accepted when asked for by name.

    held: what was accepted, or else the figures of the recording itself.
    """
    moved = movements(held, judgements)
    worse = [each for each in moved if each.looser]
    lines = tuple(_updated(moved, now))
    if worse and not loosen:
        first = f"refused to loosen: {worse[0]}"[:HEADLINE]
        return Settled("\n".join((first, "", *map(str, worse), "", "--latency-loosen accepts what is worse.")), lines)
    if any(judgement.fails for judgement in judgements):
        return Settled(lines=(*lines, "not accepted: a budget is broken, and its limit stands in the test"))
    return Settled(lines=lines, written=now, retimed=now.retimed)


def _updated(moved: Sequence[Movement], now: Baseline) -> Iterator[str]:
    yield from map(str, moved)
    if now.retimed:
        yield "the cassette is marked as re-timed until it is recorded again"

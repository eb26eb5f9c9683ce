"""Judging a phrase on a run.

Owns the rules: limits are inclusive; what isn't measured is never kept; a run shorter than its recording never counts
as faster; a projected time breaks a budget only with its whole interval, and only where nothing cautions against it; a
budget that wants measured figures isn't kept by others. Refuses to measure (`subjects`) and to decide what a test does
with the ruling.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_agentlatency.analysis.growth import Growth, Law, satisfies
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.budgets.evidence import (
    bound_overrun,
    growth_overrun,
    not_there,
    prefix_overrun,
    unmeasured,
)
from pytest_agentlatency.budgets.figure import MEASURED, Figure, Figures, Unit, missing
from pytest_agentlatency.budgets.lanes import only
from pytest_agentlatency.budgets.phrase import Bound, Comparison, GrowthBound, Phrase, Reach, StablePrefix
from pytest_agentlatency.budgets.series import law, points, subject_of
from pytest_agentlatency.budgets.subjects import Question, Subject, registry
from pytest_agentlatency.budgets.verdict import Judgement, Point, Ruling
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Run, Turn

_SEVEREST = (Ruling.BROKEN, Ruling.NOT_MEASURED, Ruling.ADVICE, Ruling.KEPT)
_UNCERTAIN = {Provenance.PROJECTED, Provenance.ESTIMATED}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a phrase is judged on."""

    run: Run
    """The run, or the one lane of it that the phrase is about."""
    figures: Figures
    short: str
    """What the whole run lacks of its recording; empty: nothing."""


def judge(phrase: Phrase, run: Run, figures: Figures | None = None) -> Judgement:
    """Judge a phrase on a run, asking the given analyses. Pure: the same arguments give the same judgement."""
    figures = figures or Figures()
    if phrase.lane is None:
        return _judge(phrase, _Asked(run, figures, shortfall(run)))
    lane = only(run, phrase.lane)
    if lane is None:
        return _no_lane(phrase, phrase.lane, run)
    return _judge(phrase, _Asked(lane, figures.of_lane(phrase.lane), shortfall(run)))


def _judge(phrase: Phrase, asked: _Asked) -> Judgement:
    if isinstance(phrase, Bound):
        return _judge_bound(phrase, asked)
    return _judge_growth(phrase, asked) if isinstance(phrase, GrowthBound) else _judge_prefix(phrase, asked)


def _no_lane(phrase: Phrase, lane: int, run: Run) -> Judgement:
    length = f"the run has {len(run.lanes)} lane{'' if len(run.lanes) == 1 else 's'}"
    limit = str(phrase.limit) if isinstance(phrase, Bound) else ""
    judgement = Judgement(phrase, Ruling.NOT_MEASURED, limit, reason=f"no lane {lane}: {shortfall(run) or length}")
    return replace(judgement, overrun=not_there(judgement))


def kept(comparison: Comparison, value: float, limit: float) -> bool:
    """Whether a value keeps a limit; the limit itself always does."""
    if comparison is Comparison.IS:
        return value == limit
    return value <= limit if comparison is Comparison.AT_MOST else value >= limit


def shortfall(run: Run) -> str:
    """Say in a sentence that a replay made fewer turns than its recording; empty when it made all."""
    made, recorded = len(run.all_turns), run.recorded_turns
    return "" if recorded is None or made >= recorded else f"the run made {made} of {recorded} recorded turns"


# --- bounds


def _judge_bound(bound: Bound, asked: _Asked) -> Judgement:
    subject = registry()[bound.subject]
    points = tuple(_points(bound, subject, asked))
    ruling = next((each for each in _SEVEREST if any(point.ruling is each for point in points)), Ruling.NOT_MEASURED)
    point = min(
        (each for each in points if each.ruling is ruling),
        key=lambda each: 0.0 if each.headroom is None else each.headroom,
        default=None,
    )
    reason = _reason(bound, asked, point, ruling)
    judgement = Judgement(bound, ruling, str(bound.limit), point, points, reason)
    if ruling is Ruling.KEPT:
        return judgement
    if ruling is Ruling.NOT_MEASURED:
        return replace(judgement, overrun=(not_there if _beyond(point, asked.run) else unmeasured)(judgement))
    return replace(judgement, overrun=bound_overrun(judgement, bound, asked.run, asked.figures))


def _points(bound: Bound, subject: Subject, asked: _Asked) -> Iterable[Point]:
    measure = subject.of_context if bound.limit.of_context and subject.of_context else subject.measure
    run, figures = asked.run, asked.figures
    if bound.scope.reach is Reach.TOTAL:
        yield _total(bound, subject, asked, measure(Question(run, None, bound.tool, bound.each, figures)))
        return
    wanted = bound.scope.turns if bound.scope.reach is Reach.AT else ()
    for number in wanted:
        if number > len(run.turns):
            yield Point(number, missing(bound.limit.unit, _no_turn(asked, number)), Ruling.NOT_MEASURED)
    for turn in filter(bound.scope.covers, run.turns):
        figure = measure(Question(run, turn, bound.tool, bound.each, figures))
        yield _point(bound, subject, turn.number, _with_interval(figure, bound, turn, asked), run)


def _total(bound: Bound, subject: Subject, asked: _Asked, figure: Figure) -> Point:
    """Judge over the run. Of a run cut short only what is already too much is known; what it made, is counted."""
    point = _point(bound, subject, None, _with_interval(figure, bound, None, asked), asked.run)
    if not asked.short or subject.unit is Unit.COUNT or point.ruling is not Ruling.KEPT:
        return point
    reason = f"{asked.short}; a total of fewer is no improvement"
    return Point(None, replace(figure, reason=reason), Ruling.NOT_MEASURED)


def _point(bound: Bound, subject: Subject, turn: int | None, figure: Figure, run: Run) -> Point:
    if bound.measured:
        figure = _as_measured(figure, run)
    if figure.value is None or _lacks(bound, figure):
        return Point(turn, figure, Ruling.NOT_MEASURED)
    distance = bound.limit.value - figure.value
    room = {Comparison.AT_MOST: distance, Comparison.AT_LEAST: -distance, Comparison.IS: -abs(distance)}
    return Point(turn, figure, _ruling(bound, subject, figure, figure.value), room[bound.comparison])


def _ruling(bound: Bound, subject: Subject, figure: Figure, value: float) -> Ruling:
    if kept(bound.comparison, value, bound.limit.value):
        return Ruling.KEPT
    if figure.caution:
        return Ruling.ADVICE
    if not subject.clock or figure.provenance not in _UNCERTAIN:
        return Ruling.BROKEN
    if figure.low is None or figure.high is None:
        return Ruling.ADVICE
    limit = min(max(bound.limit.value, figure.low), figure.high)
    near = {Comparison.AT_MOST: figure.low, Comparison.AT_LEAST: figure.high, Comparison.IS: limit}[bound.comparison]
    return Ruling.ADVICE if kept(bound.comparison, near, bound.limit.value) else Ruling.BROKEN


def _lacks(bound: Bound | GrowthBound, figure: Figure) -> bool:
    """Whether a figure isn't there, or is not of the kind that the budget wants."""
    return figure.value is None or (bound.measured and figure.provenance not in MEASURED)


def _as_measured(figure: Figure, run: Run) -> Figure:
    """The figure; with the reason where it was not measured in this very run. A replay measures nothing, counts too."""
    origin = figure.provenance
    if origin in MEASURED and run.provenance not in MEASURED:
        origin = Provenance.REPLAYED
    if figure.value is None or origin in MEASURED:
        return figure
    return replace(figure, provenance=origin, reason=f"{origin}, and the budget wants it measured")


def _with_interval(figure: Figure, bound: Bound, turn: Turn | None, asked: _Asked) -> Figure:
    """A time with its interval, and what cautions against it unless the interval is a point."""
    subject, figures = registry()[bound.subject], asked.figures
    if not subject.clock or figure.value is None:
        return figure
    if figure.provenance in _UNCERTAIN and figures.interval is not None and figure.low is None:
        ends = figures.interval(asked.run, turn, subject.name, bound.tool)
        figure = figure if ends is None else replace(figure, low=ends[0], high=ends[1])
    if figures.caution is None or (figure.low is not None and figure.low == figure.high):
        return figure
    return replace(figure, caution=_caution(subject, asked, turn))


def _no_turn(asked: _Asked, number: int) -> str:
    return f"no turn {number}: {asked.short or _length(asked.run)}"


def _length(run: Run) -> str:
    return f"the run has {len(run.turns)} turn{'' if len(run.turns) == 1 else 's'}"


def _beyond(point: Point | None, run: Run) -> bool:
    """Whether the point is at a turn that the run doesn't have."""
    return point is not None and point.turn is not None and point.turn > len(run.turns)


def _reason(bound: Bound, asked: _Asked, point: Point | None, ruling: Ruling) -> str:
    if point is None:
        return f"nothing {bound.scope}: {asked.short or _length(asked.run)}"
    if ruling is Ruling.NOT_MEASURED:
        place = f"turn {point.turn}: " if point.turn and not _beyond(point, asked.run) else ""
        return place + point.figure.reason
    if ruling is Ruling.ADVICE:
        return point.figure.caution or _advice(point.figure)
    return _joined(point.figure.caution, asked.short)


def _advice(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return f"{figure.provenance} without an interval: no reason to fail"
    low, high = figure.unit.show(figure.low), figure.unit.show(figure.high)
    return f"{figure.provenance}, {low} to {high}: the limit lies within"


# --- growth and prefix


def _judge_growth(bound: GrowthBound, asked: _Asked) -> Judgement:
    subject, found = subject_of(bound.series), _series(bound, asked)
    looked_at = tuple(
        Point(turn.number, figure, Ruling.NOT_MEASURED if _lacks(bound, figure) else Ruling.KEPT)
        for turn, figure in zip(asked.run.turns, found, strict=True)
    )
    judgement = Judgement(bound, Ruling.NOT_MEASURED, bound.law, points=looked_at)
    known = [figure for figure in found if figure.value is not None]
    lacking = [figure for figure in known if _lacks(bound, figure)]
    if lacking or not known:
        judgement = replace(judgement, reason=next((each.reason for each in lacking or found), "the run has no turns"))
        return replace(judgement, overrun=unmeasured(judgement))
    growth = law(bound.series, found, asked.run, asked.figures)
    caution = _caution(subject, asked)
    uncertain = subject.clock and (bool(caution) or weakest(each.provenance for each in known) in _UNCERTAIN)
    ruling = _growth_ruling(bound, growth, uncertain=uncertain)
    overrun = None if ruling is Ruling.KEPT else growth_overrun(bound, growth, ruling, asked.run, asked.figures)
    return replace(judgement, ruling=ruling, reason=_joined(growth.reason, caution, asked.short), overrun=overrun)


def _series(bound: GrowthBound, asked: _Asked) -> list[Figure]:
    """The figure of each turn, with what cautions against it."""
    subject, found = subject_of(bound.series), points(bound.series, asked.run, asked.figures)
    if bound.measured:
        found = [_as_measured(figure, asked.run) for figure in found]
    return [
        replace(figure, caution=_caution(subject, asked, turn))
        for turn, figure in zip(asked.run.turns, found, strict=True)
    ]


def _caution(subject: Subject, asked: _Asked, turn: Turn | None = None) -> str:
    caution = asked.figures.caution
    return caution(asked.run, turn, subject.name) if subject.clock and caution else ""


def _growth_ruling(bound: GrowthBound, growth: Growth, *, uncertain: bool) -> Ruling:
    limit = Law(bound.law)
    held = satisfies(growth, exactly=limit) if bound.exactly else satisfies(growth, at_most=limit)
    if held is None:
        return Ruling.INCONCLUSIVE
    if held:
        return Ruling.KEPT
    return Ruling.ADVICE if uncertain else Ruling.BROKEN


def _judge_prefix(phrase: StablePrefix, asked: _Asked) -> Judgement:
    run, figures = asked.run, asked.figures
    judgement = Judgement(phrase, Ruling.NOT_MEASURED, "stable", reason="the requests' prefixes were not compared")
    if figures.stability is None:
        return replace(judgement, overrun=unmeasured(judgement))
    found = figures.stability(run, phrase.except_turns)
    if found.stable:
        return replace(judgement, ruling=Ruling.KEPT, reason=_joined(_excused(found), asked.short))
    return replace(
        judgement, ruling=Ruling.BROKEN, reason="", overrun=prefix_overrun(phrase, found.breaks, run, figures)
    )


def _excused(found: Stability) -> str:
    breaks = ", ".join(f"turn {each.turn} ({each.reason})" for each in found.excused)
    return f"allowed to break: {breaks}" if breaks else ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))

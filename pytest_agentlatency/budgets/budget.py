"""Judging a phrase on a run.

Owns the rules: limits are inclusive; what isn't measured is never kept; a run shorter than its recording never counts
as faster; a projected time breaks a budget only with its whole interval, and only where nothing cautions against it.
Refuses to measure (`subjects`) and to decide what a test does with the ruling.
"""

from collections.abc import Iterable
from dataclasses import replace

from pytest_agentlatency.analysis.growth import Growth, Law, satisfies
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.budgets.evidence import bound_overrun, growth_overrun, no_turn, prefix_overrun, unmeasured
from pytest_agentlatency.budgets.figure import Figure, Figures, Unit, missing
from pytest_agentlatency.budgets.phrase import Bound, Comparison, GrowthBound, Phrase, Reach, StablePrefix
from pytest_agentlatency.budgets.series import law, points, subject_of
from pytest_agentlatency.budgets.subjects import Question, Subject, registry
from pytest_agentlatency.budgets.verdict import Judgement, Point, Ruling
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Run, Turn

_SEVEREST = (Ruling.BROKEN, Ruling.NOT_MEASURED, Ruling.ADVICE, Ruling.KEPT)
_UNCERTAIN = {Provenance.PROJECTED, Provenance.ESTIMATED}


def judge(phrase: Phrase, run: Run, figures: Figures | None = None) -> Judgement:
    """Judge a phrase on a run, asking the given analyses. Pure: the same arguments give the same judgement."""
    asked = figures or Figures()
    if isinstance(phrase, Bound):
        return _judge_bound(phrase, run, asked)
    return _judge_growth(phrase, run, asked) if isinstance(phrase, GrowthBound) else _judge_prefix(phrase, run, asked)


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


def _judge_bound(bound: Bound, run: Run, figures: Figures) -> Judgement:
    subject = registry()[bound.subject]
    points = tuple(_points(bound, subject, run, figures))
    ruling = next((each for each in _SEVEREST if any(point.ruling is each for point in points)), Ruling.NOT_MEASURED)
    point = min(
        (each for each in points if each.ruling is ruling),
        key=lambda each: 0.0 if each.headroom is None else each.headroom,
        default=None,
    )
    reason = _reason(bound, run, point, ruling)
    judgement = Judgement(bound, ruling, str(bound.limit), point, points, reason)
    if ruling is Ruling.KEPT:
        return judgement
    if ruling is Ruling.NOT_MEASURED:
        return replace(judgement, overrun=(no_turn if _beyond(point, run) else unmeasured)(judgement))
    return replace(judgement, overrun=bound_overrun(judgement, bound, run, figures))


def _points(bound: Bound, subject: Subject, run: Run, figures: Figures) -> Iterable[Point]:
    measure = subject.of_context if bound.limit.of_context and subject.of_context else subject.measure
    if bound.scope.reach is Reach.TOTAL:
        yield _total(bound, subject, run, measure(Question(run, None, bound.tool, bound.each, figures)), figures)
        return
    wanted = bound.scope.turns if bound.scope.reach is Reach.AT else ()
    for number in wanted:
        if number > len(run.turns):
            yield Point(number, missing(bound.limit.unit, _no_turn(run, number)), Ruling.NOT_MEASURED)
    for turn in filter(bound.scope.covers, run.turns):
        figure = measure(Question(run, turn, bound.tool, bound.each, figures))
        yield _point(bound, subject, turn.number, _with_interval(figure, bound, run, turn, figures))


def _total(bound: Bound, subject: Subject, run: Run, figure: Figure, figures: Figures) -> Point:
    """Judge over the run. Of a run cut short only what is already too much is known; what it made, is counted."""
    point = _point(bound, subject, None, _with_interval(figure, bound, run, None, figures))
    short = shortfall(run)
    if not short or subject.unit is Unit.COUNT or point.ruling is not Ruling.KEPT:
        return point
    return Point(None, replace(figure, reason=f"{short}; a total of fewer is no improvement"), Ruling.NOT_MEASURED)


def _point(bound: Bound, subject: Subject, turn: int | None, figure: Figure) -> Point:
    if figure.value is None:
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


def _with_interval(figure: Figure, bound: Bound, run: Run, turn: Turn | None, figures: Figures) -> Figure:
    """A time with its interval, and what cautions against it unless the interval is a point."""
    subject = registry()[bound.subject]
    if not subject.clock or figure.value is None:
        return figure
    if figure.provenance in _UNCERTAIN and figures.interval is not None and figure.low is None:
        ends = figures.interval(run, turn, subject.name, bound.tool)
        figure = figure if ends is None else replace(figure, low=ends[0], high=ends[1])
    if figures.caution is None or (figure.low is not None and figure.low == figure.high):
        return figure
    return replace(figure, caution=figures.caution(run, turn, subject.name))


def _no_turn(run: Run, number: int) -> str:
    return f"no turn {number}: {shortfall(run) or _length(run)}"


def _length(run: Run) -> str:
    return f"the run has {len(run.turns)} turn{'' if len(run.turns) == 1 else 's'}"


def _beyond(point: Point | None, run: Run) -> bool:
    """Whether the point is at a turn that the run doesn't have."""
    return point is not None and point.turn is not None and point.turn > len(run.turns)


def _reason(bound: Bound, run: Run, point: Point | None, ruling: Ruling) -> str:
    if point is None:
        return f"nothing {bound.scope}: {shortfall(run) or _length(run)}"
    if ruling is Ruling.NOT_MEASURED:
        place = f"turn {point.turn}: " if point.turn and not _beyond(point, run) else ""
        return place + point.figure.reason
    if ruling is Ruling.ADVICE:
        return point.figure.caution or _advice(point.figure)
    return _joined(point.figure.caution, shortfall(run))


def _advice(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return f"{figure.provenance} without an interval: no reason to fail"
    low, high = figure.unit.show(figure.low), figure.unit.show(figure.high)
    return f"{figure.provenance}, {low} to {high}: the limit lies within"


# --- growth and prefix


def _judge_growth(bound: GrowthBound, run: Run, figures: Figures) -> Judgement:
    subject, found = subject_of(bound.series), points(bound.series, run, figures)
    looked_at = tuple(
        Point(turn.number, figure, Ruling.NOT_MEASURED if figure.value is None else Ruling.KEPT)
        for turn, figure in zip(run.turns, found, strict=True)
    )
    judgement = Judgement(bound, Ruling.NOT_MEASURED, bound.law, points=looked_at)
    if all(figure.value is None for figure in found):
        reason = next((figure.reason for figure in found), "the run has no turns")
        judgement = replace(judgement, reason=reason)
        return replace(judgement, overrun=unmeasured(judgement))
    growth = law(bound.series, found, run, figures)
    caution = figures.caution(run, None, subject.name) if subject.clock and figures.caution else ""
    origin = weakest(figure.provenance for figure in found if figure.value is not None)
    uncertain = subject.clock and (bool(caution) or origin in _UNCERTAIN)
    ruling = _growth_ruling(bound, growth, uncertain=uncertain)
    overrun = None if ruling is Ruling.KEPT else growth_overrun(bound, growth, ruling, run, figures)
    return replace(judgement, ruling=ruling, reason=_joined(growth.reason, caution, shortfall(run)), overrun=overrun)


def _growth_ruling(bound: GrowthBound, growth: Growth, *, uncertain: bool) -> Ruling:
    limit = Law(bound.law)
    held = satisfies(growth, exactly=limit) if bound.exactly else satisfies(growth, at_most=limit)
    if held is None:
        return Ruling.INCONCLUSIVE
    if held:
        return Ruling.KEPT
    return Ruling.ADVICE if uncertain else Ruling.BROKEN


def _judge_prefix(phrase: StablePrefix, run: Run, figures: Figures) -> Judgement:
    judgement = Judgement(phrase, Ruling.NOT_MEASURED, "stable", reason="the requests' prefixes were not compared")
    if figures.stability is None:
        return replace(judgement, overrun=unmeasured(judgement))
    found = figures.stability(run, phrase.except_turns)
    if found.stable:
        return replace(judgement, ruling=Ruling.KEPT, reason=_joined(_excused(found), shortfall(run)))
    return replace(judgement, ruling=Ruling.BROKEN, reason="", overrun=prefix_overrun(found.breaks, run, figures))


def _excused(found: Stability) -> str:
    breaks = ", ".join(f"turn {each.turn} ({each.reason})" for each in found.excused)
    return f"allowed to break: {breaks}" if breaks else ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))

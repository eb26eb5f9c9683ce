"""What to tell of a budget that isn't kept: the headline, the evidence, one next step.

Owns the words. Refuses to judge.
"""

from collections.abc import Iterator, Sequence

from pytest_agentlatency.analysis.breaks import Break
from pytest_agentlatency.analysis.growth import Growth
from pytest_agentlatency.budgets.figure import MEASURED, Figure, Figures
from pytest_agentlatency.budgets.phrase import Bound, Comparison, GrowthBound, Phrase, Reach, StablePrefix
from pytest_agentlatency.budgets.steps import follows_context, next_step
from pytest_agentlatency.budgets.subjects import SERIES, registry
from pytest_agentlatency.budgets.verdict import Judgement, Overrun, Ruling, headline
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Drift, Run, Turn

_LINES = 5  # turns listed one by one
_NAME = 20  # characters of a tool's name in a headline


def unmeasured(judgement: Judgement) -> Overrun:
    """Tell that a budget's figure isn't to be had, or not as one that was measured."""
    other = _unwanted(judgement)
    if other is None:
        return Overrun(headline("not measured: ", _name(judgement)), (judgement.reason,))
    first = headline(f"not measured but {other.provenance}: ", _name(judgement))
    return Overrun(first, (judgement.reason,), _measure_it(other))


def _unwanted(judgement: Judgement) -> Figure | None:
    """A figure that is there, and not of the kind that the budget wants."""
    if isinstance(judgement.phrase, StablePrefix) or not judgement.phrase.measured:
        return None
    figures = (point.figure for point in judgement.points)
    return next((each for each in figures if each.value is not None and each.provenance not in MEASURED), None)


def _measure_it(figure: Figure) -> str:
    if figure.provenance is Provenance.ESTIMATED:
        return "leave 'measured' out of the budget: this figure is estimated in a live run, too"
    return "run it with --latency-mode=live, or leave 'measured' out of the budget"


def not_there(judgement: Judgement) -> Overrun:
    """Tell that the run doesn't have the turn or the lane that a budget is about."""
    return Overrun(headline(judgement.reason), (f"so there is nothing to judge {judgement.phrase.text!r} on",))


def _name(judgement: Judgement) -> str:
    phrase = judgement.phrase
    if isinstance(phrase, Bound):
        scope = "" if phrase.scope.reach is Reach.TOTAL else f" {phrase.scope}"
        return f"{_label(phrase)}{scope}{_lane(phrase)}"
    return ("prefix" if isinstance(phrase, StablePrefix) else f"{phrase.series} growth") + _lane(phrase)


def _lane(phrase: Phrase) -> str:
    return "" if phrase.lane is None else f" in lane {phrase.lane}"


def bound_overrun(judgement: Judgement, bound: Bound, run: Run, figures: Figures) -> Overrun:
    """Tell that a figure is outside its limit."""
    point = judgement.point
    if point is None or point.figure.value is None:
        return unmeasured(judgement)
    value, limit = _apart(point.figure, point.figure.value, bound)
    place = (f" at turn {point.turn}" if point.turn else "") + _lane(bound)
    first = headline(f"{value} ", _label(bound), place, f", budget {_SIDE[bound.comparison]}{limit}")
    context = _context(run) if follows_context(bound.subject) else ()
    evidence = (*_outside(judgement, bound), *_reasons(judgement), *context, *_drifts(run, point.turn))
    return Overrun(first, evidence, next_step(bound.subject, run, figures))


_SIDE = {Comparison.AT_MOST: "", Comparison.AT_LEAST: "at least ", Comparison.IS: "exactly "}


def _label(bound: Bound) -> str:
    label = registry()[bound.subject].label
    if bound.tool:
        name = bound.tool if len(bound.tool) <= _NAME else bound.tool[: _NAME - 1] + "…"
        label = label.replace("tool", f"tool {name!r}", 1)
    return f"{label} in one" if bound.each else label


def _apart(figure: Figure, value: float, bound: Bound) -> tuple[str, str]:
    """Value and limit as shown; with more digits when they would look equal."""
    shown, limit = str(figure), bound.limit.unit.show(bound.limit.value)
    if shown.lstrip("~≈") == limit:
        shown, limit = figure.provenance.mark + figure.unit.exact(value), figure.unit.exact(bound.limit.value)
    return shown, limit + (" of context" if bound.limit.of_context else "")


def _outside(judgement: Judgement, bound: Bound) -> Iterator[str]:
    """Each turn that is outside, the furthest first."""
    outside = [point for point in judgement.points if point.ruling in {Ruling.BROKEN, Ruling.ADVICE}]
    outside.sort(key=lambda point: point.headroom or 0)
    for point in outside[:_LINES]:
        place = f"turn {point.turn}" if point.turn else "run"
        detail = f" ({point.figure.detail})" if point.figure.detail else ""
        value, limit = _apart(point.figure, point.figure.value or 0, bound)
        inclusive = "" if bound.comparison is Comparison.IS else " inclusive"
        yield f"{place}: {value}{detail}, limit {limit}{inclusive}, {point.figure.provenance}"
    yield from _more(len(outside))


def _more(count: int) -> Iterator[str]:
    if count > _LINES:
        yield f"and {count - _LINES} more"


def _reasons(judgement: Judgement) -> Iterator[str]:
    if judgement.reason:
        yield judgement.reason


def _context(run: Run) -> Iterator[str]:
    """Context of the main lane, turn by turn: what most figures follow from."""
    if len(run.turns) > 1:
        shown = run.turns if len(run.turns) <= 2 * _LINES else (*run.turns[:_LINES], *run.turns[-_LINES:])
        sizes = [units.tokens(turn.call.usage.context, turn.call.usage.provenance) for turn in shown]
        if len(shown) < len(run.turns):
            sizes.insert(_LINES, "…")
        yield "context by turn: " + "  ".join(sizes)


def _drifts(run: Run, at: int | None) -> Iterator[str]:
    """What the deciding turn, or else the one that it costs most, changed against the recording."""
    drifted = [(turn, turn.call.drift) for turn in run.turns if turn.call.drift]
    chosen = next((each for each in drifted if each[0].number == at), max(drifted, key=_weight, default=None))
    if chosen is not None:
        yield from _drift(*chosen)


def _weight(changed: tuple[Turn, Drift]) -> tuple[int, int]:
    """What a turn's change costs: time where it is projected, tokens otherwise; the earlier turn of two equal ones."""
    turn, drift = changed
    time = turn.call.retimed
    return (abs(time.projected - time.recorded) if time else abs(drift.delta or 0)), -turn.number


def _drift(turn: Turn, drift: Drift) -> Iterator[str]:
    """The change in time where there is one, in tokens otherwise, with the piece that did most of it."""
    time, delta = turn.call.retimed, drift.delta
    size = "" if delta is None else f" {units.signed(units.tokens(delta))} tokens"
    if time is None:
        place = f", first at {drift.difference.path}" if drift.difference else ""
        yield f"turn {turn.number} differs from the recording:{size}{place}{_contributor(drift, ': ')}"
    else:
        change = time.projected - time.recorded
        now = units.duration(time.projected, Provenance.PROJECTED)
        share = f", {units.signed(units.share(change / time.recorded))}" if time.recorded else ""
        more = f"{units.signed(units.duration(change))}{share}"
        yield f"turn {turn.number} prefill {now} ({more}):{_contributor(drift, ' ') or size}"
    if drift.cache_miss and drift.recorded_read:
        read = units.tokens(turn.call.usage.cache_read, turn.call.usage.provenance)
        before = units.tokens(drift.recorded_read)
        yield f"turn {turn.number} reads {read} tokens from the cache, recorded {before}: {drift.cache_miss}"


def _contributor(drift: Drift, before: str) -> str:
    """The piece that changed most, where it stands, since when; how many others there are."""
    if not drift.changes:
        return ""
    first, others = drift.changes[0], len(drift.changes) - 1
    size = units.signed(units.tokens(first.tokens))
    more = f", and {others} more piece{'s' if others > 1 else ''}" if others else ""
    return f"{before}{first.what} {size} tokens at {first.path}, since turn {first.since}{more}"


def growth_overrun(bound: GrowthBound, growth: Growth, ruling: Ruling, run: Run, figures: Figures) -> Overrun:
    """Tell that a series grows otherwise than allowed, or that nobody can say."""
    limit = f", budget {'exactly ' if bound.exactly else ''}{bound.law}"
    if ruling is Ruling.INCONCLUSIVE:
        return Overrun(headline("inconclusive: ", f"{bound.series} growth{_lane(bound)}", limit), (growth.reason,))
    power = "" if growth.exponent is None else f"t^{growth.exponent:.2f} "
    first = headline(power, f"{growth.within} ", f"{bound.series} growth{_lane(bound)}", limit)
    evidence = (growth.reason, *filter(None, [growth.driver]), *_context(run), *_drifts(run, None))
    return Overrun(first, evidence, next_step(SERIES[bound.series], run, figures))


def prefix_overrun(phrase: StablePrefix, breaks: Sequence[Break], run: Run, figures: Figures) -> Overrun:
    """Tell where the prefix broke."""
    first, count = breaks[0], f"{len(breaks)} prefix break{'s' if len(breaks) > 1 else ''}"
    line = headline(count, f", first at turn {first.turn}{_lane(phrase)}", f": {first.reason}")
    return Overrun(line, tuple(_breaks(breaks)), next_step("prefix", run, figures))


def _breaks(breaks: Sequence[Break]) -> Iterator[str]:
    for each in breaks[:_LINES]:
        place = f" at {each.path}" if each.path else ""
        detail = f", {each.detail}" if each.detail else ""
        yield f"turn {each.turn}: {each.reason}{place}{detail}: {each.lost:,} tokens to read again"
        yield f"  {each.before!r} became {each.after!r}"
    yield from _more(len(breaks))

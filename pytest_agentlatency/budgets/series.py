"""One value a turn of the main lane, and the law by which it grows.

Owns which subject a series is read from, and running sums. Refuses to judge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from pytest_agentlatency.analysis.driver import driver
from pytest_agentlatency.analysis.growth import Growth, Law, classify
from pytest_agentlatency.budgets.figure import Figure, Figures, Unit
from pytest_agentlatency.budgets.subjects import SERIES, Question, Subject, registry
from pytest_agentlatency.model.run import Run

_MS = 1_000_000
_RISING = frozenset({Law.SUBLINEAR, Law.LINEAR, Law.SUPERLINEAR})


def subject_of(series: str) -> Subject:
    """The subject that gives a series its values. KeyError for a name that isn't in `subjects.SERIES`."""
    return registry()[SERIES[series]]


def points(series: str, run: Run, figures: Figures) -> list[Figure]:
    """The figure of each turn; of a running sum, the turn's own part."""
    measure = subject_of(series).measure
    return [measure(Question(run, turn, figures=figures)) for turn in run.turns]


def law(series: str, found: Sequence[Figure], run: Run, figures: Figures) -> Growth:
    """Classify the points of a series. A turn without a value keeps its number; times say which phase drives them."""
    known = classify(_values(series, found), cuts=tuple(figures.cuts(run)) if figures.cuts else ())
    if subject_of(series).unit is not Unit.TIME or known.within not in _RISING:
        return known
    return replace(known, driver=driver(run.turns, known.cuts))


def _values(series: str, found: Sequence[Figure]) -> list[float | None]:
    """One value a turn; times in milliseconds, because the classifier's sentence shows them."""
    scale = _MS if subject_of(series).unit is Unit.TIME else 1
    values = [None if figure.value is None else figure.value / scale for figure in found]
    return _running(values) if series.startswith("cumulative") else values


def _running(values: Iterable[float | None]) -> list[float | None]:
    """Sums up to each value; None from the first unknown one on."""
    return list(accumulate(values, lambda total, value: None if total is None or value is None else total + value))


def growth(series: str, run: Run, figures: Figures) -> Growth:
    """The law by which a series grows over the turns of the main lane."""
    return law(series, points(series, run, figures), run, figures)

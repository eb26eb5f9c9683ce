"""The law by which a series grows over the turns: "linear or quadratic?", answered with a bounded false-alarm rate.

Owns the classification and the sentence that explains it. Refuses to know what the series is (context, work, time) and
to find compactions by statistics: the caller says at which turns a request did not extend the one before.

The method (docs/measuring.md tells why): a history is a random walk with drift, its noise sits in the increments, so
"linear" means exchangeable increments, whatever their distribution. Superlinear needs both a curved shape and
increments that rise more than chance allows.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pytest_agentlatency.analysis.trend import mann_kendall, orders, permutation, theil_sen

Series = Sequence[float | None]
"""One value a turn; None where the turn has no comparable one (not measured, or summed over hidden passes)."""

_LEAST = 1 / 20
"""Smaller increments, zero and negative ones count as this part of the median one: their logarithm must exist."""
_SHOWN = 6


class Law(StrEnum):
    """How a series grows over the turns."""

    CONSTANT = "constant"
    SUBLINEAR = "sublinear"
    LINEAR = "linear"
    SUPERLINEAR = "superlinear"
    COMPACTED = "compacted"
    """Cut back at least once, and not superlinear in between."""
    INCONCLUSIVE = "inconclusive"
    """Too few turns for any verdict."""


class Step(NamedTuple):
    """The change from one known turn to the next, at the later one."""

    turn: int
    size: float


@dataclass(frozen=True, slots=True)
class Growth:
    """A verdict on one series, or on several recordings of it together, with what it rests on."""

    law: Law
    within: Law
    """The law between compactions; the same as `law` when there are none."""
    exponent: float | None
    """p of the curve t^p with the same area; None when the series doesn't rise or is too short."""
    p_value: float | None
    """Permutation p-value of rising increments; None when there was too little to permute."""
    increments: tuple[float, ...]
    """Change per turn; across a turn without a value, the mean change."""
    slope: float
    """Theil-Sen slope per turn."""
    cuts: tuple[int, ...]
    """Turns, from 1, at which the series was cut back."""
    reason: str
    """One sentence with the numbers."""
    maximum: float | None = None
    largest_step: Step | None = None
    median_increment: float | None = None
    driver: str = ""
    """What makes most of the slope, in one sentence, for turn times that rise; empty where it isn't known."""


@dataclass(frozen=True, slots=True)
class _Rules:
    tol: float
    alpha: float
    flat: float
    min_turns: int


class _Point(NamedTuple):
    turn: int
    value: float


_Stretch = tuple[_Point, ...]
"""Known points between two compactions."""


class _Finding(NamedTuple):
    law: Law
    exponent: float | None
    p_value: float | None
    why: str


def classify(
    series: Series,
    *,
    cuts: Sequence[int] = (),
    tol: float = 0.33,
    alpha: float = 0.05,
    flat: float = 0.02,
    min_turns: int = 5,
) -> Growth:
    """Find the law of a series.

    cuts: turn numbers, from 1, whose request is not an extension of the previous one; those at which the value drops
    are compactions. tol: how far the exponent may exceed 1. alpha: the false-alarm rate that is allowed. flat: rise
    over the run, as part of the median level, that still is constant. min_turns: fewer give `inconclusive`.

    ValueError for a value that is not finite.
    """
    return pooled([series], cuts=[cuts], tol=tol, alpha=alpha, flat=flat, min_turns=min_turns)


def pooled(
    recordings: Sequence[Series],
    *,
    cuts: Sequence[Sequence[int]] = (),
    tol: float = 0.33,
    alpha: float = 0.05,
    flat: float = 0.02,
    min_turns: int = 5,
) -> Growth:
    """Find the one law of several recordings of the same agent, by permuting within each.

    Arguments as in `classify`, with the cuts of each recording. Runs too short to decide alone can decide together.
    """
    broken = cuts or [()] * len(recordings)
    parts = [_cut(_points(series), set(turns)) for series, turns in zip(recordings, broken, strict=True)]
    stretches = [stretch for part, _ in parts for stretch in part]
    compactions = tuple(sorted({turn for _, turns in parts for turn in turns}))
    slopes = [_slope(stretch) for stretch in stretches]
    return _growth(stretches, slopes, compactions, _judge(stretches, slopes, _Rules(tol, alpha, flat, min_turns)))


def slope(series: Series, cuts: Sequence[int] = ()) -> float | None:
    """Theil-Sen slope per turn, the median over the stretches between cuts; None where no stretch has two values.

    cuts: turns, from 1, at which the series was cut back, as `Growth.cuts` has them.
    """
    slopes = [_slope(stretch) for stretch in _stretches(_points(series), cuts) if len(stretch) > 1]
    return median(slopes) if slopes else None


def satisfies(growth: Growth, *, at_most: Law | None = None, exactly: Law | None = None) -> bool | None:
    """Whether a growth keeps a bound; None when it is inconclusive.

    at_most takes constant < sublinear < linear < superlinear and looks between compactions; exactly compares the law.
    ValueError unless one of the two is given, and for an upper bound that isn't one.
    """
    if (at_most is None) == (exactly is None):
        msg = f"give at_most or exactly, not both or neither: at_most={at_most!r}, exactly={exactly!r}"
        raise ValueError(msg)
    if exactly is not None:
        return None if growth.law is Law.INCONCLUSIVE else growth.law is exactly
    if at_most not in _ORDER:
        msg = f"at_most={at_most!r} is no upper bound; allowed: {', '.join(_ORDER)}"
        raise ValueError(msg)
    return None if growth.within is Law.INCONCLUSIVE else _ORDER.index(growth.within) <= _ORDER.index(at_most)


_ORDER = (Law.CONSTANT, Law.SUBLINEAR, Law.LINEAR, Law.SUPERLINEAR)


def _points(series: Series) -> list[_Point]:
    for turn, value in enumerate(series, 1):
        if value is not None and not math.isfinite(value):
            msg = f"turn {turn} of the series is {value!r}; give a finite number, or None for a turn without a value"
            raise ValueError(msg)
    return [_Point(turn, float(value)) for turn, value in enumerate(series, 1) if value is not None]


def _cut(points: Sequence[_Point], breaks: set[int]) -> tuple[list[_Stretch], list[int]]:
    """Stretches between compactions, and the compactions: breaks after which the next known value is lower."""
    dropped = [
        max(between)
        for before, after in pairwise(points)
        if after.value < before.value and (between := [turn for turn in breaks if before.turn < turn <= after.turn])
    ]
    return _stretches(points, dropped), dropped


def _stretches(points: Sequence[_Point], cuts: Sequence[int]) -> list[_Stretch]:
    edges = [0, *cuts, math.inf]
    parts = (tuple(point for point in points if start <= point.turn < end) for start, end in pairwise(edges))
    return [part for part in parts if part]


def _increments(stretch: _Stretch) -> list[float]:
    return [(after.value - before.value) / (after.turn - before.turn) for before, after in pairwise(stretch)]


def _judge(stretches: Sequence[_Stretch], slopes: Sequence[float], rules: _Rules) -> _Finding:
    """Apply the rules in their order: enough turns, constant, superlinear, sublinear, and linear is what is left."""
    exponent = _exponent(stretches)
    increments = [_increments(stretch) for stretch in stretches]
    turns = sum(len(stretch) for stretch in stretches)
    if sum(map(len, increments)) < rules.min_turns - 1 or orders(increments) < 1 / rules.alpha:
        why = f"too few turns to tell: {turns} known, {rules.min_turns} in one stretch are needed"
        return _Finding(Law.INCONCLUSIVE, exponent, None, why)
    tails = permutation([_logarithms(each) for each in increments])
    constant = _constant(stretches, slopes, rules)
    if constant:
        return _Finding(Law.CONSTANT, exponent, tails.up, constant)
    if exponent is not None and exponent > 1 + rules.tol and tails.up <= rules.alpha:
        return _Finding(Law.SUPERLINEAR, exponent, tails.up, "superlinear growth")
    if exponent is not None and exponent < 1 / (1 + rules.tol) and tails.down <= rules.alpha:
        return _Finding(Law.SUBLINEAR, exponent, tails.up, "sublinear growth")
    return _Finding(Law.LINEAR, exponent, tails.up, "no evidence of superlinear growth")


def _constant(stretches: Sequence[_Stretch], slopes: Sequence[float], rules: _Rules) -> str:
    """Why the series counts as constant; empty when it rises."""
    pairs = zip(stretches, slopes, strict=True)
    rise = median(_relative_rise(stretch, slope) for stretch, slope in pairs if len(stretch) > 1)
    if rise <= rules.flat:
        return f"constant: {100 * rise:+.1f}% of its median level over the run"
    chance = mann_kendall([[point.value for point in stretch] for stretch in stretches])
    return f"constant: no rising trend (Mann-Kendall p {chance:.2g})" if chance > rules.alpha else ""


def _relative_rise(stretch: _Stretch, slope: float) -> float:
    """Rise over the stretch as a part of the median level."""
    level = median(point.value for point in stretch)
    rise = slope * (stretch[-1].turn - stretch[0].turn)
    if not level:
        return math.inf if rise > 0 else 0.0
    return rise / abs(level)


def _slope(stretch: _Stretch) -> float:
    return theil_sen([point.turn for point in stretch], [point.value for point in stretch])


def _exponent(stretches: Iterable[_Stretch]) -> float | None:
    """The p = 1/A - 1 of the mean area A under the curves scaled to the unit square; t^p has exactly this p."""
    areas = [(area, len(stretch) - 1) for stretch in stretches if (area := _area(stretch)) is not None]
    weight = sum(count for _, count in areas)
    mean = sum(area * count for area, count in areas) / weight if weight else 0.0
    return 1 / mean - 1 if mean > 0 else None


def _area(stretch: _Stretch) -> float | None:
    """Trapezoid area under the stretch, scaled to the unit square; None when it doesn't rise."""
    first, last = stretch[0], stretch[-1]
    if last.value <= first.value:
        return None
    heights = ((a.value + b.value - 2 * first.value) / 2 * (b.turn - a.turn) for a, b in pairwise(stretch))
    return sum(heights) / ((last.value - first.value) * (last.turn - first.turn))


def _logarithms(increments: Sequence[float]) -> list[float]:
    """Logarithms with a floor, so that a step of 0 or a small shrinking is a small step, not an infinite one."""
    rises = [each for each in increments if each > 0]
    least = _LEAST * median(rises) if rises else 1.0
    return [math.log(max(each, least)) for each in increments]


def _growth(
    stretches: Sequence[_Stretch], slopes: Sequence[float], compactions: tuple[int, ...], finding: _Finding
) -> Growth:
    increments = [each for stretch in stretches for each in _increments(stretch)]
    steps = [Step(b.turn, b.value - a.value) for stretch in stretches for a, b in pairwise(stretch)]
    largest = max(steps, key=lambda step: step.size, default=None)
    compacted = bool(compactions) and finding.law is not Law.SUPERLINEAR
    return Growth(
        law=Law.COMPACTED if compacted else finding.law,
        within=finding.law,
        exponent=finding.exponent,
        p_value=finding.p_value,
        increments=tuple(increments),
        slope=median([slope for stretch, slope in zip(stretches, slopes, strict=True) if len(stretch) > 1] or [0.0]),
        cuts=compactions,
        reason=_sentence(finding, compactions, increments, largest),
        maximum=max((point.value for stretch in stretches for point in stretch), default=None),
        largest_step=largest,
        median_increment=median(increments) if increments else None,
    )


def _sentence(finding: _Finding, compactions: tuple[int, ...], increments: list[float], largest: Step | None) -> str:
    where = f"compacted at turn {', '.join(map(str, compactions))}; in between " if compactions else ""
    numbers = list(_numbers(finding, increments, largest))
    return f"{where}{finding.why}" + (f"; {', '.join(numbers)}" if numbers else "")


def _numbers(finding: _Finding, increments: list[float], largest: Step | None) -> Iterator[str]:
    if finding.exponent is not None:
        yield f"exponent {finding.exponent:.2f}"
    if finding.p_value is not None:
        yield f"permutation p {finding.p_value:.2g}"
    if increments:
        yield f"increments {' '.join(map(_written, increments[:_SHOWN]))}{' ...' if len(increments) > _SHOWN else ''}"
    if largest is not None:
        yield f"largest step turn {largest.turn} ({'+' if largest.size >= 0 else ''}{_written(largest.size)})"


def _written(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004

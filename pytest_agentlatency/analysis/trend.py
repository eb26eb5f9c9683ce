"""Three distribution-free trend statistics over strata of a few points each: pure, deterministic, the same everywhere.

Owns the arithmetic of Theil-Sen slopes, Mann-Kendall and permutation tests. Refuses to know what the numbers are.
A stratum is a list of values in order; strata (several recordings, or stretches of one) are tested together, and only
ever compared within themselves.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations, permutations, product, repeat, starmap
from statistics import fmean, median
from typing import NamedTuple

Strata = Sequence[Sequence[float]]

EXACT_ORDERS = 5040
"""Up to 7! orders are enumerated; beyond, orders are drawn."""
DRAWS, MANY, DRAWS_OF_MANY = 4999, 100, 1999
"""Orders drawn; fewer of more than so many values, where each takes longer and no verdict hangs on one of them."""
_EXACT_PAIRS = 5000
"""Up to 100 points the null distribution is worked out exactly; beyond, it is normal for all purposes."""
_SEED = 20_260_101
_CLOSE = 1e-9


class Tails(NamedTuple):
    """One-sided p-values of a trend: of one as steep upwards, and of one as steep downwards."""

    up: float
    down: float


def theil_sen(times: Sequence[float], values: Sequence[float]) -> float:
    """Median of the slopes between all pairs of points; 0.0 for fewer than two. Times must rise."""
    pairs = combinations(zip(times, values, strict=True), 2)
    slopes = [(after - before) / (end - start) for (start, before), (end, after) in pairs]
    return median(slopes) if slopes else 0.0


def mann_kendall(strata: Strata) -> float:
    """One-sided p-value of "later values are higher": exact for up to 100 points, normal beyond.

    The null distribution is that of values without ties; a tie then speaks for neither side, and the test is
    conservative. (Mann 1945; Kendall 1948; the strata's scores are added up as in Hirsch and Slack 1984.)
    """
    score = sum((b > a) - (b < a) for values in strata for a, b in combinations(values, 2))
    sizes = [len(values) for values in strata]
    pairs = sum(math.comb(size, 2) for size in sizes)
    if pairs > _EXACT_PAIRS:
        variance = sum(n * (n - 1) * (2 * n + 5) / 18 for n in sizes)
        return math.erfc((score - 1) / math.sqrt(2 * variance)) / 2
    inversions = (pairs - score) // 2
    return min(1.0, sum(_inversions(sizes)[: inversions + 1]))


def _inversions(sizes: Iterable[int]) -> list[float]:
    """Probability of each number of inversions in random orders of these sizes, counted together."""
    chances = [1.0]
    for size in sizes:
        for position in range(2, size + 1):
            chances = _spread(chances, position)
    return chances


def _spread(chances: Sequence[float], position: int) -> list[float]:
    """Add an independent uniform draw from 0..position-1, by a running window."""
    spread: list[float] = []
    window = 0.0
    for index in range(len(chances) + position - 1):
        window += chances[index] if index < len(chances) else 0.0
        window -= chances[index - position] if index >= position else 0.0
        spread.append(max(0.0, window) / position)
    return spread


def orders(strata: Strata) -> int:
    """In how many orders the strata could have come; one over this is the least p-value that a permutation can give."""
    return math.prod(math.factorial(len(values)) for values in strata)


def permutation(strata: Strata) -> Tails:
    """p-values of the covariance of value and position, each stratum permuted within itself.

    All orders when there are at most 5,040 of them, otherwise 4,999 drawn ones (1,999 of more than 100 values) and the
    observed one. The draws are seeded and use only `random.random`, whose sequence Python promises to keep: the verdict
    is the same everywhere.
    """
    if all(len(set(values)) <= 1 for values in strata):
        return Tails(1.0, 1.0)  # every order is the observed one
    sizes = tuple(map(len, strata))
    exact = orders(strata) <= EXACT_ORDERS
    observed, *scores = _scores([_places(sizes), *(_all_orders(sizes) if exact else _drawn(sizes))], strata)
    if not exact:
        scores.append(observed)
    slack = _CLOSE * max(1.0, abs(observed))
    up = sum(score >= observed - slack for score in scores)
    down = sum(score <= observed + slack for score in scores)
    return Tails(up / len(scores), down / len(scores))


_Places = tuple[float, ...]
"""The places of all values, stratum by stratum, each as its distance from the middle of its stratum."""


def _scores(every: Iterable[_Places], strata: Strata) -> Iterator[float]:
    """For each order, the sum of place times value.

    By the law of cosines, |p|^2 + |q|^2 - |p - q|^2 is twice that sum, and `math.dist` is one call in C. Values are
    centred, which changes no sum, and made as long as the places, which keeps the difference from losing digits.
    """
    centred = [*chain.from_iterable(map(_centred, strata))]
    length = math.hypot(*_places(map(len, strata)))
    scale = length / math.hypot(*centred)
    scaled = tuple(scale * value for value in centred)
    return ((length**2 - math.dist(places, scaled) ** 2 / 2) / scale for places in every)


def _centred(values: Sequence[float]) -> list[float]:
    mean = fmean(values) if values else 0.0
    return [value - mean for value in values]


def _places(sizes: Iterable[int]) -> _Places:
    """The places of values as they stand."""
    return tuple(index - (size - 1) / 2 for size in sizes for index in range(size))


def _all_orders(sizes: Iterable[int]) -> Iterable[_Places]:
    every = product(*(permutations(_places([size])) for size in sizes))
    return (tuple(chain.from_iterable(parts)) for parts in every)


@lru_cache(maxsize=1)
def _drawn(sizes: tuple[int, ...]) -> Sequence[_Places]:
    """The drawn orders for strata of these sizes. Kept for the next series: those of one run are of one length."""
    draw = random.Random(_SEED).random  # noqa: S311 - a permutation test, not a secret
    rows = [_places([size]) for size in sizes]
    count = DRAWS if sum(sizes) <= MANY else DRAWS_OF_MANY
    return [tuple(chain.from_iterable(_shuffled(row, draw) for row in rows)) for _ in range(count)]


def _shuffled(places: _Places, draw: Callable[[], float]) -> list[float]:
    """The places of values that stand in the order of numbers drawn for them."""
    keys = list(starmap(draw, repeat((), len(places))))
    shuffled = [0.0] * len(keys)
    for place, index in zip(places, sorted(range(len(keys)), key=keys.__getitem__), strict=True):
        shuffled[index] = place
    return shuffled

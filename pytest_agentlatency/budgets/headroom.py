"""How much worse a figure could get before it breaks its budget, in one run and over several.

Owns the room below which a measured time is said to keep its budget by chance. Refuses to judge.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import MEASURED, Figures
from pytest_agentlatency.budgets.phrase import Bound, Comparison, Phrase, StablePrefix
from pytest_agentlatency.budgets.subjects import registry
from pytest_agentlatency.budgets.verdict import Judgement, Ruling
from pytest_agentlatency.model.run import Run

LEAST = 0.2
"""Room, as a part of the figure, below which a time keeps its budget in one measured run and breaks it in the next."""


def room(bound: Bound, value: float) -> float | None:
    """The part of itself by which a figure could get worse: 0.5 for 40 s under 60 s. Negative outside the limit.

    None where nothing can be said in parts: an exact limit, a figure or a limit of 0.
    """
    limit = bound.limit.value
    if bound.comparison is Comparison.IS or min(limit, value) <= 0:
        return None
    return (limit / value if bound.comparison is Comparison.AT_MOST else value / limit) - 1


def little(judgement: Judgement) -> float | None:
    """The room of a time that was measured and kept its budget, where it is too little; None otherwise.

    A replay gives the same times for ever, and a count is exact: neither is warned of.
    """
    phrase, point = judgement.phrase, judgement.point
    if not isinstance(phrase, Bound) or point is None or judgement.ruling is not Ruling.KEPT:
        return None
    if not registry()[phrase.subject].clock or point.figure.provenance not in MEASURED:
        return None
    found = None if point.figure.value is None else room(phrase, point.figure.value)
    return found if found is not None and found < LEAST else None


@dataclass(frozen=True, slots=True)
class Seen:
    """A run, and what can be asked of it."""

    run: Run
    figures: Figures


@dataclass(frozen=True, slots=True)
class Spread:
    """A budget over several runs of one agent: the figure that decided in each, and how many kept it."""

    phrase: Phrase
    judgements: tuple[Judgement, ...]
    """One a run."""

    @property
    def values(self) -> tuple[float, ...]:
        """In ascending order, in the base unit; of the runs that gave one."""
        points = (each.point for each in self.judgements)
        return tuple(sorted(point.figure.value for point in points if point and point.figure.value is not None))

    @property
    def kept(self) -> int:
        """Runs that kept the budget."""
        return sum(each.ruling is Ruling.KEPT for each in self.judgements)

    @property
    def broken(self) -> int:
        """Runs that broke it."""
        return sum(each.ruling is Ruling.BROKEN for each in self.judgements)

    @property
    def undecided(self) -> int:
        """Runs that neither kept nor broke it: too few turns for a growth, times that are no reason to fail."""
        return len(self.judgements) - self.kept - self.broken - len(self.unmeasured)

    @property
    def unmeasured(self) -> tuple[Judgement, ...]:
        """Those of runs that have no such figure."""
        return tuple(each for each in self.judgements if each.ruling is Ruling.NOT_MEASURED)

    @property
    def median(self) -> float | None:
        """Half of the runs are at or below it."""
        return median(self.values) if self.values else None

    def quantile(self, part: float) -> float | None:
        """The smallest value that this part (0-1) of the runs is at or below: nearest rank. None without values."""
        return self.values[max(0, math.ceil(part * len(self.values)) - 1)] if self.values else None

    @property
    def room(self) -> float | None:
        """That of the worst run."""
        if not isinstance(self.phrase, Bound) or not self.values:
            return None
        return room(self.phrase, self.values[0 if self.phrase.comparison is Comparison.AT_LEAST else -1])

    @property
    def is_little(self) -> bool:
        """Whether every run keeps a budget over a time, and the worst one with too little room."""
        timed = isinstance(self.phrase, Bound) and registry()[self.phrase.subject].clock
        return timed and self.room is not None and 0 <= self.room < LEAST


def spread(phrase: Phrase, seen: Sequence[Seen]) -> Spread:
    """Judge a budget on each run. A recording was measured when it was made, so `measured` wants nothing here."""
    asked = phrase if isinstance(phrase, StablePrefix) else replace(phrase, measured=False)
    return Spread(phrase, tuple(judge(asked, each.run, each.figures) for each in seen))

"""What judging a phrase gives: a ruling, the figures that it rests on, and, when it is broken, what to tell.

Values only.
"""

from dataclasses import dataclass
from enum import StrEnum

from pytest_agentlatency.budgets.figure import Figure
from pytest_agentlatency.budgets.phrase import Phrase

HEADLINE = 60
"""Longest headline: behind `FAILED test_x.py::test_y - Failed: ` it survives a summary of 80 columns."""


class Ruling(StrEnum):
    """What became of a budget."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_MEASURED = "not measured"
    """The figure isn't to be had, so nobody knows; a test fails on it, and never passes in silence."""
    INCONCLUSIVE = "inconclusive"
    """Measured, but too little to decide (growth over a few turns)."""
    ADVICE = "advice"
    """Over the limit by a projection that is too uncertain to fail a test."""
    WAIVED = "waived"
    """Not judged, because the test says why it can't keep it."""


@dataclass(frozen=True, slots=True)
class Point:
    """The budget's figure at one turn, or over the run."""

    turn: int | None
    figure: Figure
    ruling: Ruling
    headroom: float | None = None
    """How far inside the limit, in the figure's base unit; negative outside, None when not measured."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """One way a run broke a budget, told to a person."""

    headline: str
    """At most 60 characters, numbers first: `61% prefill at turn 6, budget 50%`."""
    evidence: tuple[str, ...] = ()
    """A line each."""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A phrase judged on a run."""

    phrase: Phrase
    ruling: Ruling
    limit: str = ""
    """As shown: `50%`, `linear`, `stable`."""
    point: Point | None = None
    """The figure that decided: the one furthest outside the limit, or closest to it."""
    points: tuple[Point, ...] = ()
    """Every figure looked at, in turn order."""
    reason: str = ""
    """Why it is not measured, inconclusive, or advice only; a note when it is kept."""
    overrun: Overrun | None = None
    """What to tell; None when the budget is kept."""

    @property
    def fails(self) -> bool:
        """Whether a test must fail. Whether an inconclusive budget does is the caller's setting."""
        return self.ruling in {Ruling.BROKEN, Ruling.NOT_MEASURED}


def headline(*parts: str) -> str:
    """Join the parts, leaving out from the last-but-one back to the second what doesn't fit into 60 characters."""
    kept = [part for part in parts if part]
    while len("".join(kept)) > HEADLINE and len(kept) > 2:  # noqa: PLR2004  the value and the limit stay
        kept.pop(-2)
    text = "".join(kept).replace(" ,", ",")
    return text if len(text) <= HEADLINE else text[: HEADLINE - 1] + "…"

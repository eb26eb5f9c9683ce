"""How far a projected figure may be off, and when a time says nothing of the requests that are sent now.

Owns the way from a re-timed run to the questions that budgets ask: an interval is the same figure, read off the run
laid out at both ends. Refuses to judge.
"""

from collections.abc import Sequence
from dataclasses import replace

from pytest_agentlatency.analysis.retiming import Retimed
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.lanes import like
from pytest_agentlatency.budgets.subjects import Question, registry
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run, Turn

_RECORDED = {f"{phase} time" for phase in Phase if phase is not Phase.PREFILL} | {"tpot"}
"""Times that stay as recorded whatever a request carries."""


def with_projection(figures: Figures, retimed: Retimed) -> Figures:
    """The same figures, with intervals and cautions of a re-timed run."""

    def interval(asked: Run, turn: Turn | None, subject: str, tool: str) -> tuple[float, float] | None:
        places = ((retimed.run, turn), *retimed.ends(turn))
        return _interval([Question(like(run, asked, retimed.run), at, tool) for run, at in places], subject)

    def caution(asked: Run, turn: Turn | None, subject: str) -> str:
        return _caution(retimed, asked, turn, subject)

    return replace(figures, interval=interval, caution=caution)


def _interval(questions: Sequence[Question], subject: str) -> tuple[float, float] | None:
    """The figure at both ends and in the middle, outermost values."""
    values = [registry()[subject].measure(question).value for question in questions]
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if len(known) == len(values) else None


def _caution(retimed: Retimed, asked: Run, turn: Turn | None, subject: str) -> str:
    """Why a time must not fail a test, or is that of before the change; empty where neither holds."""
    if subject in _RECORDED:
        return ""
    stale = retimed.why_stale(turn)
    if stale:
        return f"tokens only, the time is from before the change: {stale}"
    owner = turn or asked
    return retimed.caution(turn) if owner.provenance is Provenance.PROJECTED else ""

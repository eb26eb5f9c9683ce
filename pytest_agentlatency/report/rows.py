"""The cells of one row of the table: a turn's, or the run's.

Owns how integers are rounded so that a row visibly sums, and what an unknown looks like.
"""

from collections.abc import Mapping, Sequence

from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.run import Call, Run, Turn, share_of

AT_LEAST = "≥"
"""Before a phase's time of a run in which some call couldn't be split: it may be more."""


def rounded(parts: Sequence[int], scale: int) -> list[int]:
    """Divide non-negative integers by scale so that the quotients sum to the rounded quotient of the sum.

    Largest remainders get the units that rounding down leaves over.
    """
    whole = [part // scale for part in parts]
    missing = (sum(parts) + scale // 2) // scale - sum(whole)
    by_remainder = sorted(range(len(parts)), key=lambda index: parts[index] % scale, reverse=True)
    for index in by_remainder[:missing]:
        whole[index] += 1
    return whole


def phase_cells(owner: Turn | Run, scale: int) -> Mapping[Phase, str]:
    """`3,200 86%` for every phase of a turn or a run; `n/a` where it isn't known."""
    if owner.duration is None:
        return dict.fromkeys(Phase, units.MISSING)
    times = owner.phases
    shown = dict(zip(times, rounded(list(times.values()), scale), strict=True))
    return {phase: _phase_cell(owner, phase, shown.get(phase)) for phase in Phase}


def _phase_cell(owner: Turn | Run, phase: Phase, shown: int | None) -> str:
    known = owner.time(phase) is not None
    if shown is None:
        return "-" if known else units.MISSING
    mark = owner.provenance.mark if known else AT_LEAST
    percent = _percent(share_of(owner.phases[phase], owner.duration)) if known else ""
    return f"{mark}{shown:,} {percent}".rstrip()


def _percent(share: float | None) -> str:
    """Whole percents, three characters wide at least, so that they stand below each other."""
    if share is None:
        return ""
    return " <1%" if 0 < share < 0.005 else f"{100 * share:3.0f}%"  # noqa: PLR2004  half a percent


def total_cell(owner: Turn | Run, scale: int) -> str:
    """The duration, rounded as the sum of its phases is."""
    if owner.duration is None:
        return units.MISSING
    return f"{owner.provenance.mark}{(owner.duration + scale // 2) // scale:,}"


def call_cell(turn: Turn, time: int | None, scale: int) -> str:
    """A time of the turn's call (to its first token, to the hand-over), in the table's unit."""
    return units.MISSING if time is None else f"{turn.provenance.mark}{round(time / scale):,}"


def verdict_cell(call: Call) -> str:
    """`identical`, `drifted +1,240` or `unmatched`; empty outside replay."""
    delta = call.drift.delta if call.drift else None
    return f"{call.verdict or ''}" + ("" if delta is None else f" {units.signed(units.tokens(delta))}")

"""Which phase makes the turns of a lane slower as it goes.

Owns the comparison of the phases' slopes with that of the turn time. Refuses to say whether the turn time grows, and by
which law (`growth`).
"""

from collections.abc import Iterator, Sequence

from pytest_agentlatency.analysis.growth import slope
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import weakest
from pytest_agentlatency.model.run import Turn

_MOST = 0.5  # part of the turn time's slope from which on one phase is said to drive it


def driver(turns: Sequence[Turn], cuts: Sequence[int] = ()) -> str:
    """One sentence: `driven by prefill: +410 ms of +450 ms a turn`. Slopes are Theil-Sen's, over the turns.

    cuts: turns at which the turn time was cut back. Empty when the turn time is not known or doesn't rise, and when
    only some calls could be split into prefill and decode: their phases are no series then.
    """
    whole = slope([turn.duration for turn in turns], cuts)
    if whole is None or whole <= 0:
        return ""
    rises = sorted(_rises(turns, cuts), key=lambda each: -each[1])
    if not rises:
        return ""
    origin = weakest(turn.provenance for turn in turns)
    total, *written = (units.signed(units.duration(each, origin)) for each in (whole, *(rise for _, rise in rises)))
    first, most = rises[0]
    if most >= _MOST * whole:
        return f"driven by {first}: {written[0]} of {total} a turn"
    shares = ", ".join(f"{phase} {rise}" for (phase, _), rise in zip(rises, written, strict=True))
    return f"driven by no single phase: {shares} of {total} a turn"


def _rises(turns: Sequence[Turn], cuts: Sequence[int]) -> Iterator[tuple[Phase, float]]:
    """The phases that take longer from turn to turn, each with nanoseconds a turn; none unless all are comparable."""
    timed = [turn for turn in turns if turn.duration is not None]
    unsplit = [turn for turn in timed if turn.time(Phase.PREFILL) is None]
    if unsplit and len(unsplit) < len(timed):
        return
    for phase in Phase:
        rise = slope([turn.time(phase) for turn in turns], cuts)
        if rise is not None and rise > 0:
            yield phase, rise

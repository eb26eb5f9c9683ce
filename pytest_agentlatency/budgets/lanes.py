"""One lane of a run, as a run of its own.

Owns what a budget `in lane 2` is judged on: that lane's turns, and for a total the lane's own time, from its first call
to the end of its last turn. Refuses to judge.
"""

from dataclasses import replace

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.provenance import weakest
from pytest_agentlatency.model.run import Run, totals


def only(run: Run, lane: int) -> Run | None:
    """The run as if it had this lane alone; None when it has no such lane.

    `recorded_turns` is dropped: how many of the lane's turns were recorded, a run doesn't say.
    """
    found = next((each for each in run.lanes if each.id == lane), None)
    if found is None:
        return None
    segments = tuple(span for turn in found.turns for span in turn.segments)
    return replace(
        run,
        lanes=(found,),
        segments=segments,
        start=found.turns[0].start,
        end=found.turns[-1].end,
        tools=tuple(tool for turn in found.turns for tool in turn.tools),
        paused=Ns(sum(turn.paused for turn in found.turns)),
        work=totals(segments),
        provenance=weakest(turn.provenance for turn in found.turns),
        recorded_turns=None,
    )


def like(run: Run, asked: Run, whole: Run) -> Run:
    """What `asked` is of `whole`, taken of another layout of it: all of `run`, or one of its lanes.

    A run may begin before the first call of its only lane, and end after its last turn.
    """
    if not asked.lanes or (len(asked.lanes), asked.start, asked.end) == (len(whole.lanes), whole.start, whole.end):
        return run
    return only(run, asked.lanes[0].id) or run

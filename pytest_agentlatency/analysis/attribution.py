"""Who is to blame for each nanosecond: the blocking path through activities that nest and overlap.

Owns the walk, the work beside it and the taking out of pauses. Refuses to know calls, tools or bytes: an activity is an
interval with a phase, made by `analysis.assembly`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase, Span
from pytest_agentlatency.model.recording import Pause


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that ran over `[start, end)`, in nanoseconds on the run's clock, and what ran inside it.

    Children may overlap each other and stick out of their parent; what sticks out is cut off. An activity that ends
    where it starts, or before, took no time.
    """

    id: int
    """Unique in its tree; decides between two activities of equal bounds."""
    start: Ns
    end: Ns
    phase: Phase
    """Where the time goes during which no child runs."""
    detail: str = ""
    lane: int | None = None
    children: tuple["Activity", ...] = ()


class _Window(NamedTuple):
    """The part of an activity that is looked at."""

    activity: Activity
    start: Ns
    end: Ns


def blocking_path(root: Activity) -> tuple[Span, ...]:
    """What the run was waiting for, at every instant from root's start to its end.

    Walks back from the end: the child that was still running last is what the parent waited for; before that child
    began, the same question is asked again. Time in which no child ran is the parent's own. The spans are contiguous
    and not empty, neighbours differ in phase, detail or lane, and their durations sum to the root's exactly. Work that
    is hidden behind something that began earlier and is still running is not on the path.
    """
    backwards: list[Span] = []
    # A stack of our own: depth is the user's nesting, and Python's recursion limit is not a limit of agents.
    todo: list[_Window | Span] = [_Window(root, root.start, root.end)]
    while todo:
        piece = todo.pop()
        if isinstance(piece, Span):
            backwards.append(piece)
        else:
            todo.extend(reversed(list(_pieces(piece))))
    return _merged(reversed(backwards))


def _pieces(window: _Window) -> Iterator[_Window | Span]:
    """Cut a window into the children that blocked it and its own time between them, latest first."""
    time = window.end
    for child in _blockers(window):
        if child.end < time:
            yield _own(window.activity, child.end, time)
        yield child
        time = child.start
    if window.start < time:
        yield _own(window.activity, window.start, time)


def _blockers(window: _Window) -> Iterator[_Window]:
    """Children on the path, latest first, each cut at the start of the one that follows it.

    At time t the choice falls on the child with start < t that maximises min(end, t); ties go to the earlier start,
    then to the lower id. In order of falling ends, the children that still ran at t are a prefix, and once the earliest
    start among them is chosen none of them starts before the new t: one pass does it.
    """
    waiting = sorted(_clipped(window), key=lambda each: (-each.end, each.start, each.activity.id))
    time = window.end
    best: _Window | None = None
    for child in waiting:
        if best is not None and child.end < time:
            yield best
            time, best = best.start, None
        if child.start >= time:
            continue
        if best is None or (child.start, child.activity.id) < (best.start, best.activity.id):
            best = child._replace(end=min(child.end, time))
            time = best.end
    if best is not None:
        yield best


def _clipped(window: _Window) -> Iterator[_Window]:
    """Children as far as they lie inside the window; those that don't are left out."""
    for child in window.activity.children:
        start, end = max(child.start, window.start), min(child.end, window.end)
        if start < end:
            yield _Window(child, start, end)


def _own(activity: Activity, start: Ns, end: Ns) -> Span:
    return Span(activity.phase, start, end, activity.detail, activity.lane)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join neighbours that say the same."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1] == replace(span, start=joined[-1].start, end=joined[-1].end):
            joined[-1] = replace(joined[-1], end=span.end)
        else:
            joined.append(span)
    return tuple(joined)


def without(spans: Iterable[Span], pauses: Iterable[Pause]) -> tuple[Span, ...]:
    """Spans with the pauses cut out of them; the rest stays where it was on the clock.

    The durations sum to less by exactly the paused time inside the spans; pauses that overlap are one pause.
    """
    paused = _union((pause.start, pause.end) for pause in pauses)
    return tuple(piece for span in spans for piece in _outside(span, paused))


def _outside(span: Span, paused: Sequence[tuple[Ns, Ns]]) -> Iterator[Span]:
    """Parts of a span that lie in no pause."""
    time = span.start
    for start, end in paused:
        if end <= time:
            continue
        if start >= span.end:
            break
        if time < start:
            yield replace(span, start=time, end=start)
        time = end
    if time < span.end:
        yield replace(span, start=time)


def work(root: Activity) -> Mapping[Phase, Ns]:
    """Nanoseconds by phase with overlaps counted as often as they occur, in the phases' order.

    Each activity counts for the time in which none of its children ran. Beside the blocking path, which counts each
    instant once, this says how much was done.
    """
    sums: defaultdict[Phase, int] = defaultdict(int)
    todo = [_Window(root, root.start, root.end)]
    while todo:
        window = todo.pop()
        inside = list(_clipped(window))
        covered = sum(end - start for start, end in _union((each.start, each.end) for each in inside))
        sums[window.activity.phase] += max(0, window.end - window.start) - covered
        todo.extend(inside)
    return {phase: Ns(sums[phase]) for phase in Phase if sums[phase]}


def parallelism(root: Activity) -> float:
    """Work divided by wall time: 1.0 when nothing overlapped or nothing took time, 2.0 when two things always ran."""
    wall = root.end - root.start
    return sum(work(root).values()) / wall if wall > 0 else 1.0


def _union(intervals: Iterable[tuple[Ns, Ns]]) -> list[tuple[Ns, Ns]]:
    """The same instants as disjoint intervals in order."""
    joined: list[tuple[Ns, Ns]] = []
    for start, end in sorted(each for each in intervals if each[0] < each[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined

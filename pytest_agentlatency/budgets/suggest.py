"""The budgets that runs of one agent would keep: exact counts first, times only where every call was streamed.

Owns which are offered, and how much room they are given beyond what was seen. Refuses to judge and to know files.
"""

import math
from collections.abc import Iterator, Sequence

from pytest_agentlatency.budgets.headroom import Seen, Spread, spread
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.subjects import Question, registry

COUNT_ROOM, TIME_ROOM = 1.2, 1.5
"""Limits, as multiples of the largest figure that was seen. A count comes again exactly, a time doesn't."""
_MS, _S = 1_000_000, 1000


def suggested(seen: Sequence[Seen]) -> tuple[Spread, ...]:
    """Budgets that every one of these runs keeps, over what all of them measured."""
    found = (spread(parse(text), seen) for text in _texts(seen)) if all(each.run.turns for each in seen) else ()
    return tuple(each for each in found if each.kept == len(seen))


def _texts(seen: Sequence[Seen]) -> Iterator[str]:
    yield f"turns at most {_more('turns', seen)}"
    if any(len(each.run.lanes) > 1 for each in seen):
        yield f"calls at most {_more('calls', seen)}"
    context = _largest("context tokens", seen)
    if context is not None:
        yield f"context tokens under {_up(COUNT_ROOM * context):,} at every turn"
    if min(len(each.run.turns) for each in seen) > 1:
        yield from ("prefix stable", "context growth is linear")
    if all(call.splits for each in seen for call in each.run.calls):
        yield from _times(seen)


def _times(seen: Sequence[Seen]) -> Iterator[str]:
    for subject, scope in (("ttft", " at every turn"), ("total", "")):
        largest = _largest(subject, seen)
        if largest:
            yield f"{subject} under {_time(TIME_ROOM * largest)}{scope}"


def _more(subject: str, seen: Sequence[Seen]) -> int:
    return math.ceil(COUNT_ROOM * (_largest(subject, seen) or 0))


def _largest(subject: str, seen: Sequence[Seen]) -> float | None:
    """Over the turns of the main lane, or over the run where the subject has no turns; None where one isn't known."""
    asked = registry()[subject]
    values = [
        asked.measure(Question(each.run, turn, figures=each.figures)).value
        for each in seen
        for turn in (each.run.turns if asked.at_turn else (None,))
    ]
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _up(value: float) -> int:
    """The next whole number of two significant digits."""
    step = int(10 ** max(0, math.floor(math.log10(max(1, value))) - 1))
    return math.ceil(value / step) * step


def _time(ns: float) -> str:
    ms = _up(ns / _MS)
    return f"{ms} ms" if ms < _S else f"{ms / _S:g} s"

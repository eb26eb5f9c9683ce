"""Times that the reader of a stream decided, not the model: which budgets they are under, and what is said of it.

Owns the rule that such a time is no baseline. What comes before the first token is the model's however slowly the rest
is read; decode, and all that holds it (a turn, a total, every share of them), is not. Refuses to judge.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_agentlatency.analysis import streamhealth
from pytest_agentlatency.budgets.lanes import only
from pytest_agentlatency.budgets.phrase import Bound, Phrase, Reach, StablePrefix
from pytest_agentlatency.budgets.series import subject_of
from pytest_agentlatency.budgets.subjects import Subject, registry
from pytest_agentlatency.budgets.verdict import headline
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.run import Milestones, Run, Turn

NOTICED = 100_000_000
"""Nanoseconds of a turn that a reader may take unnoticed: where all comes at once, parsing it is most of the decode."""
PART = 0.05
"""Part of a turn's or a run's duration below which it doesn't matter: the tolerance of a time."""

_FREE = {"ttft", "time to first event", "delivered"} | {f"{phase} time" for phase in Phase if phase is not Phase.DECODE}
_OF_DECODE = {"decode time", "tpot", "time to first output", "time to first text"}
_FIRSTS = {"time to first output": "first_output", "time to first text": "first_text"}


@dataclass(frozen=True, slots=True)
class Slow:
    """The turn of a budget's that was read most slowly."""

    turn: Turn
    held: int
    """Nanoseconds of its decode in which the model waited for the reader."""

    @property
    def share(self) -> float | None:
        """Of the decode, as a fraction."""
        decode = self.turn.call.decode
        return self.held / decode if decode else None

    @property
    def place(self) -> str:
        """The turn, and its lane where that isn't the main one."""
        return f"turn {self.turn.number}" if self.turn.lane == 1 else f"lane {self.turn.lane} turn {self.turn.number}"


def slow(phrase: Phrase, run: Run) -> Slow | None:
    """The client-bound turn that a budget's time rests on; None where it rests on none, or is about no time."""
    asked = run if phrase.lane is None else only(run, phrase.lane)
    if asked is None or isinstance(phrase, StablePrefix):
        return None
    if not isinstance(phrase, Bound):
        return _worst(subject_of(phrase.series), asked.turns, None)
    subject = registry()[phrase.subject]
    if phrase.scope.reach is Reach.TOTAL:
        return _worst(subject, asked.all_turns, asked)
    return _worst(subject, filter(phrase.scope.covers, asked.turns), None)


def _worst(subject: Subject, turns: Iterable[Turn], whole: Run | None) -> Slow | None:
    """`whole`: the run whose figure is judged; None: each turn's own is."""
    if not subject.clock or subject.name in _FREE:
        return None
    found = [Slow(turn, held) for turn in turns if (held := _held(turn)) >= NOTICED and _touched(subject, turn)]
    if subject.name not in _OF_DECODE:
        found = _told_by(found, whole)
    return max(found, key=lambda each: each.held, default=None)


def _told_by(found: list[Slow], whole: Run | None) -> list[Slow]:
    """Those that are more than a small part of the figure."""
    if whole is None:
        return [each for each in found if each.held > PART * (each.turn.duration or 0)]
    return found if sum(each.held for each in found) > PART * (whole.duration or 0) else []


def _held(turn: Turn) -> int:
    return streamhealth.held(turn.call) if streamhealth.CLIENT_BOUND in turn.call.flags else 0


def _touched(subject: Subject, turn: Turn) -> bool:
    """Whether the figure of a turn reaches into its decode: the first text may be the first token."""
    at: Milestones = turn.call.milestones
    first = _FIRSTS.get(subject.name)
    return first is None or getattr(at, first) != at.first_token


def reasons(phrases: Iterable[Phrase], run: Run) -> Mapping[str, str]:
    """Phrase -> why its figure is no baseline, for those whose figure isn't."""
    found = ((phrase.text, slow(phrase, run)) for phrase in phrases)
    return {text: f"{each.place} is client-bound ({_told(each)})" for text, each in found if each is not None}


def refusal(phrases: Iterable[Phrase], run: Run) -> str:
    """Why a recording of this run may not stand under these budgets; empty when it may."""
    found = [(phrase.text, each) for phrase in phrases if (each := slow(phrase, run)) is not None]
    return "\n".join(_lines(found)) if found else ""


def _lines(found: list[tuple[str, Slow]]) -> Iterator[str]:
    worst = max((each for _, each in found), key=lambda each: each.held)
    yield headline(f"client-bound: {units.share(worst.share)} of decode", f" at {worst.place}", " is the reader's")
    yield ""
    for text, each in found:
        yield f"{text!r} would stand on {each.place}: {_told(each)}"
    yield ""
    yield (
        "Such a recording is no baseline of these times. Record again on a quiet machine, or read the stream without "
        "blocking between chunks. Times before the first token, tokens and turns can be budgeted as it is."
    )


def _told(each: Slow) -> str:
    decode = units.duration(each.turn.call.decode)
    return f"of a decode of {decode} the reader took {units.duration(each.held)} before it asked for the next chunk"

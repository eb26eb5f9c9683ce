"""The registry of figures that a budget can be about: names, units, scopes, and how each is read off a run.

Owns the vocabulary of budgets. Refuses to judge, and to work out what an analysis works out (see `Figures`).
Other packages add subjects through the entry-point group `agentlatency.subjects`: each entry point is a `Subject`
or an iterable of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import cast

from pytest_agentlatency.budgets.figure import Figure, Figures, Unit
from pytest_agentlatency.model.run import Run, Turn

GROUP = "agentlatency.subjects"


@dataclass(frozen=True, slots=True)
class Question:
    """What a figure is asked of."""

    run: Run
    turn: Turn | None = None
    """None: the whole run, every lane."""
    tool: str = ""
    """Only this tool's part; empty: all tools."""
    each: bool = False
    """The largest single item instead of the sum."""
    figures: Figures = Figures()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turn, or every turn of every lane."""
        return (self.turn,) if self.turn else self.run.all_turns

    @property
    def one(self) -> Turn:
        """The turn, for a subject that has no total. ValueError when the run as a whole is asked."""
        if self.turn is None:
            msg = "this subject has no total; the grammar asks it at turns only"
            raise ValueError(msg)
        return self.turn


def place(turn: Turn) -> str:
    """How a reason names a turn: `turn 3`, `lane 2 turn 3`."""
    return f"turn {turn.number}" if turn.lane == 1 else f"lane {turn.lane} turn {turn.number}"


Measure = Callable[[Question], Figure]


@dataclass(frozen=True, slots=True)
class Subject:
    """One figure: its words, its unit, and how it is read off a run."""

    name: str
    """Lower-case words, as written in a phrase."""
    unit: Unit
    measure: Measure
    at_turn: bool = True
    """Has a value at one turn."""
    in_total: bool = True
    """Has a value over the whole run; then that is what a phrase without a scope means."""
    aliases: tuple[str, ...] = ()
    takes_tool: bool = False
    """A tool's quoted name may follow the word `tool`."""
    takes_each: bool = False
    """`each` may follow the limit."""
    of_context: Measure | None = None
    """Share (0-1) of a turn's context, for limits such as `20% of context`; None: no such limit."""
    clock: bool = False
    """A time or a share of time: when projected, it gates only with its whole interval."""
    noun: str = ""
    """What a headline calls it after its value, when not by its name: `61% prefill`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name and aliases."""
        return (self.name, *self.aliases)

    @property
    def label(self) -> str:
        """What a headline calls it."""
        return self.noun or self.name


SERIES: Mapping[str, str] = {
    "context": "context tokens",
    "cumulative prefill": "prefill work",
    "output": "output tokens",
    "tool result": "tool result tokens",
    "turn time": "turn time",
}
"""Series whose growth can be classified -> the subject that gives one value a turn."""


@cache
def registry() -> Mapping[str, Subject]:
    """Every subject by each of its names, other packages' included.

    Raises TypeError when an entry point isn't a subject, ValueError when two subjects share a name.
    """
    from pytest_agentlatency.budgets import measures  # noqa: PLC0415  measures imports Subject from here

    found: dict[str, Subject] = {}
    for subject in (*measures.SUBJECTS, *_foreign()):
        for name in subject.names:
            if name in found:
                msg = f"two budget subjects are called {name!r}; rename the one from entry-point group {GROUP!r}"
                raise ValueError(msg)
            found[name] = subject
    return found


def _foreign() -> Iterator[Subject]:
    for point in entry_points(group=GROUP):
        loaded: object = point.load()
        items = cast("Iterable[object]", loaded) if isinstance(loaded, Iterable) else (loaded,)
        for item in items:
            if not isinstance(item, Subject):
                msg = f"entry point {point.name!r} ({point.value}) of {GROUP!r} gives {item!r}, not a Subject"
                raise TypeError(msg)
            yield item

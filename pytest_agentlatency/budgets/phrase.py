"""A budget as people write it: `prefill share under 50% at turn 6`, parsed into a value.

Owns the phrase's meaning and what is said when it has none. The grammar is `grammar`'s, the vocabulary `subjects`'.
Refuses to look at a run.

Limits are inclusive, whatever word is used: a value equal to its limit keeps the budget, for `under` and `<` too.
"""

from dataclasses import dataclass
from enum import StrEnum

from pytest_agentlatency.budgets.figure import Unit
from pytest_agentlatency.model.run import Turn


class Comparison(StrEnum):
    """Which side of the limit is kept; the limit itself always is."""

    AT_MOST = "at most"
    AT_LEAST = "at least"
    IS = "exactly"


class Reach(StrEnum):
    """Where a budget is judged."""

    TOTAL = "total"
    EVERY = "every"
    AT = "at"
    FROM = "from"


@dataclass(frozen=True, slots=True)
class Scope:
    """Turns of the main lane, or the whole run."""

    reach: Reach
    turns: tuple[int, ...] = ()
    """The turns of `at`; the first one of `from`."""

    def __str__(self) -> str:
        """As written in a phrase: `at turn 6`, `at turns 2, 4`, `from turn 3`, `at every turn`, `in total`."""
        numbers = ", ".join(map(str, self.turns))
        if self.reach is Reach.AT:
            return f"at turn{'s' if len(self.turns) > 1 else ''} {numbers}"
        if self.reach is Reach.FROM:
            return f"from turn {numbers}"
        return "in total" if self.reach is Reach.TOTAL else "at every turn"

    def covers(self, turn: Turn) -> bool:
        """Whether a turn of the main lane is judged; none is when the run is judged as a whole."""
        if self.reach is Reach.AT:
            return turn.number in self.turns
        if self.reach is Reach.FROM:
            return turn.number >= self.turns[0]
        return self.reach is Reach.EVERY


@dataclass(frozen=True, slots=True)
class Limit:
    """The number of a phrase, in its base unit (ns, fraction, tokens, bytes, things)."""

    value: float
    unit: Unit
    of_context: bool = False
    """The number is a share of each turn's context."""

    def __str__(self) -> str:
        """As shown in a message."""
        return self.unit.show(self.value) + (" of context" if self.of_context else "")


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure kept on one side of a limit."""

    text: str
    subject: str
    """Its registered name, aliases resolved."""
    comparison: Comparison
    limit: Limit
    scope: Scope
    tool: str = ""
    """The one tool meant; empty: all."""
    each: bool = False
    """The limit is for every single item, not for their sum."""
    lane: int | None = None
    """The one lane meant; None: the main lane at turns, every lane in total."""
    measured: bool = False
    """Only a figure that was measured in this very run may keep it."""


@dataclass(frozen=True, slots=True)
class GrowthBound:
    """A series of one value a turn that grows no faster than a law."""

    text: str
    series: str
    """A key of `subjects.SERIES`."""
    law: str
    """`constant`, `sublinear` or `linear`."""
    exactly: bool = False
    """No slower than the law either. Without it, slower growth keeps the budget."""
    lane: int | None = None
    """None: the main lane."""
    measured: bool = False
    """Only figures that were measured in this very run may keep it."""


@dataclass(frozen=True, slots=True)
class StablePrefix:
    """Every request begins with the whole of the previous one."""

    text: str
    except_turns: tuple[int, ...] = ()
    lane: int | None = None
    """None: the main lane."""


Phrase = Bound | GrowthBound | StablePrefix


class PhraseError(ValueError):
    """A phrase without a meaning. Its text shows the word, what could stand there, and the nearest valid phrase."""

    def __init__(self, text: str, at: int, expected: str, nearest: str = "") -> None:
        self.text, self.at, self.expected, self.nearest = text, at, expected, nearest
        super().__init__(_complaint(text, at, expected, nearest))


def _complaint(text: str, at: int, expected: str, nearest: str) -> str:
    rest = text[at:].split()
    carets = "^" * (len(rest[0]) if rest else 1)
    shown = text.replace("\n", " ").replace("\t", " ")
    lines = [f"not a latency budget: {text!r}", f"  {shown}", f"  {' ' * at}{carets}", f"  expected {expected}"]
    return "\n".join([*lines, f"  did you mean {nearest!r}?"] if nearest else lines)


def parse(text: str) -> Phrase:
    """Give a phrase's meaning. Raises PhraseError, whose text is a few lines that point at the word."""
    from pytest_agentlatency.budgets import grammar  # noqa: PLC0415  lark is imported by those who have a budget only

    return grammar.read(text)

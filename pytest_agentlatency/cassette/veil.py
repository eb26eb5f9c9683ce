"""What may be shown of a run: its messages without secrets, also where a snippet was cut through the middle of one.

Owns the hiding. Leaves finding them to `secrets`. No repr of this module holds a value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pytest_agentlatency.cassette.secrets import HIDDEN, NOTHING_LEARNED, Learned, hidden, standing

PIECE = 8
"""Characters of a secret from which on a part of it is hidden, too."""


@dataclass(frozen=True)
class Veil:
    """Put over every text that a run's contents may have come into."""

    learned: Learned = NOTHING_LEARNED
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """The secrets of the run's contents, of which a text may show a part."""

    @classmethod
    def of(cls, learned: Learned, contents: Iterable[bytes | str]) -> "Veil":
        """A veil for messages about these contents."""
        return cls(learned, frozenset(standing(contents, learned)))

    def over(self, text: str) -> str:
        """The text with every secret and every part of one replaced; lines stay lines."""
        whole = _hidden_lines(text, self.learned)
        shown = list(whole)
        for at in range(len(whole) - PIECE + 1):
            if whole[at : at + PIECE] in self._pieces:
                shown[at : at + PIECE] = HIDDEN * PIECE
        return "".join(shown)

    @cached_property
    def _pieces(self) -> frozenset[str]:
        return frozenset(secret[at : at + PIECE] for secret in self.secrets for at in range(len(secret) - PIECE + 1))


def _hidden_lines(text: str, learned: Learned) -> str:
    """A line that holds a secret in some encoding is hidden as a whole, not the message that it stands in."""
    if hidden(text, learned) == text:
        return text
    lines = "\n".join(hidden(line, learned) for line in text.split("\n"))
    return lines if hidden(lines, learned) == lines else "\n".join(HIDDEN * len(line) for line in text.split("\n"))

"""What of a context says nothing new: JSON around a value, and texts that stand there twice.

Owns the search, over texts. A copy is compared by its words, so that a history pasted into JSON, with its quotes and
escapes, is still a copy. Refuses to know tokens and tools.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_agentlatency.wire.jsonedge import compact, loads, mapping, sequence, string

_WINDOW = 24
"""Words; shorter repetitions are how people and programs write."""
_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\[nrt]")
_DEEPEST = 64


class Text(NamedTuple):
    """One text of the context."""

    path: str
    since: int
    """The turn that brought it."""
    until: int
    """The last turn that carried it."""
    text: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A span of one text that was in the context already."""

    path: str
    turn: int
    """The turn that brought the copy."""
    original: str
    """Path of the text that had it first."""
    text: str


class _Place(NamedTuple):
    source: Text
    words: tuple[str, ...]
    start: int


def copies(texts: Iterable[Text]) -> Iterator[Copy]:
    """Spans of at least 24 words that an earlier text of the same context has too."""
    seen = _Seen({}, set())
    for each in texts:
        plain = _ESCAPED.sub("  ", each.text)  # two spaces: every position stays
        words = tuple(_WORD.findall(plain))
        spans = list(_spans(words, seen, each.since))
        marks = list(_WORD.finditer(plain)) if spans else []
        for start, end, original in spans:
            yield Copy(each.path, each.since, original, each.text[marks[start].start() : marks[end - 1].end()])
        for start in range(0, len(words) - _WINDOW + 1, _WINDOW):
            seen.add(_Place(each, words, start))


class _Seen(NamedTuple):
    """The windows of the texts so far."""

    places: dict[tuple[str, ...], _Place]
    ends: set[tuple[str, str]]
    """First and last word of each: few places of another text have both, and only there a window is looked up."""

    def add(self, place: _Place) -> None:
        """Remember a window, unless it stands somewhere that the context still holds."""
        window = place.words[place.start : place.start + _WINDOW]
        known = self.places.get(window)
        if known is None or known.source.until < place.source.since:
            self.places[window] = place
            self.ends.add((window[0], window[-1]))


def _spans(words: tuple[str, ...], seen: _Seen, turn: int) -> Iterator[tuple[int, int, str]]:
    free = 0
    for at, ends in enumerate(zip(words, words[_WINDOW - 1 :], strict=False)):
        if ends not in seen.ends or at < free:
            continue
        place = seen.places.get(words[at : at + _WINDOW])
        if place is not None and place.source.until >= turn:
            first, free = _widened(words, at, place, free)
            yield first, free, place.source.path


def _widened(words: tuple[str, ...], at: int, place: _Place, free: int) -> tuple[int, int]:
    """The window, grown as far as both texts agree; not back over what was reported already."""
    other, start = place.words, place.start
    back, ahead = 0, _WINDOW
    while at - back > free and start - back > 0 and words[at - back - 1] == other[start - back - 1]:
        back += 1
    while at + ahead < len(words) and start + ahead < len(other) and words[at + ahead] == other[start + ahead]:
        ahead += 1
    return at - back, at + ahead


def unwrapped(text: str) -> str:
    """The values of a JSON text, a line each, without keys, braces and escapes; any other text as it is."""
    value = _parsed(text)
    return "\n".join(_leaves(value, 0)) if isinstance(value, dict | list) else text


def _parsed(text: str) -> Any:
    return loads(text) if text.lstrip().startswith(("{", "[")) else None


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict | list) and depth < _DEEPEST:
        for each in (*mapping(value).values(), *sequence(value)):
            yield from _leaves(each, depth + 1)
    else:
        yield string(value) or compact(value)

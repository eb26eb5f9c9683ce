"""The nearest valid phrase to one that has no meaning.

Owns the vocabulary's synonyms and the examples. Refuses to know the grammar: it tries a parser that it is given.
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from itertools import takewhile

from pytest_agentlatency.budgets.figure import Unit
from pytest_agentlatency.budgets.phrase import PhraseError
from pytest_agentlatency.budgets.subjects import SERIES, registry

Parse = Callable[[str], object]
"""Raises PhraseError."""

QUOTED = "a tool's name in quotes"
"""What is expected where a tool may be named."""
_SAMPLES = {Unit.TIME: "2 s", Unit.SHARE: "50%", Unit.TOKENS: "20k", Unit.BYTES: "2 GB", Unit.COUNT: "8"}
_SYNONYMS = {
    "generation": "decode",
    "generating": "decode",
    "framework": "overhead",
    "validation": "retry",
    "latency": "total",
    "duration": "total",
    "input": "context",
    "prompt": "context",
    "less": "under",
    "more": "over",
    "steps": "turns",
    "iterations": "turns",
    "unchanged": "stable",
    "flat": "constant",
    "cache": "cached",
    "live": "measured",
    "conversation": "lane",
}
_MANY = 100  # from which on a bare number is taken for milliseconds rather than seconds
_REPAIRS = 4  # words put right before a phrase counts as something else


def nearest(error: PhraseError, parse: Parse) -> str:
    """Give the nearest valid phrase: the same with words put right, or else the most similar of the examples."""
    text = error.text
    return _in_front(text, parse) or _with_unit(error, parse) or _repaired(error, parse) or _most_similar(text.lower())


def _in_front(text: str, parse: Parse) -> str:
    """`measured` stands first; where it stands elsewhere, it is put there. Empty when that isn't what is wrong."""
    rest = re.sub(r",?\s*\b(measured|live)\b", "", text, flags=re.IGNORECASE).strip()
    moved = f"measured {rest}"
    return moved if rest != text.strip() and _failure(moved, parse) is None else ""


def _with_unit(error: PhraseError, parse: Parse) -> str:
    """The same number in a unit that fits, where the unit is wrong or missing; empty where that isn't what is wrong."""
    before, after = error.text[: error.at], error.text[error.at :]
    number, wrong = re.search(r"[\d.,]*\d\s*$", before), r"^\S+"
    if number is None:
        number, wrong = re.match(r"[\d.,]*\d", after), ""
        before += number[0] if number else ""
        after = after[number.end() :] if number else after
    if number is None:
        return ""
    units = ("%", " ms" if float(number[0].replace(",", "")) >= _MANY else " s", "k", " GB")
    texts = (before.rstrip() + unit + re.sub(wrong, "", after) for unit in units)
    return next((text for text in texts if _failure(text, parse) is None), "")


def _most_similar(text: str) -> str:
    """The most similar example, of those that begin with the most words of the text."""
    words = text.split()
    shared = {example: _shared(words, example.split()) for example in _examples()}
    most = max(shared.values())
    return get_close_matches(text, [each for each in shared if shared[each] == most], n=1, cutoff=0.0)[0]


def _shared(words: list[str], others: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(words, others, strict=False)))


def _repaired(error: PhraseError, parse: Parse) -> str:
    """Put right one word after the other, from the left; empty when that doesn't lead to a valid phrase."""
    for _ in range(_REPAIRS):
        text = _respelled(error)
        if not text:
            break
        failed = _failure(text, parse)
        if failed is None:
            return text
        error = failed
    start = error.text[: error.at].rstrip()
    return start if start and _failure(start, parse) is None else ""


def _failure(text: str, parse: Parse) -> PhraseError | None:
    try:
        parse(text)
    except PhraseError as error:
        return error
    return None


def _respelled(error: PhraseError) -> str:
    """Replace the word by the one that was meant, as far as that can be told."""
    found = re.match(r"[\w-]+", error.text[error.at :])
    if found is None:
        return ""
    word, options = found[0], re.findall(r"[a-z][a-z-]*", error.expected)
    meant = _SYNONYMS.get(word.lower(), "")
    if meant not in options:
        quoted = f"{word!r}" if QUOTED in error.expected else ""
        meant = next(iter(get_close_matches(word.lower(), options, n=1)), quoted)
    return error.text[: error.at] + meant + error.text[error.at + len(word) :] if meant else ""


@cache
def _examples() -> tuple[str, ...]:
    """One valid phrase for each name and, where it has them, each scope."""
    return (*_bound_examples(), *_other_examples())


def _bound_examples() -> Iterator[str]:
    for name, subject in registry().items():
        start = f"{name} under {_SAMPLES[subject.unit]}"
        if subject.unit is Unit.COUNT:
            start = f"{name} at most {_SAMPLES[subject.unit]}"
        if subject.in_total:
            yield from (start, f"{start} in lane 2")
        if subject.at_turn:
            yield from (f"{start} at turn 6", f"{start} at every turn", f"{start} at turn 6 in lane 2")
        if subject.clock:
            yield f"measured {start}"
        if subject.takes_each:
            yield f"{start} each"


def _other_examples() -> Iterator[str]:
    yield from (f"{series} growth is linear" for series in SERIES)
    yield from (f"{series} growth is at most linear" for series in SERIES)
    yield from ("prefix stable", "prefix stable except turns 5")

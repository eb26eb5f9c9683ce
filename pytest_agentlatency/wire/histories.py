"""Prompts of request bodies that repeat an earlier body's history: only what is new of them is decoded.

Owns the comparison with a few recent bodies, by their bytes. Refuses to know what a message holds, and to be noticed: a
prompt is the one that the whole body gives, and anything unusual in a body has the whole body decoded.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_agentlatency.wire.jsonedge import loads, mapping, sequence
from pytest_agentlatency.wire.message import Message, Prompt

RECENT = 4
"""Bodies that are remembered: as many conversations may take turns."""
LONGEST = 8_000_000
"""Characters of the longest body that is remembered."""
DEEPEST = 64
"""Levels of nesting in what is decoded by itself; a body that is deeper somewhere is decoded whole."""

_KEY = "messages"
_UNUSUAL = "not one object with one array of messages"
_DEEP = "nested more deeply than the interpreter may be able to decode"
_NESTS = (dict, list)
_FRAMES = 64  # calls between a prompt and its deepest block
_ESCAPE = len(r"\ud83d")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder(strict=False).raw_decode


_Of = Callable[[Mapping[str, Any]], Prompt]
_After = Callable[[Sequence[Any], tuple[Message, ...]], tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class _Body:
    """A body that was read, and where its parts stand."""

    text: str
    head: int
    """Where the first message may begin: behind the array's bracket."""
    ends: tuple[int, ...]
    """Where each message ends."""
    foot: int
    """Where the array ends: behind its bracket."""
    prompt: Prompt

    def shared(self, text: str) -> int:
        """Count the leading messages whose bytes, with all before them, open the text too."""
        if self.ends and text.startswith(self.text[: self.ends[-1]]):
            return len(self.ends)
        if not text.startswith(self.text[: self.head]):
            return 0
        return bisect_left(self.ends, 1, key=lambda end: not text.startswith(self.text[:end]))

    def surrounds(self, text: str, head: int, foot: int) -> bool:
        """Whether all but the messages is the same in the text."""
        return self.text[: self.head] == text[:head] and self.text[self.foot :] == text[foot:]


class Histories:
    """Reads the bodies of a format whose history is the array `messages`.

    Messages whose bytes, and all bytes before them, are a recent body's are that body's very `Message` objects. May be
    used by several threads at once: what is remembered is replaced, never changed.
    """

    __slots__ = ("_messages", "_prompt", "_recent")

    def __init__(self, prompt: _Of, messages: _After) -> None:
        """Read with the prompt of a decoded body, and the messages of values that follow messages read before."""
        self._prompt, self._messages = prompt, messages
        self._recent: tuple[_Body, ...] = ()

    def prompt(self, data: bytes) -> Prompt:
        """Prompt of a body, as if the whole of it were decoded."""
        text = data.decode("utf-8-sig", "replace")
        try:
            _need_room(2 * DEEPEST + _FRAMES)
            found = self._read(text)
        except (ValueError, RecursionError):  # no JSON, too deep, or unusual: the whole decoding tells which
            return self._prompt(mapping(loads(data)))
        if len(text) <= LONGEST:
            self._recent = (found, *self._recent[: RECENT - 1])
        return found.prompt

    def _nearest(self, text: str) -> tuple[int, _Body | None]:
        """How many messages the text shares with the recent body that it shares the most with, and that body."""
        count, nearest = 0, self._recent[0] if self._recent else None
        for each in self._recent:
            if len(each.ends) > count and (shared := each.shared(text)) > count:
                count, nearest = shared, each
        return count, nearest

    def _read(self, text: str) -> _Body:
        count, last = self._nearest(text)
        known, ends = (last.prompt.messages[:count], last.ends[:count]) if last else ((), ())
        # A pair of halves is one character and a half alone is none: the whole decoding takes care of both.
        if _SURROGATE.search(text, max(0, ends[-1] - _ESCAPE) if ends else 0):
            raise ValueError(_UNUSUAL)
        head = last.head if last and count else _head(text)
        values, after, foot = _elements(text, head, ends)
        messages = self._messages(values, known)
        if last and last.surrounds(text, head, foot):
            around = last.prompt
        else:
            around = self._prompt(_around(text[:head] + text[foot - 1 :]))
        return _Body(text, head, (*ends, *after), foot, replace(around, messages=messages))


def _keys(text: str) -> Iterator[tuple[str, int]]:
    """The keys of an object, each with the place where its value begins."""
    at = _behind(text, 0, "{")
    while True:
        key, at = _decode(text, at)
        at = _behind(text, at, ":")
        yield key, at
        at = _space(text, _decode(text, at)[1])
        if text[at : at + 1] != ",":
            return
        at = _space(text, at + 1)


def _head(text: str) -> int:
    """Where the first message may begin."""
    start = next((start for key, start in _keys(text) if key == _KEY), 0)
    return _behind(text, start, "[")


def _around(text: str) -> Mapping[str, Any]:
    """A body whose messages were taken out, decoded; it has to have room for them once."""
    body = _shallow(json.loads(text, strict=False))
    if [key for key, _ in _keys(text)].count(_KEY) != 1:
        raise ValueError(_UNUSUAL)
    return mapping(body)


def _elements(text: str, head: int, known: Sequence[int]) -> tuple[list[Any], list[int], int]:
    """The elements behind those known by their ends: their values, their ends, and where the array ends."""
    values: list[Any] = []
    ends: list[int] = []
    at = _space(text, known[-1] if known else head)
    while text[at : at + 1] != "]":
        value, end = _decode(text, _behind(text, at, ",") if known or ends else at)
        values.append(_shallow(value))
        ends.append(end)
        at = _space(text, end)
    return values, ends, at + 1


def _need_room(levels: int) -> None:
    """Raise RecursionError unless so many calls may still be nested.

    Where the stack is nearly full, or its limit low, what a body holds is a matter of how deep its decoding goes. Parts
    go less deep than the whole, and would be read where the whole is refused.
    """
    if levels:
        _need_room(levels - 1)


def _shallow(value: Any) -> Any:
    """The value, unless it is nested more deeply than `DEEPEST`: a ValueError then."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [
            inner for each in layer for inner in (mapping(each).values() or sequence(each)) if isinstance(inner, _NESTS)
        ]
        if not layer:
            return value
    raise ValueError(_DEEP)


def _behind(text: str, at: int, sign: str) -> int:
    """Where the next token begins behind the sign, which has to come next."""
    at = _space(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(_UNUSUAL)
    return _space(text, at + 1)


def _space(text: str, at: int) -> int:
    """Where the white space that begins here ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at

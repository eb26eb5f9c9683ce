"""No secret reaches a disk or an eye: the search of everything that is about to be stored or shown.

Owns the ways in which a text can hide a secret (JSON escapes, percent signs, base64, a stream's pieces) and the values
learned from credential headers. Leaves the looks of secrets to `secret_rules`. A finding says where and what kind; no
message, repr or exception of this module holds a value.
"""

import json
import re
from base64 import b64encode
from binascii import a2b_base64
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from pytest_agentlatency.cassette.headers import is_credential
from pytest_agentlatency.cassette.secret_rules import RULES
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.jsonedge import sequence

HIDDEN = "•"
LEARNED = "credential of a request"

_DEPTH = 3  # encodings inside one another: a URL in JSON in base64
_SHORT_RUN = 8192  # base64 characters: such a run is also read from its second, third and fourth character
_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|([/\"'nrt]))")
_WHITE = {"n": "\n", "r": "\r", "t": "\t"}
_LINE_END = re.compile(r"\r\n|\n|\r")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}(?:\r?\n[A-Za-z0-9+/_-]+)*")
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")
_TELLING = re.compile(r"key|secret|token|cookie|authorization|organi[sz]ation|account", re.IGNORECASE)
_LONG, _SHORT = 20, 8


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret: where it stands and what it is, never its value."""

    place: str
    kind: str


class Learned:
    """Values that were sent as credentials. They may stand nowhere else."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: dict[str, tuple[str, ...]] = {}
        for value in values:
            self._add(value)

    def __repr__(self) -> str:
        return f"Learned({len(self._values)} values)"

    def add(self, request: Request) -> None:
        """Learn the credentials of a request, as it was before `headers` cleaned it."""
        for name, value in request.headers:
            if name.lower() == "cookie":
                for cookie in value.split(";"):
                    self._add(cookie.partition("=")[2].strip())
            elif is_credential(name):
                self._add(value.rpartition(" ")[2])  # behind `Bearer`, `Basic`, ...
        for pair in request.url.partition("#")[0].partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if is_credential(name):
                self._add(unquote(value))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a learned value stands in a text, also as a piece of base64."""
        for forms in self._values.values():
            for form in forms:
                start = text.find(form)
                while start >= 0:
                    yield start, start + len(form)
                    start = text.find(form, start + 1)

    def _add(self, value: str) -> None:
        # `test`, `not-needed`, `anything`: words that local servers are sent as keys, and that prompts are made of.
        if len(value) >= _LONG or (len(value) >= _SHORT and any(each.isdigit() for each in value)):
            self._values[value] = (value, *_base64_pieces(value))


NOTHING_LEARNED = Learned()


def scan(fields: Iterable[tuple[str, bytes | str]], learned: Learned = NOTHING_LEARNED) -> tuple[Finding, ...]:
    """Return every kind of secret at every place, in order; the fields are pairs of a place's name and its content.

    JSON bodies are searched string by string and named by path, streams of JSON also with their pieces joined.
    """
    clean: set[str] = set()
    found: dict[Finding, None] = {}
    for place, content in fields:
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        for path, piece in _pieces(text):
            if piece in clean:
                continue
            kinds = dict.fromkeys(_kinds(piece, learned))
            found.update((Finding(_place(place, path, learned), kind), None) for kind in kinds)
            if not kinds:
                clean.add(piece)
    return tuple(found)


def standing(contents: Iterable[bytes | str], learned: Learned = NOTHING_LEARNED) -> Iterator[str]:
    """Yield the secrets that stand in these contents, as they stand there, for whoever hides them elsewhere."""
    clean: set[str] = set()
    for content in contents:
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        for _, piece in _pieces(text):
            if piece not in clean:
                clean.add(piece)
                yield from (piece[start:end] for start, end, _ in _spans(piece, learned))


def hidden(text: str, learned: Learned = NOTHING_LEARNED) -> str:
    """Return the text with every character of a secret replaced; the length stays.

    A text that holds a secret in some encoding is hidden as a whole.
    """
    shown = list(text)
    for start, end, _ in _spans(text, learned):
        shown[start:end] = HIDDEN * (end - start)
    result = "".join(shown)
    survives = any(kind for _, piece in _pieces(result) for kind in _kinds(piece, learned))
    return HIDDEN * len(text) if survives else result


def _place(place: str, path: str, learned: Learned) -> str:
    return hidden(f"{place}: {path}" if path else place, learned)


def _kinds(text: str, learned: Learned) -> Iterator[str]:
    for view in _views(text, _DEPTH, set()):
        yield from (kind for _, _, kind in _spans(view, learned))


def _spans(text: str, learned: Learned) -> Iterator[tuple[int, int, str]]:
    lowered = text.lower()
    for rule in RULES:
        yield from ((start, end, rule.kind) for start, end in rule.spans(text, lowered))
    yield from ((start, end, LEARNED) for start, end in learned.spans(text))


def _views(text: str, depth: int, seen: set[tuple[str, str]]) -> Iterator[str]:
    """The text, and what it says once its encodings are taken off; texts and base64 runs seen are passed over."""
    if ("text", text) in seen:
        return
    seen.add(("text", text))
    yield text
    if depth == 0:
        return
    if "\\" in text:
        yield from _views(_ESCAPE.sub(_unescaped, text), depth - 1, seen)
    if _PERCENT.search(text):
        yield from _views(unquote(text, errors="replace"), depth - 1, seen)
    if "\0" in text:  # UTF-16
        yield from _views(text.replace("\0", ""), depth - 1, seen)
    for run in _BASE64.finditer(text):
        if ("run", run[0]) not in seen:
            seen.add(("run", run[0]))
            for decoded in _decoded(run[0]):
                yield from _views(decoded, depth - 1, seen)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _WHITE.get(match[2], match[2])


def _decoded(run: str) -> Iterator[str]:
    """What a base64 run says, read from its first character and, when it is short, from the next three."""
    digits = run.translate(_URL_SAFE)
    for start in range(4 if len(digits) <= _SHORT_RUN else 1):
        part = digits[start:]
        part = part[: len(part) // 4 * 4 + (len(part) % 4 if len(part) % 4 > 1 else 0)]
        yield _bytes(part + "=" * (-len(part) % 4)).decode("latin-1")


def _bytes(digits: str) -> bytes:
    try:
        return a2b_base64(digits)
    except ValueError:
        return b""


def _base64_pieces(value: str) -> Iterator[str]:
    """How a value looks inside the base64 of a longer text, at each of the three offsets; both alphabets."""
    for offset in range(3):
        digits = b64encode(b"\0" * offset + value.encode("utf-8", "replace")).decode().rstrip("=")
        piece = digits[(0, 2, 3)[offset] : -1]
        yield from {piece, piece.replace("+", "-").replace("/", "_")}


def _pieces(text: str) -> list[tuple[str, str]]:
    """A text's parts, each with its path: the strings of a JSON value, or the text and its stream's joined pieces."""
    try:
        value = _json(text)
        return [("", text), *_joined(text)] if value is None else [*_strings(value), *_named(value)]
    except RecursionError:
        return [("", text)]


def _joined(text: str) -> Iterator[tuple[str, str]]:
    """The strings that stand under one path in the JSON lines of a stream, put together."""
    joined: dict[str, list[str]] = defaultdict(list)
    for line in _LINE_END.split(text):  # not `splitlines`: JSON may hold its other separators
        for path, piece in _strings(_json(line.removeprefix("data:"))):
            joined[path].append(piece)
    return ((path, "".join(pieces)) for path, pieces in joined.items() if len(pieces) > 1)


def _json(text: str) -> Any:
    """Value of a JSON object or array, objects as tuples of pairs, so that no repeated key is lost; None for others."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text, strict=False, object_pairs_hook=tuple)
    except ValueError:
        return None


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    for below, _, each in _members(value, path):
        yield from _strings(each, below)


def _named(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The keys, each together with its value where the name may make a secret of it."""
    for below, key, each in _members(value, path):
        if key:
            yield below, f'{key}="{each}"' if isinstance(each, str) and _TELLING.search(key) else key
        yield from _named(each, below)


def _members(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Path, key (empty in an array) and value of each member; nothing of a scalar."""
    if isinstance(value, tuple):
        pairs = cast("tuple[tuple[str, Any], ...]", value)
        yield from ((f"{path}.{key}" if path else key, key, each) for key, each in pairs)
    else:
        yield from ((f"{path}[{index}]", "", each) for index, each in enumerate(sequence(value)))

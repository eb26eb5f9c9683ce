"""YAML to plain data, from the parser's events, without building a node graph and without any object.

Owns tags, aliases and the limits on size and depth. Refuses to construct anything: a Python or Ruby object tag yields
the plain data under it. Scalars are read as PyYAML reads them, but a date stays text.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.limits import Limits, check

_CORE = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+][0-9]+)?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {
    form: value
    for value, words in ((True, ("yes", "true", "on")), (False, ("no", "false", "off")))
    for word in words
    for form in (word, word.title(), word.upper())
}
_NO_KEY = object()


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being filled."""

    value: list[Any] | dict[Any, Any]
    tag: str
    anchor: str | None
    before: tuple[int, int]
    """Nodes and characters of the document up to it."""
    key: Any = _NO_KEY


@dataclass(slots=True)
class _Tree:
    """The document so far."""

    name: str
    limits: Limits
    open: list[_Open] = field(default_factory=list[_Open])
    anchors: dict[str, tuple[Any, int, int]] = field(default_factory=dict[str, tuple[Any, int, int]])
    """Name -> finished value, its nodes and its characters."""
    roots: list[Any] = field(default_factory=list[Any])
    nodes: int = 0
    characters: int = 0

    @property
    def total(self) -> tuple[int, int]:
        """Nodes and characters so far."""
        return self.nodes, self.characters

    def add(self, value: Any) -> None:
        """Put a complete value into what is open."""
        if not self.open:
            if self.roots:
                raise _broken(self.name, "it holds several documents, where one was expected")
            self.roots.append(value)
            return
        top = self.open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is _NO_KEY:
            top.key = self._key(value)
        else:
            top.value[top.key] = value
            top.key = _NO_KEY

    def _key(self, value: Any) -> Any:
        if isinstance(value, dict | list):
            raise _broken(self.name, "a mapping has a list or a mapping as a key")
        return value

    def name_it(self, anchor: str | None, value: Any, before: tuple[int, int]) -> None:
        """Remember a complete value, and what it adds wherever an alias stands for it."""
        if anchor is not None:
            self.anchors[anchor] = (value, self.nodes - before[0], self.characters - before[1])

    def count(self, nodes: int, characters: int) -> None:
        """Keep the limits, with every alias counted as if it were written out."""
        self.nodes += nodes
        self.characters += characters
        if self.nodes > self.limits.values:
            check(self.nodes, self.limits.values, "values", self.name)
        if self.characters > self.limits.file:
            check(self.characters, self.limits.file, "characters with every alias written out", self.name)
        if len(self.open) > self.limits.depth:
            check(len(self.open), self.limits.depth, "nested collections", self.name)


def load(data: bytes, name: str, limits: Limits) -> Any:
    """Plain data of the one document in the bytes: dict, list, str, bytes, int, float, bool, None.

    Unreadable, with the line, when the YAML is broken; Refused over a limit.
    """
    import yaml  # noqa: PLC0415 - loading the plugin must not load it

    tree = _Tree(name, limits)
    loader: Any = None
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(data)
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            _take(tree, event)
    except yaml.YAMLError as error:
        raise _broken(name, _told(error)) from None
    except UnicodeDecodeError as error:
        raise _broken(name, f"it is not Unicode ({error.reason})") from None
    finally:
        if loader is not None:
            loader.dispose()
    return tree.roots[0] if tree.roots else None


def _broken(name: str, fault: str) -> Unreadable:
    return Unreadable(f"{name} can't be read as YAML: {fault}; restore it from version control, or record it again")


def _told(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    return f"{reason} (line {mark.line + 1:,})" if mark else str(reason)


def _take(tree: _Tree, event: Any) -> None:
    match type(event).__name__:
        case "ScalarEvent":
            before, value = tree.total, _scalar(event, tree.name)
            tree.count(1, len(event.value))
            tree.name_it(event.anchor, value, before)
            tree.add(value)
        case "SequenceStartEvent" | "MappingStartEvent" as name:
            opened = _Open([] if name == "SequenceStartEvent" else {}, event.tag or "", event.anchor, tree.total)
            tree.count(1, 0)
            tree.open.append(opened)
        case "SequenceEndEvent" | "MappingEndEvent":
            done = tree.open.pop()
            value = _unwrapped(done.value, done.tag)
            tree.name_it(done.anchor, value, done.before)
            tree.add(value)
        case "AliasEvent":
            value, nodes, characters = _anchored(tree, event)
            tree.count(nodes, characters)
            tree.add(value)
        case _:
            pass


def _anchored(tree: _Tree, event: Any) -> tuple[Any, int, int]:
    if event.anchor in tree.anchors:
        return tree.anchors[event.anchor]
    raise _broken(tree.name, f"alias {event.anchor!r} stands for what is around it, or for nothing{_line(event)}")


def _scalar(event: Any, name: str) -> Any:
    text: str = event.value
    tag: str = event.tag or ""
    if tag in {"!binary", f"{_CORE}binary"}:
        return _binary(event, name)
    if tag == f"{_CORE}str" or tag.startswith((f"{_CORE}python/", "!")):
        return text
    return _plain(text) if event.implicit[0] or tag else text


def _binary(event: Any, name: str) -> bytes:
    try:
        return base64.b64decode(event.value.encode("ascii", "replace"))
    except binascii.Error as error:
        raise _broken(name, f"a !binary value is no base64: {error}{_line(event)}") from None


def _line(event: Any) -> str:
    return f" (line {event.start_mark.line + 1:,})"


def _plain(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _unwrapped(value: list[Any] | dict[Any, Any], tag: str) -> Any:
    # PyYAML writes a subclass of str, such as multidict's istr, as an object with the text as its only argument.
    if not tag.startswith(f"{_CORE}python/object"):
        return value
    arguments = value.get("args", value) if isinstance(value, dict) else value
    if isinstance(arguments, list) and len(arguments) == 1:  # pyright: ignore[reportUnknownArgumentType]
        return arguments[0]  # pyright: ignore[reportUnknownVariableType]
    return value

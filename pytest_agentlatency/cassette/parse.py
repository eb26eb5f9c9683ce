"""YAML of unknown origin -> plain values, in one pass with bounds, and typed access that names the place.

Owns safety: no tags beyond YAML's plain ones, no anchors, no duplicate keys, limits on depth and count. Refuses to
know what a cassette is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.cassette.errors import Refused, Unreadable
from pytest_agentlatency.cassette.limits import DEFAULT, Limits, check

_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "binary")}
_TEXT_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:python/unicode"}
_COLLECTION_TAGS = {"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


def tree(text: str | bytes, source: str, limits: Limits = DEFAULT) -> Any:
    """The one document of a YAML text, or of its UTF-8, as dicts, lists, str, bytes, int, float, bool, None.

    Raises Unreadable for what isn't YAML, Refused for anchors, foreign tags and what is over a limit.
    """
    import yaml  # noqa: PLC0415 -- importing the plugin must not import it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        return _Builder(loader, yaml.ScalarNode, source, limits).build()
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        msg = f"{source}: not readable as YAML: {' '.join(str(error).split()):.300}"
        raise Unreadable(msg) from error
    finally:
        loader.dispose()


class _Builder:
    """Events -> values without recursion, so that depth is a number and not a crash."""

    def __init__(self, loader: Any, scalar: Any, source: str, limits: Limits) -> None:
        self.loader, self.scalar, self.source, self.limits = loader, scalar, source, limits
        self.root: list[Any] = []
        self.open: list[tuple[list[Any] | dict[Any, Any], list[Any]]] = [(self.root, [])]
        self.seen = 0

    def build(self) -> Any:
        while self.loader.check_event():
            self._take(self.loader.get_event())
        if len(self.root) != 1:
            msg = f"{self.source}: {len(self.root)} YAML documents, exactly 1 is a cassette"
            raise Unreadable(msg)
        return self.root[0]

    def _take(self, event: Any) -> None:
        if getattr(event, "anchor", None) is not None:
            msg = f"{self.source}: anchor or alias {event.anchor!r} at {_where(event)}; a cassette has none"
            raise Refused(msg)
        match type(event).__name__:
            case "ScalarEvent":
                self._put(self._scalar(event), event)
            case "MappingStartEvent":
                self._open({}, event)
            case "SequenceStartEvent":
                self._open([], event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self.open.pop()
            case _:
                pass

    def _open(self, collection: Any, event: Any) -> None:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            raise self._foreign(event)
        self._put(collection, event)
        self.open.append((collection, []))
        check(len(self.open) - 1, self.limits.depth, "nested collections", self.source)

    def _put(self, value: Any, event: Any) -> None:
        self.seen += 1
        if self.seen > self.limits.values:
            check(self.seen, self.limits.values, "values", self.source)
        parent, key = self.open[-1]
        if isinstance(parent, list):
            parent.append(value)
        elif not key:
            key.append(self._key(value, parent, event))
        else:
            parent[key.pop()] = value

    def _key(self, value: Any, parent: dict[Any, Any], event: Any) -> Any:
        if isinstance(value, dict | list) or value in parent:
            what = "a collection as key" if isinstance(value, dict | list) else f"key {value!r:.60} twice"
            msg = f"{self.source}: {what} at {_where(event)}"
            raise Unreadable(msg)
        return value

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.loader.resolve(self.scalar, event.value, event.implicit)
        if tag in _TEXT_TAGS:
            return event.value
        if tag in _PLAIN_TAGS:
            return self.loader.construct_object(self.scalar(tag, event.value, event.start_mark, event.end_mark))
        raise self._foreign(event)

    def _foreign(self, event: Any) -> Refused:
        return Refused(f"{self.source}: tag {event.tag!r} at {_where(event)}; only plain YAML is read")


def _where(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the place where it was read, for access that can say what is wrong where."""

    value: Any
    place: str
    """`file: interactions[3].response`."""

    def __getitem__(self, key: str) -> "Node":
        """The value under a key; of what is no mapping, Unreadable. A missing key is a node of None."""
        return Node(self.mapping().get(key), f"{self.place}.{key}")

    def mapping(self) -> Mapping[str, Any]:
        """The value as a mapping; None is the empty one."""
        mapping: Mapping[str, Any] = self._as(dict, {})
        return mapping

    def items(self) -> Iterator["Node"]:
        """The elements of a list; None is the empty one."""
        return (Node(each, f"{self.place}[{at}]") for at, each in enumerate(self._as(list, [])))

    def text(self) -> str:
        """The value as text; None is the empty one. Bytes are text that YAML can't write (lone surrogates)."""
        if isinstance(self.value, bytes):
            return self._surrogates(self.value)
        return str(self._as(str, ""))

    def number(self, default: int = 0) -> int:
        """The value as an integer."""
        return int(self._as(int, default))

    def octets(self) -> bytes:
        """The value as bytes: text is its UTF-8, None is empty."""
        return self.value if isinstance(self.value, bytes) else self.text().encode("utf-8")

    def fail(self, reason: str) -> Unreadable:
        """An error about this place."""
        return Unreadable(f"{self.place}: {reason}; record the cassette again, or undo the edit")

    def _as(self, kind: type, default: Any) -> Any:
        if self.value is None:
            return default
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            reason = f"{type(self.value).__name__} {self.value!r:.60} found, {kind.__name__} expected"
            raise self.fail(reason)
        return self.value

    def _surrogates(self, value: bytes) -> str:
        try:
            return value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            reason = f"bytes found where text is expected ({error.reason})"
            raise self.fail(reason) from error

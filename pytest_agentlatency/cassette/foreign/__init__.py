"""Everybody's recordings: a file that somebody else's recorder wrote, as a recording of ours.

Owns which container a file is. Refuses to invent times: what the container doesn't say stays unknown, and what servers
say of themselves inside the bodies is read by `wire` like in a recording of ours. docs/recordings.md has the table.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.exchange import KEY
from pytest_agentlatency.cassette.foreign import (
    calls,
    coding,
    govcr,
    har,
    plausible,
    redacted,
    rubyvcr,
    single,
    tree,
    vcrpy,
)
from pytest_agentlatency.cassette.foreign.exchange import Exchange, interaction, kind
from pytest_agentlatency.cassette.foreign.plausible import Doubt
from pytest_agentlatency.cassette.limits import DEFAULT, Limits, check
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.wire import jsonedge

__all__ = ["CONTAINERS", "Doubt", "Exchange", "Foreign", "read"]

_UNASKED = "a request was stored without its body and answered with token usage: a model call that can't be read"


@dataclass(frozen=True, slots=True)
class Container:
    """One family of recorders."""

    name: str
    recognises: Callable[[Mapping[str, Any]], bool]
    exchanges: Callable[[Mapping[str, Any]], list[Exchange]]


CONTAINERS = (
    Container("ruby vcr", rubyvcr.recognises, rubyvcr.exchanges),
    Container("har", har.recognises, har.exchanges),
    Container("go-vcr", govcr.recognises, govcr.exchanges),
    Container("vcrpy", vcrpy.recognises, vcrpy.exchanges),
    Container("single exchange", single.recognises, single.exchanges),
)
"""Asked in this order: go-vcr's documents look like vcrpy's until their interactions are seen."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A recording that somebody else's recorder made."""

    recording: Recording
    """The model calls. `Attempt.stamps` is None unless the container times exchanges (HAR)."""
    others: tuple[Exchange, ...]
    """Every other exchange, in file order: tools' own requests, telemetry, sign-in."""
    container: str
    """`vcrpy`, `go-vcr`, `ruby vcr`, `single exchange` or `har`."""
    warnings: tuple[Doubt, ...] = ()
    to_headers: Mapping[int, Ns] = field(default_factory=dict[int, Ns])
    """Call id -> nanoseconds from request to response headers, where that is all that the container times (go-vcr)."""

    @property
    def document(self) -> Document:
        """The same as a document that `cassette` can write; times that only foreign containers have are left behind."""
        return Document(self.recording, tuple(map(interaction, self.others)))

    @property
    def not_retimed(self) -> frozenset[int]:
        """Ids of the calls whose usage can't anchor a re-timing."""
        return frozenset(each.call for each in self.warnings if each.call is not None and each.forbids_retiming)


def read(source: str | os.PathLike[str] | bytes, limits: Limits = DEFAULT) -> Foreign:
    """Read a recording of any known container from a file or from its bytes, gzipped or not.

    The container is told by content, never by name. Unreadable when the file can't be opened, is broken or is no
    recording of HTTP, Refused when it is over a limit; the message says which, where, and what to do.
    """
    data, name = tree.contents(source, limits)
    document = tree.parse(data, name, limits)
    if _is_ours(document):
        msg = f"{name} is a cassette of this plugin, not a foreign recording; `cassette.document.loads` reads it"
        raise Unreadable(msg)
    try:
        container = _container(document)
        stored = container.exchanges(document)
    except Unreadable as error:
        msg = f"{name}: {error}"
        raise Unreadable(msg) from None
    except RecursionError:
        check(limits.depth + 1, limits.depth, "nested collections (or more)", name)
        raise
    decoder = coding.Decoder(name, limits)
    exchanges = [redacted.with_path(decoder.exchange(each)) for each in stored]
    told = calls.sort(exchanges)
    return Foreign(told.recording, told.others, container.name, tuple(_warnings(told, exchanges)), told.to_headers)


def _is_ours(document: Any) -> bool:
    """Whether it carries our key: at its top, or, when plain vcrpy has saved it anew, in its responses."""
    whole = jsonedge.mapping(document)
    responses = (jsonedge.mapping(each).get("response") for each in jsonedge.sequence(whole.get("interactions")))
    return KEY in whole or any(KEY in jsonedge.mapping(each) for each in responses)


def _container(document: Any) -> Container:
    if isinstance(document, dict):
        for each in CONTAINERS:
            if each.recognises(document):  # pyright: ignore[reportUnknownArgumentType]
                return each
    known = ", ".join(each.name for each in CONTAINERS)
    keys = sorted(str(key)[:40] for key in document)[:6] if isinstance(document, dict) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    having = f" with {', '.join(map(repr, keys))} at its top" if keys else ""
    msg = (
        f"it holds {kind(document)}{having}, which is no recording known here (known: {known}); "
        "see docs/recordings.md for the forms that are read"
    )
    raise Unreadable(msg)


def _warnings(told: calls.Sorted, exchanges: list[Exchange]) -> Iterator[Doubt]:
    for note, count in _counted(exchanges).items():
        yield Doubt("body", f"{note} ({count} of {len(exchanges)} exchanges)")
    if lost := sum(map(_unasked, told.others)):
        yield Doubt("body", f"{_UNASKED} ({lost} of {len(exchanges)} exchanges)")
    yield from plausible.doubts(told.recording.attempts)


def _unasked(exchange: Exchange) -> bool:
    asked, answered = exchange.request, exchange.response
    return asked.method == "POST" and not asked.body and answered is not None and b'"usage"' in answered.body


def _counted(exchanges: list[Exchange]) -> dict[str, int]:
    notes = [note for each in exchanges for note in each.notes]
    return {note: notes.count(note) for note in dict.fromkeys(notes)}

"""The cassette as one value, and its bytes: versions, order, completeness.

A file holds `version`, `interactions` as vcrpy lays them out (model calls in the order in which they started, then all
other HTTP), and last `agentlatency` with what is said once, closed by `end`: the number of interactions. A file that
stops earlier is refused. Owns that frame. Refuses to know disks, and what a single exchange looks like.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pytest_agentlatency.cassette import chain, delta, emit, exchange, facts
from pytest_agentlatency.cassette.emit import Value
from pytest_agentlatency.cassette.errors import NewerVersion, Truncated, Unreadable
from pytest_agentlatency.cassette.limits import DEFAULT, Limits, check
from pytest_agentlatency.cassette.parse import Node, tree
from pytest_agentlatency.model.recording import Attempt, CallRecord, Recording

CURRENT = 1
VERSIONS = {
    1: "the first: exchanges in vcrpy's layout, request bodies as differences, times as series",
}
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version -> the step that turns a file's tree of that version into one of the next."""

_HEAD = "# pytest-agentlatency: a recorded run. Record again with --latency-mode=record; edit by hand with care.\n"
VCRPY = 1
"""The version that vcrpy itself writes at the top of its files."""

_CLOSING = 40  # bytes, enough for the last line
_CLOSED = re.compile(rb"\n(?:  end: [0-9]+|version: 1)\n\Z")
_PARTS = ("request", "response")
_NEAR = 16  # how many requests back a base is looked for; lanes that interleave wider cost size, not correctness
_ENOUGH = 0.1  # of the body's size: no other base is tried
_BETTER = 0.9  # of the nearer base's difference: below it a farther base is worth its distance


@dataclass(frozen=True, slots=True)
class Document:
    """What a cassette holds."""

    recording: Recording
    others: tuple[Mapping[str, Any], ...] = ()
    """HTTP that is no model call, as vcrpy's request and response dicts with bytes for bodies, in order."""
    version: int = CURRENT
    """Of the file it was read from; writing is always in the current one."""


def dumps(document: Document) -> bytes:
    """The cassette's bytes: UTF-8, LF, the same from the same document."""
    interactions = [*_exchanges(document.recording.attempts), *map(plain, document.others)]
    run: dict[str, Value] = {"version": CURRENT, **facts.write(document.recording), "end": len(interactions)}
    whole: dict[str, Value] = {"version": VCRPY, "interactions": interactions, exchange.KEY: run}
    return (_HEAD + emit.document(whole)).encode("utf-8")


def _exchanges(attempts: tuple[Attempt, ...]) -> Iterator[dict[str, Value]]:
    near: list[delta.Pieces] = []
    cutter = delta.Cutter(_NEAR)
    for attempt in attempts:
        body = attempt.request.body
        pieces = cutter.cut(body)
        difference = _difference(pieces, near)
        said: dict[str, Value] = {"version": CURRENT}
        if difference is not None:
            said["request"] = chain.checksum(body)
        yield exchange.write(attempt, stored(body) if difference is None else difference, said)
        # A body in full is cut afresh by whoever loads it.
        near = [delta.cut(body) if difference is None else pieces, *near[: _NEAR - 1]]


def _difference(new: delta.Pieces, near: list[delta.Pieces]) -> str | None:
    """The difference from the nearest request before that leaves little to say."""
    best: str | None = None
    size = sum(map(len, new))
    for distance, base in enumerate(near, start=1):
        text = delta.encode(new, base, distance)
        if text is not None and (best is None or len(text) < _BETTER * len(best)):
            best = text
        if best is not None and len(best) < _ENOUGH * size:
            break
    return best


def stored(body: bytes) -> str | bytes:
    """A body that looks like a difference is kept as binary, which is never taken for one."""
    text = exchange.as_text(body)
    return body if isinstance(text, str) and text.startswith(delta.MAGIC) else text


def plain(interaction: Mapping[str, Any]) -> dict[str, Value]:
    """An interaction that is no model call: bodies as text where they are UTF-8, keys in order."""
    return {part: {key: _plain(value) for key, value in sorted(interaction[part].items())} for part in _PARTS}


def _plain(value: Any) -> Value:
    if isinstance(value, bytes):
        return exchange.as_text(value)
    if isinstance(value, Mapping):
        pairs: list[tuple[str, Any]] = sorted(cast("Mapping[str, Any]", value).items())
        return {key: _plain(each) for key, each in pairs}
    plain_value: Value = value
    return plain_value


def loads(data: bytes, source: str, limits: Limits = DEFAULT) -> Document:
    """The document of a cassette's bytes; `source` names it in errors.

    Raises Truncated, NewerVersion, Refused (a limit is named) or Unreadable. Without the closing mapping, as after a
    plain vcrpy has saved the file anew, exchanges and their times are there and the run's facts are unknown.
    """
    check(len(data), limits.file, "bytes", source)
    whole, version = _upgraded(_complete(data, source, limits), source)
    interactions = list(whole["interactions"].items())
    models = [each for each in interactions if _is_model(each)]
    recording = Recording(attempts=tuple(_attempts(models, limits)))
    run = _run(whole, models)
    return Document(
        recording=facts.read(run, recording, limits) if run.mapping() else _without_facts(recording),
        others=tuple(_other(each) for each in interactions if not _is_model(each)),
        version=version,
    )


def _lines(data: bytes, source: str) -> bytes:
    """The file as it was written. Carriage returns of bodies are escaped: one in the file is git's, or an editor's.

    In bytes, as libyaml wants it: a text would be encoded again.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            raise _cut_off(source, "it stops inside a character") from error
        msg = f"{source}: byte {error.start:,} is not UTF-8 ({error.reason}); restore the file or record it again"
        raise Unreadable(msg) from error
    return data.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")


def _complete(data: bytes, source: str, limits: Limits) -> Node:
    """The tree of a file that has its end: ours, or the `version` that vcrpy writes last and we write first."""
    lines = _lines(data, source)
    if not _CLOSED.search(lines[-_CLOSING:]):
        raise _open_ended(data, source)
    whole = Node(tree(lines, source, limits), source)
    found, stated = len(list(whole["interactions"].items())), whole[exchange.KEY]["end"]
    if not whole[exchange.KEY].mapping():
        if "interactions" not in whole.mapping():
            raise _cut_off(source, "there are no interactions")
    elif found != stated.number(-1):
        reason = f"{stated.value!r} interactions were written, {found} are there"
        raise stated.fail(reason)
    return whole


def _open_ended(data: bytes, source: str) -> Unreadable:
    text = data.decode("utf-8").removeprefix("\ufeff")
    if not text.strip():
        msg = (
            f"{source}: nothing is in it ({len(data):,} bytes of white space); a cassette closes with the number of "
            "its interactions. Restore the file, or record it again with --latency-mode=record"
        )
        return Truncated(msg)
    if any(text.startswith(start[: len(text)]) for start in (_HEAD, "interactions:")):
        last = text.rstrip()[-_CLOSING:].splitlines()[-1]
        return _cut_off(source, f"it stops after {last!r}")
    return Unreadable(f"{source}: no cassette of this plugin, it begins with {text[:20]!r}; give the path of one")


def _cut_off(source: str, detail: str) -> Truncated:
    return Truncated(f"{source}: the end is missing ({detail}); restore the file or record it again")


def _upgraded(whole: Node, source: str) -> tuple[Node, int]:
    """The tree as the current version would have it, and the version that it was."""
    version = _version(whole)
    if version > CURRENT:
        msg = f"{source}: version {version} of the cassette format, this plugin reads up to {CURRENT}; update it"
        raise NewerVersion(msg)
    value = whole.value
    for step in range(version, CURRENT):
        value = UPGRADES[step](value)
    return Node(value, source), version


def _version(whole: Node) -> int:
    """Ours, not vcrpy's, which stands alone at the top. Each exchange repeats it for the case that the rest is lost."""
    run = whole[exchange.KEY]["version"]
    if run.value is not None:
        return run.number()
    said = (each["response"][exchange.KEY]["version"] for each in whole["interactions"].items())
    return max((each.number(CURRENT) for each in said), default=CURRENT)


def _run(whole: Node, models: list[Node]) -> Node:
    """What is said once: at the end, or, in a file for plain vcrpy, with the first exchange."""
    own = whole[exchange.KEY]
    return own if own.mapping() or not models else models[0]["response"][exchange.KEY]["run"]


def _is_model(interaction: Node) -> bool:
    return exchange.KEY in interaction["response"].mapping()


def _without_facts(recording: Recording) -> Recording:
    numbers = dict.fromkeys(attempt.call for attempt in recording.attempts)
    return replace(recording, calls=tuple(CallRecord(id=number) for number in numbers))


def _attempts(models: list[Node], limits: Limits) -> Iterator[Attempt]:
    bodies = chain.Bodies(limits)
    for node in models:
        body = bodies.take(node["request"]["body"], node["response"][exchange.KEY]["request"])
        yield exchange.read(node, body, limits)


def _other(node: Node) -> dict[str, Any]:
    """In vcrpy's form, checked, so that vcrpy's own code doesn't stumble over an edit."""
    request, response = node["request"], node["response"]
    sent, received, status = request["body"], response["body"].mapping(), response["status"]
    return {
        "request": {
            "body": None if sent.value is None else sent.octets(),
            "headers": exchange.fields(request["headers"]),
            "method": request["method"].text(),
            "uri": request["uri"].text(),
        },
        "response": {
            "body": {key: response["body"][key].octets() for key in received},
            "headers": exchange.fields(response["headers"]),
            "status": {"code": status["code"].number(), "message": status["message"].text()},
        },
    }

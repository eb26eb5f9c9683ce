"""One request and response, as vcrpy lays an interaction out, with our times as an extra key of its response.

vcrpy and pytest-recording keep and ignore an unknown key there; anywhere else they fail on it or drop it.
Owns that layout. Refuses to know other exchanges: a request body is handed in and out ready.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from operator import sub
from typing import Any, cast

from pytest_agentlatency.cassette import series
from pytest_agentlatency.cassette.emit import Value
from pytest_agentlatency.cassette.lazy import LazyRequest
from pytest_agentlatency.cassette.limits import DEFAULT, Limits
from pytest_agentlatency.cassette.parse import Node
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import (
    Attempt,
    Failure,
    Headers,
    Outcome,
    Request,
    Response,
    Stamps,
    SystemFailure,
)

Moments = tuple[Ns, ...]

KEY = "agentlatency"
_HTTP = Response(status=200).http_version
# Plain vcrpy needs some status to load the interaction; no server sends this one.
_NO_RESPONSE: dict[str, Value] = {"code": 599, "message": "no response was received"}


def normal(headers: Headers) -> Headers:
    """Headers as a cassette keeps them: names in lower case, in order of name, equal names in order of arrival."""
    return tuple(sorted(((name.lower(), value) for name, value in headers), key=lambda field: field[0]))


def as_text(body: bytes) -> str | bytes:
    """The body as text when it is UTF-8."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body


def write(attempt: Attempt, body: str | bytes, facts: Mapping[str, Value]) -> dict[str, Value]:
    """The interaction of an attempt, its request body replaced by `body`, with `facts` leading our key."""
    request, response = attempt.request, attempt.response
    arrived: dict[str, Value] = _response(response) if response else {}
    ours: dict[str, Value] = {**facts, **_attempt(attempt), **arrived, **_stamps(attempt.stamps)}
    return {
        "request": {
            "body": body,
            "headers": _headers(request.headers),
            "method": request.method,
            "uri": request.url,
        },
        "response": {
            KEY: ours,
            "body": {"string": as_text(response.body) if response else ""},
            "headers": _headers(response.headers) if response else {},
            "status": {"code": response.status, "message": response.reason} if response else _NO_RESPONSE,
        },
    }


def _headers(headers: Headers) -> dict[str, Value]:
    grouped: dict[str, list[str]] = {}
    for name, value in normal(headers):
        grouped.setdefault(name, []).append(value)
    return dict(grouped)


def _attempt(attempt: Attempt) -> dict[str, Value]:
    ours: dict[str, Value] = {"call": attempt.call, "outcome": attempt.outcome.value}
    if attempt.failure:
        ours["failure"] = _failure(attempt.failure)
    return ours


def _failure(failure: Failure) -> dict[str, Value]:
    told: dict[str, Value] = {"kind": failure.kind, "message": failure.message}
    if failure.system is not None:
        kind, message, code = failure.system.kind, failure.system.message, failure.system.code
        told["system"] = {"kind": kind, "message": message, **({"code": code} if code else {})}
    return told


def _response(response: Response) -> dict[str, Value]:
    ours: dict[str, Value] = {"sizes": series.write(map(len, response.chunks))}
    if response.coding:
        ours["coding"] = response.coding
    if response.http_version != _HTTP:
        ours["http"] = response.http_version
    return ours


def _stamps(stamps: Stamps | None) -> dict[str, Value]:
    """Every time but the first as nanoseconds since the one before, so that lines are short and shifts show once.

    `arrived` counts from the headers, then from chunk to chunk; `wait` is how long the consumer had been asking for
    each chunk when it came; `asked` holds what it asked for beyond them.
    """
    if stamps is None:
        return {}
    known = min(len(stamps.asked), len(stamps.arrived))
    first = stamps.start if stamps.headers is None else stamps.headers
    waits = (came - asked for came, asked in zip(stamps.arrived, stamps.asked, strict=False))
    ours: dict[str, Value] = {
        "start": stamps.start,
        "connect": series.write(at - stamps.start for at in stamps.connect) if stamps.connect else None,
        "sent": _since(stamps.sent, stamps.start),
        "headers": _since(stamps.headers, stamps.start),
        "arrived": series.write(_differences(first, stamps.arrived)),
        "wait": series.write(waits),
        "asked": series.write(_differences(first, stamps.asked[known:])),
        "end": stamps.end - stamps.start,
    }
    return {key: value for key, value in ours.items() if value is not None and value != ""}


def _since(moment: Ns | None, start: Ns) -> int | None:
    return None if moment is None else moment - start


def _differences(first: int, moments: Iterable[int]) -> Iterable[int]:
    return (later - earlier for earlier, later in pairwise((first, *moments)))


def read(node: Node, body: bytes | tuple[bytes, ...], limits: Limits = DEFAULT) -> Attempt:
    """The attempt of an interaction, with `body` as its request's, whole or in pieces that are joined when it is read.

    Raises Unreadable with the place.
    """
    ours = node["response"][KEY]
    outcome = ours["outcome"].text() or Outcome.COMPLETE.value
    if outcome not in set(Outcome):
        reason = f"{outcome!r} found, one of {', '.join(Outcome)} expected"
        raise ours["outcome"].fail(reason)
    return Attempt(
        call=ours["call"].number(),
        request=_read_request(node["request"], body),
        response=None
        if ours["sizes"].value is None and _answerless(node)
        else _read_response(node["response"], limits),
        stamps=None if ours["start"].value is None else _read_stamps(ours, limits),
        outcome=Outcome(outcome),
        failure=_read_failure(ours["failure"]),
    )


def _read_failure(node: Node) -> Failure | None:
    if not node.mapping():
        return None
    below = node["system"]
    system = (
        SystemFailure(below["kind"].text(), below["message"].text(), below["code"].text()) if below.mapping() else None
    )
    return Failure(node["kind"].text(), node["message"].text(), system)


def _answerless(node: Node) -> bool:
    return node["response"]["status"]["code"].number() == _NO_RESPONSE["code"]


def _read_request(node: Node, body: bytes | tuple[bytes, ...]) -> Request:
    method, url, headers = node["method"].text(), node["uri"].text(), _read_headers(node["headers"])
    if isinstance(body, tuple):
        return LazyRequest(method, url, headers, pieces=body)
    return Request(method, url, headers, body)


def fields(node: Node) -> dict[str, list[str]]:
    """Header fields, each name with one value or several, as lists of values."""
    return {name: [value.text() for value in _values(node[name])] for name in node.mapping()}


def _values(node: Node) -> Iterable[Node]:
    return node.items() if isinstance(node.value, list) else (node,)


def _read_headers(node: Node) -> Headers:
    return normal(tuple((name, value) for name, values in fields(node).items() for value in values))


def _read_response(node: Node, limits: Limits) -> Response:
    ours, status = node[KEY], node["status"]
    body = node["body"]["string"].octets()
    return Response(
        status=status["code"].number(),
        headers=_read_headers(node["headers"]),
        chunks=_chunks(ours["sizes"], body, limits),
        reason=status["message"].text(),
        http_version=ours["http"].text() or _HTTP,
        coding=ours["coding"].text(),
    )


def _chunks(node: Node, body: bytes, limits: Limits) -> tuple[bytes, ...]:
    if node.value is None:
        return (body,) if body else ()
    sizes = _series(node, limits)
    if sum(sizes) != len(body) or min(sizes, default=0) < 0:
        reason = f"chunks of {sum(sizes):,} bytes found for a body of {len(body):,}: the body was edited"
        raise node.fail(reason)
    ends = tuple(accumulate(sizes))
    return tuple(body[end - size : end] for size, end in zip(sizes, ends, strict=True))


def _series(node: Node, limits: Limits) -> tuple[int, ...]:
    value: Any = node.value
    try:
        return series.read(value if type(value) is int else node.text(), limits.values)
    except ValueError as error:
        raise node.fail(str(error)) from error


def _read_stamps(ours: Node, limits: Limits) -> Stamps:
    start = Ns(ours["start"].number())
    headers = _moment(ours["headers"], start)
    first = start if headers is None else headers
    arrived = _moments(first, _series(ours["arrived"], limits))
    waits = _series(ours["wait"], limits)
    asked = cast("Moments", tuple(map(sub, arrived, waits)))
    connect = _series(ours["connect"], limits)
    return Stamps(
        start=start,
        end=Ns(start + ours["end"].number()),
        connect=(Ns(start + connect[0]), Ns(start + connect[-1])) if connect else None,
        sent=_moment(ours["sent"], start),
        headers=headers,
        asked=asked + _moments(first, _series(ours["asked"], limits)),
        arrived=arrived,
    )


def _moment(node: Node, start: int) -> Ns | None:
    return None if node.value is None else Ns(start + node.number())


def _moments(first: int, differences: Iterable[int]) -> Moments:
    return cast("Moments", tuple(accumulate(differences, initial=first))[1:])

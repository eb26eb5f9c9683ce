"""One request and its response as some recorder stored them, and the shapes in which recorders write their parts.

Owns headers, status lines and bodies in the forms that several containers share. Refuses to know any container and
any provider.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Headers, Outcome, Request, Response, Stamps

NO_RESPONSE = 599
"""Status that stands for no response where vcrpy's layout needs one; no server sends it."""

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_STATUS_LINE = re.compile(r"(\d{3})(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, its response, and what the container says of when."""

    request: Request
    response: Response | None
    """None when the recorder says that no response came."""
    dated: str = ""
    """When it was recorded, ISO 8601 with seconds, UTC; a date, too coarse to time anything."""
    began: int | None = None
    """Start in nanoseconds since the Unix epoch, where it is exact enough to order and time exchanges (HAR: 1 ms)."""
    stamps: Stamps | None = None
    """On a clock of the exchange's own, 0 at its start."""
    to_headers: Ns | None = None
    """Request to response headers, where the container says that and no more (go-vcr)."""
    outcome: Outcome = Outcome.COMPLETE
    failure: str = ""
    """Why no response came, in the recorder's words."""
    notes: tuple[str, ...] = ()
    """What a reader of the exchange must know: a body that couldn't be decoded, or isn't in its original bytes."""


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """The value, if it is a mapping. Unreadable otherwise, with the place."""
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    msg = (
        f"{where} is {kind(value)}, where a mapping was expected; the file may be cut off or edited: record it again, "
        "or restore it from version control"
    )
    raise Unreadable(msg)


def listed(value: Any, where: str) -> list[Any]:
    """The value, if it is a list. Unreadable otherwise, with the place."""
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    msg = f"{where} is {kind(value)}, where a list was expected; the file may be cut off or edited"
    raise Unreadable(msg)


def kind(value: Any) -> str:
    """What a value is, in a word, never the value: a recording may hold anything."""
    names = {"dict": "a mapping", "list": "a list", "str": "text", "bytes": "bytes", "NoneType": "missing"}
    name = type(value).__name__
    return names.get(name, f"a {name}")


def octets(value: Any) -> bytes:
    """A body's bytes: text as UTF-8, nothing as nothing, parsed JSON written out as the SDKs write it (no spaces)."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    text = value if isinstance(value, str) else _compact(value)
    return text.encode("utf-8", "surrogatepass")


def from_base64(text: Any, where: str) -> bytes:
    """Bytes of base64 text, line breaks allowed. Unreadable when it isn't base64."""
    try:
        return base64.b64decode(octets(text))
    except binascii.Error as error:
        msg = f"{where} is no base64 ({error}); the file may be cut off or edited"
        raise Unreadable(msg) from None


def stored_body(part: Mapping[str, Any], where: str) -> tuple[bytes, tuple[str, ...]]:
    """Body of a request or response mapping, in any of the forms that the vcr family writes, and notes on it."""
    if "parsed_body" in part:
        return octets(part["parsed_body"]), ("bodies are stored parsed; their bytes are written anew",)
    body = part["body"] if "body" in part else part.get("content")
    if not isinstance(body, dict):
        return octets(body), ()
    return _wrapped_body(mapping(body, where), where), ()


def _wrapped_body(body: Mapping[str, Any], where: str) -> bytes:
    if "string" in body:
        return octets(body["string"])
    if "base64_string" in body:
        return from_base64(body["base64_string"], f"{where}.body.base64_string")
    if "raw_gzip" in body:
        return from_base64(body["raw_gzip"], f"{where}.body.raw_gzip")
    return b"" if set(body) <= {"encoding", "file"} else octets(body)


def stored_headers(value: Any) -> Headers:
    """Header fields from a mapping (values text, list or number), a list of pairs or a list of name/value mappings."""
    if isinstance(value, dict):
        return tuple(_fields(mapping(value, "headers").items()))
    if not isinstance(value, list):
        return ()
    return tuple(_fields(pair for item in listed(value, "headers") if (pair := _pair(item))))


def _pair(item: Any) -> tuple[Any, Any] | None:
    if isinstance(item, dict):
        named = mapping(item, "header")
        return (named["name"], named.get("value")) if "name" in named else None
    two = listed(item, "header") if isinstance(item, list) else []
    return (two[0], two[1]) if len(two) == 2 else None  # noqa: PLR2004


def _fields(pairs: Iterable[tuple[Any, Any]]) -> Iterable[tuple[str, str]]:
    for name, value in pairs:
        for each in listed(value, "header") if isinstance(value, list) else [value]:
            yield _word(name), _word(each)


def _word(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


def stored_status(part: Mapping[str, Any], where: str) -> tuple[int, str]:
    """Status code and reason: `{code, message}`, `200`, `"200 OK"`, or a `code` or `status_code` beside it."""
    status = part.get("status")
    if isinstance(status, dict):
        inner = mapping(status, where)
        code, reason = inner.get("code", inner.get("status_code")), inner.get("message") or inner.get("reason")
    else:
        code, reason = part.get("code", part.get("status_code")), part.get("statusText")
    line = _STATUS_LINE.fullmatch(str(status).strip()) if isinstance(status, str | int) else None
    if line:
        code, reason = code if code is not None else line[1], reason or line[2]
    if code is not None and (number := _STATUS_LINE.fullmatch(str(code))):
        return int(number[1]), _word(reason)
    msg = f"{where} has no status code of three digits; the file may be cut off or edited"
    raise Unreadable(msg)


def request(part: Mapping[str, Any], url: Any, body: bytes) -> Request:
    """The request with its method, URL and headers from a mapping."""
    return Request(_word(part.get("method")).upper() or "GET", _word(url), stored_headers(part.get("headers")), body)


def response(part: Mapping[str, Any], where: str, body: bytes, http_version: Any = None) -> Response:
    """The response with its status and headers from a mapping.

    The body is one chunk: no foreign container says at which boundaries it arrived.
    """
    code, reason = stored_status(part, where)
    version = http_version if isinstance(http_version, str) and http_version else "HTTP/1.1"
    return Response(code, stored_headers(part.get("headers")), (body,) if body else (), reason, version)


def interaction(exchange: Exchange) -> Mapping[str, Any]:
    """The exchange as vcrpy's request and response dicts, bodies as bytes."""
    asked, answered = exchange.request, exchange.response or Response(NO_RESPONSE)
    return {
        "request": {
            "body": asked.body,
            "headers": _grouped(asked.headers),
            "method": asked.method,
            "uri": asked.url,
        },
        "response": {
            "body": {"string": answered.body},
            "headers": _grouped(answered.headers),
            "status": {"code": answered.status, "message": answered.reason},
        },
    }


def _grouped(headers: Headers) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in headers:
        grouped.setdefault(name, []).append(value)
    return grouped

"""HTTP that is no model call, in vcrpy's form: what of it is stored and shown, and by what it is told apart.

Owns those mappings. Doesn't import vcrpy, and refuses to know who records or replays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pytest_agentlatency.cassette import plainbody
from pytest_agentlatency.cassette.headers import clean_url, keep_other_request, keep_other_response

Interaction = Mapping[str, Any]
Origin = tuple[str, str, int | None]
"""Scheme, host and port of a URL."""

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that was refused in replay, or one that was recorded and not made."""

    method: str
    url: str
    """Without user, and with the names of its query parameters only."""
    stack: str = ""
    """The HTTP library that the agent called: `requests`, `urllib3`, `aiohttp`, `http.client`, `httpx`, ..."""


def copied(response: Mapping[str, Any]) -> dict[str, Any]:
    """A response to be played: the stubs of vcrpy delete headers from it."""
    return {**response, "headers": dict(response.get("headers") or {}), "body": dict(response.get("body") or {})}


def interaction(request: Any, response: Mapping[str, Any]) -> Interaction:
    """An exchange that vcrpy took down, as it is stored."""
    headers = {name: [plainbody.header(value)] for name, value in request.headers.items()}
    body = plainbody.as_bytes(request.body)
    plain = {
        name: [plainbody.header(each) for each in values]
        for name, values in response["headers"].items()
        if keep_other_response(name)
    }
    return {
        "request": {"body": body, "headers": headers, "method": request.method, "uri": request.uri},
        "response": {**response, "headers": plain},
    }


def cleaned(request: Any) -> Any:
    """A request without credentials, as it is stored and as a replay asks for it."""
    request.uri = clean_url(request.uri)
    request.headers = {name: value for name, value in request.headers.items() if keep_other_request(name)}
    return request


def origin(url: str) -> Origin:
    """Where a URL leads; the scheme's port where it names none."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def same_body(live: Any, recorded: Any) -> bool:
    """Whether the bodies of two requests say the same, however they are written."""
    return plainbody.comparable(live.body) == plainbody.comparable(recorded.body)


def seen(request: Any, stack: str = "") -> Seen:
    """A request as it may be told of."""
    parts = urlsplit(str(request.uri))
    names = "&".join(name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    host = parts.netloc.rpartition("@")[2]
    return Seen(request.method, urlunsplit((parts.scheme, host, parts.path, names, "")), stack)

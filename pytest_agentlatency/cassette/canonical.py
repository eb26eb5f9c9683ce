"""When two requests are the same: as bytes, as JSON, or as JSON without its volatile spans.

Owns the three keys of a request. They are worked out anew at every load and never stored, so that a change of masks or
of this module applies to recorded and live requests alike. Refuses to know lanes and turns.
"""

import json
import re
from typing import Any, cast

from pytest_agentlatency.cassette.headers import clean_url
from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.paths import path_of

Key = tuple[str, str, str, int, int]
"""Method, path, query, and size and hash of the body: this process's own hash, five times as fast as a digest."""

_BOUNDARY = re.compile(r'boundary="?([^";]+)', re.IGNORECASE)


def exact(request: Request) -> Key:
    """Key of the bytes. The host is no part of it: gateways and loopback ports change."""
    return _key(request, request.body)


def meaning(request: Request, masks: Masks) -> tuple[Key, Key]:
    """Keys of the meaning, with and without volatile spans: of JSON whatever its key order and white space."""
    try:
        value = parsed(request.body)
        if value is not None:
            return _key(request, _written(value)), _key(request, _written(masks.value(value)))
    except (ValueError, RecursionError):  # nested too deeply, a number too long to be written
        pass
    return exact(request), _key(request, _opaque(request, masks))


def parsed(body: bytes) -> Any:
    """Value of a body that is a JSON object or array; None for any other."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Any", value) if isinstance(value, dict | list) else None


def _key(request: Request, body: bytes) -> Key:
    query = clean_url(request.url).partition("#")[0].partition("?")[2]
    return request.method.upper(), path_of(request.url), query, len(body), hash(body)


def _written(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _opaque(request: Request, masks: Masks) -> bytes:
    """A body that is no JSON, its multipart boundary made a constant; bytes that are no text stay as they are."""
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        return request.body
    content_type = next((value for name, value in request.headers if name.lower() == "content-type"), "")
    boundary = _BOUNDARY.search(content_type)
    return masks.text(text.replace(boundary[1], "boundary") if boundary else text).encode()

"""Which header fields and query values may reach a disk: an allow-list, so that a new credential header can't slip by.

Owns the two lists and the cleaning of URLs. Refuses to know bodies; `secrets` looks into those.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote_plus

from pytest_agentlatency.model.recording import Headers

REQUEST = frozenset({
    "anthropic-beta", "anthropic-version", "content-encoding", "content-type", "openai-beta",
    "x-stainless-retry-count",
})  # fmt: skip
"""Request fields kept: what changes the meaning of a body, and the SDK's own count of retries."""

RESPONSE = frozenset({
    "content-type", "retry-after", "retry-after-ms", "x-should-retry", "server", "openai-model", "openai-version",
    # what a server says of its own time, or of tokens
    "openai-processing-ms", "x-envoy-upstream-service-time", "server-timing", "x-kong-upstream-latency",
    "x-kong-proxy-latency", "x-inference-time", "x-queue-time", "x-time-per-token", "x-total-time", "x-compute-time",
    "x-compute-characters", "x-validation-time", "x-prompt-tokens", "x-generated-tokens",
    "x-amzn-bedrock-invocation-latency", "x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count",
    "x-amzn-bedrock-cache-read-input-token-count", "x-amzn-bedrock-cache-write-input-token-count",
})  # fmt: skip
"""Response fields kept as they are. `server` tells llama.cpp, whose headers come when prefill starts."""

OTHER_REQUEST = frozenset({"accept", "accept-language", "content-type", "range"})
"""Request fields kept of HTTP that is no model call; no replay compares them, they are for a reader."""

OTHER_RESPONSE = RESPONSE | {
    "accept-ranges", "allow", "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "etag", "last-modified", "link", "location", "transfer-encoding",
    "www-authenticate",
}  # fmt: skip
"""Response fields kept of HTTP that is no model call: what HTTP libraries and callers act on."""

_OTHER_FAMILIES = re.compile(r"x-(?:rate-?limit|total|page|pages|per-page|next|prev)(?:-|$)")
_RESPONSE_FAMILIES = re.compile(r"x-metrics-|(?:x|anthropic)-ratelimit-(?:[a-z-]+-)?remaining")
_IDS = frozenset({"request-id", "x-request-id", "x-amzn-requestid", "apim-request-id"})
_HASHED = "sha256:"

_CREDENTIAL = re.compile(
    r"(?:^|_)(?:key|apikey|token|secret|passw(?:or)?d|pwd|auth|authorization|bearer|jwt|signature|sig|credentials?"
    r"|session|sid)(?:$|_)"
)
_PAGING = frozenset({"page_token", "next_page_token", "next_token", "continuation_token"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*@")


def keep_request(headers: Headers) -> Headers:
    """Return the request fields that may be stored: lower-case names, in the order of the names."""
    return _sorted((name, value) for name, value in _lower(headers) if name in REQUEST)


def keep_response(headers: Headers) -> Headers:
    """Return the response fields that may be stored: lower-case names, in the order of the names.

    Request ids are kept as the first 16 hexadecimal digits of their SHA-256: enough to see two apart.
    """
    return _sorted((name, _hashed(value) if name in _IDS else value) for name, value in _lower(headers) if _may(name))


def keep_other_request(name: str) -> bool:
    """Whether a request field of HTTP that is no model call may be stored."""
    return name.lower() in OTHER_REQUEST


def keep_other_response(name: str) -> bool:
    """Whether a response field of HTTP that is no model call may be stored."""
    return name.lower() in OTHER_RESPONSE or _OTHER_FAMILIES.match(name.lower()) is not None


def _lower(headers: Headers) -> Iterable[tuple[str, str]]:
    return ((name.lower(), value) for name, value in headers)


def _sorted(headers: Iterable[tuple[str, str]]) -> Headers:
    return tuple(sorted(headers, key=lambda header: header[0]))  # stable: repeated fields keep their order


def _may(name: str) -> bool:
    return name in RESPONSE or name in _IDS or _RESPONSE_FAMILIES.match(name) is not None


def _hashed(value: str) -> str:
    if value.startswith(_HASHED):
        return value
    return _HASHED + hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def clean_url(url: str) -> str:
    """Return the URL without user name, password, and query values whose names say that they are credentials.

    Everything else keeps its bytes and order.
    """
    head, fragment_mark, fragment = _USERINFO.sub(r"\1", url).partition("#")
    base, _, query = head.partition("?")
    kept = "&".join(pair for pair in query.split("&") if not is_credential(pair.partition("=")[0]))
    return base + ("?" + kept if kept else "") + fragment_mark + fragment


@lru_cache(maxsize=1024)
def is_credential(name: str) -> bool:
    """Whether a field's name (`api_key`, `accessToken`, `X-Amz-Signature`) says that its value is a credential."""
    plain = _CAMEL.sub("_", unquote_plus(name)).lower().replace("-", "_")
    return plain not in _PAGING and _CREDENTIAL.search(plain) is not None

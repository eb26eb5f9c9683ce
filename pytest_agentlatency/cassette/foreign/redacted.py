"""Addresses that were redacted whole, path included: which API was called is then told by both bodies.

Owns that guess, which is sure for a successful answer: the three formats name themselves in it. Refuses to touch an
address that still has a path, and a body that fits no format.
"""

import re
from dataclasses import replace

from pytest_agentlatency.cassette.foreign.exchange import Exchange
from pytest_agentlatency.wire.jsonedge import loads, mapping

NOTE = "addresses are redacted whole; the API that was called is taken from the bodies"

_ANSWERS = (
    ("/v1/responses", re.compile(rb'"object":\s*"response"|"type":\s*"response\.\w')),
    ("/v1/chat/completions", re.compile(rb'"object":\s*"chat\.completion')),
    ("/v1/messages", re.compile(rb'"type":\s*"(?:message|message_start)"')),
)
_ASKED = {"/v1/responses": "input", "/v1/chat/completions": "messages", "/v1/messages": "messages"}
# A failed request is told by what only one format has; `input` alone may be one for embeddings.
_RESPONSES_ONLY = frozenset(
    {"instructions", "include", "store", "reasoning", "max_output_tokens", "previous_response_id"}
)
_ANTHROPIC_ERROR = re.compile(rb'"type":\s*"error"')
_FIRST = 4096


def with_path(exchange: Exchange) -> Exchange:
    """The exchange with the called API's path at its address, where the address has none; otherwise as it is."""
    request = exchange.request
    if "/" in request.url or request.method != "POST" or exchange.response is None:
        return exchange
    asked = mapping(loads(request.body))
    path = _path(frozenset(asked), exchange.response.body[:_FIRST], exchange.response.status)
    if not path:
        return exchange
    return replace(exchange, request=replace(request, url=request.url + path), notes=(*exchange.notes, NOTE))


def _path(asked: frozenset[str], answered: bytes, status: int) -> str:
    for path, answer in _ANSWERS:
        if _ASKED[path] in asked and answer.search(answered):
            return path
    if status < 400 or "model" not in asked:  # noqa: PLR2004
        return ""
    if "messages" in asked:
        return "/v1/messages" if _ANTHROPIC_ERROR.search(answered) else "/v1/chat/completions"
    return "/v1/responses" if asked & _RESPONSES_ONLY else ""

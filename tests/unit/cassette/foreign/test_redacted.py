"""Addresses of which nothing is left."""

import json
from typing import Any

import pytest

from pytest_agentlatency.cassette.foreign import read
from pytest_agentlatency.wire import registry
from tests.support import foreign_recordings as made

CHAT = {"id": "c", "object": "chat.completion", "choices": []}
RESPONSE = {"id": "r", "object": "response", "output": []}
CREATED = 'event: response.created\ndata: {"type":"response.created","response":{"id":"r","object":"response"}}\n\n'


def providers(asked: Any, answered: Any, status: int = 200, url: str = "**REDACTED**") -> list[str]:
    body = answered if isinstance(answered, str) else json.dumps(answered)
    pair = {
        "request": {"method": "POST", "uri": url, "body": json.dumps(asked), "headers": {}},
        "response": {"status": {"code": status}, "headers": {}, "body": {"string": body}},
    }
    found = read(json.dumps({"interactions": [pair]}).encode())
    return [registry.recognise(attempt.request).name for attempt in found.recording.attempts]


@pytest.mark.parametrize(
    ("asked", "answered", "status", "provider"),
    [
        ({"model": "m", "messages": []}, CHAT, 200, "openai"),
        ({"model": "m", "messages": []}, made.ANSWER, 200, "anthropic"),
        ({"model": "m", "messages": []}, made.SSE, 200, "anthropic"),
        ({"model": "m", "input": "x"}, RESPONSE, 200, "openai-responses"),
        ({"model": "m", "input": "x"}, CREATED, 200, "openai-responses"),
        ({"model": "m", "input": "x", "store": False}, {"error": {}}, 401, "openai-responses"),
        ({"model": "m", "messages": []}, {"error": {}}, 401, "openai"),
        ({"model": "m", "messages": []}, {"type": "error", "error": {}}, 529, "anthropic"),
    ],
)
def test_the_api_is_told_by_both_bodies(asked, answered, status, provider):
    """Field note A31."""
    assert providers(asked, answered, status) == [provider]


@pytest.mark.parametrize(
    ("asked", "answered", "status"),
    [
        ({"model": "m", "input": "x"}, {"object": "list", "data": []}, 200),
        ({"model": "m", "input": "x"}, {"error": {}}, 401),
        ({"messages": "x"}, {"ok": True}, 200),
        ([1], CHAT, 200),
    ],
    ids=["embeddings", "perhaps embeddings", "another service", "no mapping"],
)
def test_what_fits_no_format_is_no_model_call(asked, answered, status):
    assert providers(asked, answered, status) == []


def test_an_address_that_still_has_a_path_is_left_alone():
    assert providers({"model": "m", "messages": []}, CHAT, url="http://localhost:9999/agent") == []

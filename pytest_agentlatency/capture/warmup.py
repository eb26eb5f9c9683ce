"""One offline call of an SDK before the first that is measured.

The first call of a process builds the SDK's types lazily: hundreds of milliseconds that would pass for the agent's
overhead, or, in a stream, for prefill. Owns canned answers that make the SDK build them; sends nothing anywhere.
"""

import functools
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

OWN_TRANSPORT = "agentlatency_own"
"""Attribute of a transport that the seam leaves alone."""

warming: ContextVar[bool] = ContextVar("agentlatency_warming", default=False)

_USAGE: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1}
_MESSAGE: dict[str, Any] = {
    "id": "msg_0",
    "type": "message",
    "role": "assistant",
    "model": "warm-up",
    "content": [],
    "usage": _USAGE,
}
_ASK: dict[str, Any] = {"model": "warm-up", "max_tokens": 1, "messages": [{"role": "user", "content": "warm-up"}]}
_TEXT: dict[str, Any] = {"type": "text", "text": ""}
_TOOL: dict[str, Any] = {"type": "tool_use", "id": "toolu_0", "name": "t", "input": {}}


@functools.cache
def warm_up(sdk: str) -> None:
    """Make an imported SDK build its types; once a process. A failure is nobody's business: the call is then cold."""
    token = warming.set(True)
    try:
        with suppress(Exception):
            _WARM[sdk](sys.modules[sdk])
    finally:
        warming.reset(token)


def _anthropic(sdk: ModuleType) -> None:
    client = sdk.Anthropic(api_key="warm-up", max_retries=0, http_client=_client(sdk, _anthropic_events()))
    for messages in (client.messages, client.beta.messages):
        with messages.stream(**_ASK) as stream:
            for _ in stream:
                pass
        for _ in messages.create(stream=True, **_ASK):
            pass
        messages.create(**_ASK)


def _openai(sdk: ModuleType) -> None:
    chunk = {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": "warm-up"}
    choice = {"index": 0, "delta": {"content": "."}, "finish_reason": None}
    frames = [f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n", "data: [DONE]\n\n"]
    client = sdk.OpenAI(api_key="warm-up", max_retries=0, http_client=_client(sdk, frames))
    ask = {"model": "warm-up", "messages": [{"role": "user", "content": "warm-up"}]}
    for _ in client.chat.completions.create(stream=True, **ask):
        pass


_WARM = {"anthropic": _anthropic, "openai": _openai}


def _anthropic_events() -> list[str]:
    bodies: list[dict[str, Any]] = [{"type": "message_start", "message": {**_MESSAGE, "stop_reason": None}}]
    deltas = ({"type": "text_delta", "text": "."}, {"type": "input_json_delta", "partial_json": "{}"})
    for index, (block, delta) in enumerate(zip((_TEXT, _TOOL), deltas, strict=True)):
        bodies.append({"type": "content_block_start", "index": index, "content_block": block})
        bodies.append({"type": "content_block_delta", "index": index, "delta": delta})
        bodies.append({"type": "content_block_stop", "index": index})
    bodies.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})
    bodies.append({"type": "message_stop"})
    return [f"event: {body['type']}\ndata: {json.dumps(body)}\n\n" for body in bodies]


def _client(sdk: ModuleType, frames: list[str]) -> Any:
    base = sys.modules[f"{sdk.__name__}._base_client"]
    family: Any = getattr(base, "httpx2", None) or base.httpx  # the library that this major of the SDK insists on

    def handle(_: object, request: Any) -> Any:
        if json.loads(request.read()).get("stream"):
            head = {"content-type": "text/event-stream"}
            return family.Response(200, headers=head, content=_bytes(frames))
        return family.Response(200, json={**_MESSAGE, "stop_reason": "end_turn", "stop_sequence": None})

    transport = type("WarmUp", (family.BaseTransport,), {"handle_request": handle, OWN_TRANSPORT: True})
    return family.Client(transport=transport())


def _bytes(frames: list[str]) -> Iterator[bytes]:
    return (frame.encode() for frame in frames)

"""The simulated model's Anthropic Messages: a reply as JSON, as a stream of events, and errors.

Owns that format's fields. Refuses to know sockets, scripts and faults.
"""

import json
from collections.abc import Iterator
from typing import Any

from pytest_agentlatency.testing.plan import Frame, Plan, Speech
from pytest_agentlatency.testing.script import Reply, ReplyBlock, pieces

JSON_HEADERS = {"content-type": "application/json"}
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
SIGNATURE = "c2ltdWxhdGVk"

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def plan(reply: Reply, speech: Speech) -> Plan:
    """The answer with its schedule: events as tokens are generated, or one JSON body after the last token."""
    headers = {"request-id": speech.id.replace("msg_", "req_")}
    if speech.streamed:
        return Plan(200, SSE_HEADERS | headers, speech.cost.queue, tuple(_frames(reply, speech)), streamed=True)
    body = json.dumps(message(reply, speech), ensure_ascii=False).encode()
    at = speech.cost.last_token
    return Plan(200, JSON_HEADERS | headers, at, (Frame(at, body, generated=bool(reply.blocks)),))


def refusal(status: int, message: str, *, kind: str = "", details: dict[str, Any] | None = None) -> Plan:
    """An error response in this format, which OpenAI's SDK reads as well."""
    error = {"type": kind or ERROR_TYPES.get(status, "api_error"), "message": message}
    body = {"type": "error", "error": error | ({"details": details} if details else {})}
    return Plan(status, JSON_HEADERS, 0, (Frame(0, json.dumps(body).encode()),))


def token_count(tokens: int) -> Plan:
    """The answer of `/v1/messages/count_tokens`."""
    return Plan(200, JSON_HEADERS, 0, (Frame(0, json.dumps({"input_tokens": tokens}).encode()),))


def event(kind: str, data: dict[str, Any]) -> bytes:
    """One server-sent event with its name."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | data, ensure_ascii=False)}\n\n".encode()


def content(reply: Reply, answer_id: str) -> list[dict[str, Any]]:
    """The reply's blocks as they stand in a message."""
    return [
        _opened(reply, block, answer_id, number) | _filled(reply, block) for number, block in enumerate(reply.blocks)
    ]


def message(reply: Reply, speech: Speech) -> dict[str, Any]:
    """The whole answer as one JSON object."""
    return _head(speech) | {
        "content": content(reply, speech.id),
        "stop_reason": reply.stop,
        "usage": usage(speech, reply),
    }


def usage(speech: Speech, reply: Reply | None) -> dict[str, Any]:
    """Anthropic's usage object, final when the reply is given; its `input_tokens` leaves out what a cache held."""
    thinking = sum(block.tokens for block in reply.blocks if block.kind == "thinking") if reply else 0
    counts: dict[str, Any] = {
        "input_tokens": speech.tokens.uncached,
        "cache_creation_input_tokens": speech.tokens.written,
        "cache_read_input_tokens": speech.tokens.read,
        "output_tokens": reply.output_tokens if reply else 0,
    }
    return counts | ({"output_tokens_details": {"thinking_tokens": thinking}} if thinking else {})


def _head(speech: Speech) -> dict[str, Any]:
    return {
        "id": speech.id,
        "type": "message",
        "role": "assistant",
        "model": speech.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage(speech, None),
    }


def _frames(reply: Reply, speech: Speech) -> Iterator[Frame]:
    yield Frame(speech.prelude_at, event("message_start", {"message": _head(speech)}))
    for index, block in enumerate(pieces(reply, speech.tokens_per_event)):
        yield from _block_frames(reply, index, block, speech)
    end = {"delta": {"stop_reason": reply.stop, "stop_sequence": None}, "usage": usage(speech, reply)}
    yield Frame(speech.cost.last_token, event("message_delta", end))
    yield Frame(speech.cost.last_token, event("message_stop", {}))


def _block_frames(reply: Reply, index: int, cut: tuple[ReplyBlock, int, list[Any]], speech: Speech) -> Iterator[Frame]:
    block, before, parts = cut
    start = speech.cost.token(before if block.name else before + 1)
    end = speech.cost.token(parts[-1].upto if parts else before)
    opened = {"index": index, "content_block": _opened(reply, block, speech.id, index)}
    yield Frame(start, event("content_block_start", opened), generated=bool(block.name))
    if block.kind == "tool":
        yield Frame(start, _delta(index, {"type": "input_json_delta", "partial_json": ""}))
    for part in () if _hidden(reply, block) else parts:
        yield Frame(speech.cost.token(part.upto), _delta(index, _grown(block, part.text)), generated=True)
    if block.kind == "thinking":
        yield Frame(end, _delta(index, {"type": "signature_delta", "signature": SIGNATURE}))
    yield Frame(end, event("content_block_stop", {"index": index}))


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return event("content_block_delta", {"index": index, "delta": delta})


def _grown(block: ReplyBlock, text: str) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            return {"type": "thinking_delta", "thinking": text}
        case "text":
            return {"type": "text_delta", "text": text}
        case "tool":
            return {"type": "input_json_delta", "partial_json": text}


def _hidden(reply: Reply, block: ReplyBlock) -> bool:
    return block.kind == "thinking" and reply.hide_thinking


def _opened(reply: Reply, block: ReplyBlock, answer_id: str, index: int) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case "tool":
            number = index - len(reply.blocks) + len(reply.tool_calls) + 1
            name = answer_id.replace("msg_", "toolu_") + f"_{number}"
            return {"type": "tool_use", "id": name, "name": block.name, "input": {}}


def _filled(reply: Reply, block: ReplyBlock) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            return {"thinking": "" if reply.hide_thinking else block.text, "signature": SIGNATURE}
        case "text":
            return {"text": block.text}
        case "tool":
            return {"input": json.loads(block.text)}

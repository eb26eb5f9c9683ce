"""The simulated model's OpenAI Chat Completions: a reply as JSON and as a stream of chunks.

Owns that format's fields. Refuses to know sockets, scripts and faults.
"""

import json
from collections.abc import Iterator
from typing import Any

from pytest_agentlatency.testing.messages_api import JSON_HEADERS, SSE_HEADERS
from pytest_agentlatency.testing.plan import Frame, Plan, Speech
from pytest_agentlatency.testing.script import Reply, ReplyBlock, pieces

_FINISH = {"tool_use": "tool_calls", "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
_CREATED = 1_700_000_000
_MS = 1_000_000


def plan(reply: Reply, speech: Speech) -> Plan:
    """The answer with its schedule: chunks as tokens are generated, or one JSON body after the last token."""
    headers = {"x-request-id": speech.id.replace("msg_", "req_")}
    if speech.streamed:
        return Plan(200, SSE_HEADERS | headers, speech.cost.queue, tuple(_frames(reply, speech)), streamed=True)
    body = json.dumps(completion(reply, speech), ensure_ascii=False).encode()
    at = speech.cost.last_token
    return Plan(200, JSON_HEADERS | headers, at, (Frame(at, body, generated=bool(reply.blocks)),))


def completion(reply: Reply, speech: Speech) -> dict[str, Any]:
    """The whole answer as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    calls = [_call(block, speech.id, number) for number, block in enumerate(_tools(reply), 1)]
    shown = {} if reply.hide_thinking or not reply.thinking else {"reasoning_content": reply.thinking}
    choice = {"index": 0, "message": message | shown | ({"tool_calls": calls} if calls else {})}
    choices = [choice | {"finish_reason": _finish(reply), "logprobs": None}]
    head = {"id": _id(speech), "object": "chat.completion", "created": _CREATED, "model": speech.model}
    return head | {"choices": choices, "usage": usage(speech, reply)} | _timings(speech, reply)


def usage(speech: Speech, reply: Reply) -> dict[str, Any]:
    """OpenAI's usage object; its `prompt_tokens` includes what a cache held."""
    thinking = sum(block.tokens for block in reply.blocks if block.kind == "thinking")
    details: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": speech.tokens.read}}
    details |= {"completion_tokens_details": {"reasoning_tokens": thinking}} if thinking else {}
    context, output = speech.tokens.context, reply.output_tokens
    return {"prompt_tokens": context, "completion_tokens": output, "total_tokens": context + output} | details


def _frames(reply: Reply, speech: Speech) -> Iterator[Frame]:
    yield Frame(speech.prelude_at, _chunk(speech, {"role": "assistant", "content": ""}))
    tool = -1
    for block, before, parts in pieces(reply, speech.tokens_per_event):
        if block.kind == "tool":
            tool += 1
            opened = {"index": tool, **_call(block, speech.id, tool + 1, arguments="")}
            yield Frame(speech.cost.token(before), _chunk(speech, {"tool_calls": [opened]}), generated=True)
        for part in () if block.kind == "thinking" and reply.hide_thinking else parts:
            delta = _chunk(speech, _grown(block, part.text, tool))
            yield Frame(speech.cost.token(part.upto), delta, generated=True)
    yield from _last_frames(reply, speech)


def _last_frames(reply: Reply, speech: Speech) -> Iterator[Frame]:
    end = speech.cost.last_token
    yield Frame(end, _chunk(speech, {}, finish=_finish(reply)))
    if speech.with_usage:
        yield Frame(
            end,
            _event({**_chunk_head(speech), "choices": (), "usage": usage(speech, reply), **_timings(speech, reply)}),
        )
    yield Frame(end, b"data: [DONE]\n\n")


def _grown(block: ReplyBlock, text: str, tool: int) -> dict[str, Any]:
    match block.kind:
        case "thinking":
            return {"reasoning_content": text}
        case "text":
            return {"content": text}
        case "tool":
            return {"tool_calls": [{"index": tool, "function": {"arguments": text}}]}


def _call(block: ReplyBlock, answer_id: str, number: int, arguments: str | None = None) -> dict[str, Any]:
    function = {"name": block.name, "arguments": block.text if arguments is None else arguments}
    return {"id": answer_id.replace("msg_", "call_") + f"_{number}", "type": "function", "function": function}


def _tools(reply: Reply) -> list[ReplyBlock]:
    return [block for block in reply.blocks if block.kind == "tool"]


def _timings(speech: Speech, reply: Reply) -> dict[str, Any]:
    """The server's own times as llama.cpp reports them, in milliseconds."""
    if not speech.report_times:
        return {}
    times = {"prompt_ms": speech.cost.prefill / _MS, "predicted_ms": speech.cost.decode / _MS}
    counts = {"cache_n": speech.tokens.read, "prompt_n": speech.tokens.work, "predicted_n": reply.output_tokens}
    return {"timings": counts | times}


def _chunk_head(speech: Speech) -> dict[str, Any]:
    return {"id": _id(speech), "object": "chat.completion.chunk", "created": _CREATED, "model": speech.model}


def _chunk(speech: Speech, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return _event(_chunk_head(speech) | {"choices": choices})


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _id(speech: Speech) -> str:
    return speech.id.replace("msg_", "chatcmpl-")


def _finish(reply: Reply) -> str:
    return _FINISH.get(reply.stop, reply.stop)

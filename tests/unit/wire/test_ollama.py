"""Ollama's lines: text, thinking, calls, counts and durations."""

import json

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.ollama import Ollama
from tests.support.wire import post, whole

PROVIDER = Ollama()
URL = "http://localhost:11434/api/chat"
CALL = {"function": {"name": "track", "arguments": {"id": 7}}}
LAST = {
    "done": True, "done_reason": "stop", "prompt_eval_count": 26, "eval_count": 298, "total_duration": 4_883_583_458,
    "load_duration": 1_334_875, "prompt_eval_duration": 342_546_000, "eval_duration": 4_535_599_000,
}  # fmt: skip


def lines(*messages):
    head = {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z"}
    found = [{**head, "message": {"role": "assistant", **each}, "done": False} for each in messages]
    end = {**head, "message": {"role": "assistant", "content": ""}, **LAST}
    return Response(200, (("content-type", "application/x-ndjson"),), tuple(
        json.dumps(each).encode() + b"\n" for each in (*found, end)
    ))  # fmt: skip


def test_lines_are_a_stream():
    answer = PROVIDER.answer(
        lines(
            {"content": "", "thinking": "Hm"},
            {"content": "Lost"},
            {"content": "."},
            {"content": "", "tool_calls": [CALL]},
        )
    )
    assert [(block.kind, block.text) for block in answer.blocks] == [
        ("thinking", "Hm"),
        ("text", "Lost."),
        ("tool_json", '{"id":7}'),
    ]
    found = answer.marks
    assert (found.first_token, found.first_output, found.first_text, found.last_token) == (0, 1, 1, 3)
    assert (answer.streamed, answer.finished, answer.stop_reason, answer.usage.context, answer.usage.output) == (
        True, True, "stop", 26, 298,
    )  # fmt: skip


def test_durations_are_nanoseconds():
    server = PROVIDER.answer(lines({"content": "x"})).server
    assert (server.prefill, server.decode, server.total) == (342_546_000, 4_535_599_000, 4_883_583_458)


def test_a_stream_of_one_line_is_still_a_stream():
    assert PROVIDER.answer(lines()).streamed


def test_whole_answer_of_generate():
    answer = PROVIDER.answer(whole({"model": "qwen3", "response": "Lost.", **LAST}))
    assert (answer.blocks[0].text, answer.streamed, answer.usage.output) == ("Lost.", False, 298)


def test_line_with_an_error():
    answer = PROVIDER.answer(Response(200, (), (b'{"message":{"content":"a"},"done":false}\n', b'{"error":"gone"}\n')))
    assert (answer.error, answer.finished, answer.blocks[0].text) == ("error", False, "a")


def test_prompt_streams_unless_told_otherwise():
    asked = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_name": "track", "content": "lost"}
    system = {"role": "system", "content": "Be brief."}
    request = post(URL, {"model": "qwen3", "messages": [system, asked, result], "options": {"seed": 1}})
    found = PROVIDER.prompt(request)
    assert PROVIDER.recognises(request)
    assert (found.streamed, found.params) == (True, {"options": '{"seed":1}'})
    assert [block.text for block in found.blocks] == ["Be brief.", '{"id":7}', "lost"]
    assert not PROVIDER.prompt(post(URL, {"model": "m", "messages": [], "stream": False})).streamed


def test_answer_is_the_history_of_the_next_request():
    answer = PROVIDER.answer(lines({"content": "Lost.", "tool_calls": [CALL]}))
    entry = {"role": "assistant", "content": "Lost.", "tool_calls": [CALL]}
    sent = PROVIDER.prompt(post(URL, {"model": "m", "messages": [entry]})).messages[0]
    assert [block.raw for block in answer.message.blocks] == [block.raw for block in sent.blocks]

"""Gemini: contents, parts and usage, as events, as a JSON array, and whole."""

import json

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.gemini import Gemini, usage_of
from tests.support.wire import data_stream, post, whole

PROVIDER = Gemini()
URL = "https://x/v1beta/models/gemini-3-pro:"
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 150,
}


def piece(*parts, finish=None, usage=None):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    found = {"candidates": [{**candidate, "finishReason": finish} if finish else candidate], "responseId": "r1"}
    return {**found, "modelVersion": "gemini-3-pro"} | ({"usageMetadata": usage} if usage else {})


CALL = {"functionCall": {"name": "track", "args": {"id": 7}}, "thoughtSignature": "c2ln"}
RICH = (
    piece({"text": ""}),
    piece({"text": "Hm", "thought": True}),
    piece({"text": "Let me "}),
    piece({"text": "look."}, usage={"promptTokenCount": 100, "candidatesTokenCount": 9}),
    piece(CALL, finish="STOP", usage=USAGE),
)


def test_streamed_answer():
    answer = PROVIDER.answer(data_stream(*RICH, end=b""))
    assert [(block.kind, block.text) for block in answer.blocks] == [
        ("thinking", "Hm"),
        ("text", "Let me look."),
        ("tool_json", '{"id":7}'),
    ]
    found = answer.marks
    assert (found.first_event, found.first_token, found.first_output, found.first_text) == (0, 1, 2, 2)
    assert (answer.id, answer.stop_reason, answer.finished, answer.streamed) == ("r1", "STOP", True, True)


def test_json_array_streams_the_same_answer():
    elements = [json.dumps(each).encode() for each in RICH]
    array = Response(200, (), (b"[" + elements[0], *(b",\r\n" + each for each in elements[1:]), b"]"))
    assert PROVIDER.answer(array) == PROVIDER.answer(data_stream(*RICH, end=b""))


def test_whole_answer():
    answer = PROVIDER.answer(whole(piece({"text": "Lost."}, finish="STOP", usage=USAGE)))
    assert (answer.blocks[0].text, answer.streamed, answer.finished) == ("Lost.", False, True)


def test_thoughts_are_output_and_cached_tokens_are_context():
    usage = usage_of(USAGE)
    assert (usage.context, usage.prefill_work, usage.output, usage.thinking) == (100, 40, 50, 30)


def test_thoughts_inside_the_candidates_are_not_counted_twice():
    assert usage_of({**USAGE, "candidatesTokenCount": 50, "totalTokenCount": 150}).output == 50


def test_an_answer_of_thoughts_only_has_no_candidates():
    counted = {"promptTokenCount": 100, "thoughtsTokenCount": 30, "totalTokenCount": 130}
    assert usage_of(counted).output == 30


def test_results_of_server_side_tools_were_read_too():
    usage = usage_of({"promptTokenCount": 100, "toolUsePromptTokenCount": 40, "candidatesTokenCount": 5})
    assert (usage.context, usage.multi_pass) == (140, True)


def test_prompt():
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "Where?"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}],
            },
            {"role": "model", "parts": [CALL]},
            {"role": "user", "parts": [{"functionResponse": {"name": "track", "response": {"at": "depot"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "track"}, {"name": "refund"}]}, {"googleSearch": {}}],
        "generationConfig": {"temperature": 0},
    }
    request = post(URL + "streamGenerateContent?alt=sse", body)
    assert PROVIDER.recognises(request)
    found = PROVIDER.prompt(request)
    assert (found.model, found.streamed, found.params) == (
        "gemini-3-pro",
        True,
        {"generationConfig": '{"temperature":0}'},
    )
    assert [tool.name for tool in found.tools] == ["track", "refund", "googleSearch"]
    assert [block.text for block in found.blocks] == ["Be brief.", "Where?", "", '{"id":7}', '{"at":"depot"}']
    assert found.messages[0].blocks[1].media == b"\x89PNG"
    assert [message.role for message in found.messages] == ["user", "assistant", "user"]


def test_answer_is_the_history_of_the_next_request():
    parts = [{"text": "Let me look."}, CALL]
    answer = PROVIDER.answer(whole(piece(*parts, finish="STOP")))
    sent = PROVIDER.prompt(post(URL + "generateContent", {"contents": [{"role": "model", "parts": parts}]}))
    assert [block.raw for block in answer.message.blocks] == [block.raw for block in sent.messages[0].blocks]


def test_counting_tokens_is_no_model_call():
    assert not PROVIDER.recognises(post(URL + "countTokens", {"contents": []}))


def test_errors_and_refusals():
    failure = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}
    assert PROVIDER.answer(whole(failure, 429)).error == "RESOURCE_EXHAUSTED"
    assert PROVIDER.answer(whole([failure], 429)).error == "RESOURCE_EXHAUSTED"
    assert PROVIDER.answer(whole({"promptFeedback": {"blockReason": "SAFETY"}})).stop_reason == "SAFETY"


def test_tools_given_as_one_entry_instead_of_a_list():
    """Google takes it, and older clients send it."""
    body = {"contents": [], "tools": {"functionDeclarations": [{"name": "track"}]}}

    assert [tool.name for tool in PROVIDER.prompt(post(f"{URL}generateContent", body)).tools] == ["track"]

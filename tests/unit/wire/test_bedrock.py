"""Bedrock's Converse, as JSON and as an event stream."""

import json

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.bedrock import BedrockConverse
from tests.support.wire import bedrock_stream, binary_frame, post, whole

PROVIDER = BedrockConverse()
URL = "https://bedrock-runtime.**.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5%3A0/"
USAGE = {"inputTokens": 3, "outputTokens": 40, "totalTokens": 5_801, "cacheReadInputTokens": 5_758}
CALL = {"toolUseId": "t1", "name": "track", "input": {"id": 7}}
CONTENT = [
    {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
    {"text": "Look."},
    {"toolUse": CALL},
]
WHOLE = {
    "output": {"message": {"role": "assistant", "content": CONTENT}},
    "stopReason": "tool_use",
    "usage": USAGE,
    "metrics": {"latencyMs": 1250},
}


def delta(index, **value):
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": value}


RICH = (
    ("messageStart", {"role": "assistant"}),
    delta(0, reasoningContent={"text": "Hm"}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    delta(1, text=""),
    delta(1, text="Look."),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "track"}}}),
    delta(2, toolUse={"input": ""}),
    delta(2, toolUse={"input": '{"id": 7}'}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1250}}),
)


def test_streamed_and_whole_answers_say_the_same():
    streamed, one = PROVIDER.answer(bedrock_stream(*RICH)), PROVIDER.answer(whole(WHOLE))
    assert streamed.message == one.message
    assert (streamed.usage, streamed.stop_reason, streamed.server) == (one.usage, one.stop_reason, one.server)
    assert [json.loads(block.text) for block in (*streamed.blocks[2:], *one.blocks[2:])] == [{"id": 7}] * 2
    assert (streamed.streamed, one.streamed, streamed.finished, one.finished) == (True, False, True, True)


def test_first_tokens():
    found = PROVIDER.answer(bedrock_stream(*RICH)).marks
    assert (found.first_event, found.first_token, found.first_output, found.first_text, found.last_token) == (
        0,
        1,
        5,
        5,
        9,
    )


def test_b3_tool_name_is_the_first_token_of_a_turn_of_tools_only():
    found = PROVIDER.answer(bedrock_stream(RICH[0], *RICH[7:])).marks
    assert (found.first_token, found.first_text) == (1, None)


def test_input_leaves_out_what_the_cache_held():
    answer = PROVIDER.answer(whole(WHOLE))
    assert (answer.usage.context, answer.usage.prefill_work, answer.usage.output) == (5_761, 3, 40)
    assert (answer.server.total, answer.server.source) == (1_250_000_000, "metrics.latencyMs")


def test_exception_inside_a_stream():
    failure = binary_frame(
        {":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message": "x"}'
    )
    begun = bedrock_stream(*RICH[:6])
    answer = PROVIDER.answer(Response(200, begun.headers, (*begun.chunks, failure)))
    assert (answer.error, answer.finished, answer.blocks[1].text) == ("throttlingException", False, "Look.")


def test_error_response_names_its_type():
    response = whole({"message": "slow down"}, 429, x_amzn_errortype="ThrottlingException:http://internal")
    assert PROVIDER.answer(response).error == "ThrottlingException"


def test_prompt():
    body = {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "assistant", "content": CONTENT},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"json": {"a": 1}}]}}],
            },
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "track"}}, {"cachePoint": {"type": "default"}}],
            "toolChoice": {"auto": {}},
        },
        "inferenceConfig": {"maxTokens": 9},
    }
    request = post(URL + "converse-stream", body)
    assert PROVIDER.recognises(request)
    found = PROVIDER.prompt(request)
    assert (found.model, found.streamed) == ("eu.anthropic.claude-sonnet-4-5:0", True)
    assert [(tool.name, tool.cache_marked) for tool in found.tools] == [("track", True)]
    assert [(block.text, block.cache_marked) for block in found.system] == [("Be brief.", True)]
    assert found.params == {"inferenceConfig": '{"maxTokens":9}', "toolConfig.toolChoice": '{"auto":{}}'}
    result = found.messages[1].blocks[0]
    assert (result.kind, result.name, result.text, result.error) == ("tool_result", "track", '{"a":1}', True)


def test_answer_is_the_history_of_the_next_request():
    answer = PROVIDER.answer(bedrock_stream(*RICH))
    sent = PROVIDER.prompt(post(URL + "converse", {"messages": [{"role": "assistant", "content": CONTENT}]}))
    assert [block.raw for block in answer.message.blocks] == [block.raw for block in sent.messages[0].blocks]

"""OpenAI Responses: what requests ask and responses say, checked against the SDK's own reading of the same bytes."""

import openai

from pytest_agentlatency.wire.responses import OpenAIResponses
from tests.support.wire import Wire, post, typed_stream, whole

PROVIDER = OpenAIResponses()
URL = "https://api.openai.com/v1/responses"
USAGE = {
    "input_tokens": 2006,
    "input_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 0},
    "output_tokens": 300,
    "output_tokens_details": {"reasoning_tokens": 250},
    "total_tokens": 2306,
}
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": []}
TEXT = {"type": "output_text", "text": "Let me look.", "annotations": []}
SAID = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
CALL = {
    "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "track", "arguments": '{"id": 7}',
    "status": "completed",
}  # fmt: skip
WHOLE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": "completed",
    "output": [THOUGHT, SAID, CALL], "usage": USAGE, "error": None, "incomplete_details": None,
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "instructions": None, "metadata": {},
}  # fmt: skip
BEGUN = {**WHOLE, "status": "in_progress", "output": [], "usage": None}


def events(*found):
    return [{"sequence_number": number, **event} for number, event in enumerate(found)]


def item(kind, index, value):
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": value}


def delta(kind, index, text):
    at = {"output_index": index, "item_id": "x", "content_index": 0, "logprobs": []}
    return {"type": f"response.{kind}.delta", **at, "delta": text}


def part(index):
    at = {"output_index": index, "item_id": "msg_1", "content_index": 0}
    return {"type": "response.content_part.added", **at, "part": {**TEXT, "text": ""}}


RICH = events(
    {"type": "response.created", "response": BEGUN},
    {"type": "response.in_progress", "response": BEGUN},
    item("added", 0, THOUGHT),
    item("done", 0, THOUGHT),
    item("added", 1, {**SAID, "content": [], "status": "in_progress"}),
    part(1),
    delta("output_text", 1, "Let me "),
    delta("output_text", 1, "look."),
    item("done", 1, SAID),
    item("added", 2, {**CALL, "arguments": "", "status": "in_progress"}),
    delta("function_call_arguments", 2, '{"id"'),
    delta("function_call_arguments", 2, ": 7}"),
    item("done", 2, CALL),
    {"type": "response.completed", "response": WHOLE},
)


def sdk(*responses):
    wire = Wire(responses)
    return wire, openai.OpenAI(api_key="unused", http_client=wire.client, max_retries=0)


def test_streamed_answer_is_what_the_sdk_accumulates():
    response = typed_stream(*RICH)
    _, client = sdk(response)
    with client.responses.stream(model="gpt-5", input="Where is my parcel?") as stream:
        theirs = stream.get_final_response()
    ours = PROVIDER.answer(response)
    assert (ours.id, ours.model, ours.stop_reason) == (theirs.id, theirs.model, theirs.status)
    assert ours.usage.context == theirs.usage.input_tokens
    assert ours.usage.cache_read == theirs.usage.input_tokens_details.cached_tokens
    assert ours.usage.output == theirs.usage.output_tokens
    assert ours.usage.thinking == theirs.usage.output_tokens_details.reasoning_tokens
    _, text, call = ours.blocks
    assert text.text == theirs.output_text
    assert (call.kind, call.name, call.id) == ("tool_json", theirs.output[2].name, theirs.output[2].call_id)
    assert call.text == theirs.output[2].arguments
    assert (ours.streamed, ours.finished, ours.error, ours.unknown_events) == (True, True, "", ())


def test_answer_that_is_not_streamed_is_what_the_sdk_reads():
    response = whole(WHOLE)
    _, client = sdk(response)
    theirs = client.responses.create(model="gpt-5", input="Where is my parcel?")
    ours = PROVIDER.answer(response)
    assert (ours.id, ours.usage.context) == (theirs.id, theirs.usage.input_tokens)
    assert [block.text for block in ours.blocks] == ["", theirs.output_text, theirs.output[2].arguments]
    assert (ours.streamed, ours.finished, ours.marks.first_token) == (False, True, None)


def test_streamed_and_whole_answers_are_the_same_history():
    assert PROVIDER.answer(typed_stream(*RICH)).message == PROVIDER.answer(whole(WHOLE)).message


def test_answer_comes_back_in_the_next_request_as_it_left():
    wire, client = sdk(whole(WHOLE), whole(WHOLE))
    reply = client.responses.create(model="gpt-5", input="Where is my parcel?")
    result = {"type": "function_call_output", "call_id": "call_1", "output": "lost"}
    question = {"role": "user", "content": "Where is my parcel?"}
    client.responses.create(model="gpt-5", input=[question, *reply.output, result])
    asked, said, answered = PROVIDER.prompt(wire.requests[1]).messages
    assert [block.raw for block in said.blocks] == [block.raw for block in PROVIDER.answer(whole(WHOLE)).message.blocks]
    assert asked.blocks[0].raw == PROVIDER.prompt(wire.requests[0]).messages[0].blocks[0].raw
    assert (answered.role, answered.blocks[0].name, answered.blocks[0].text) == ("tool", "track", "lost")


def test_first_tokens_of_a_stream_with_hidden_reasoning():
    """The reasoning item's opening stands for the reasoning that is not shown; without it TTFT would hold it all."""
    found = PROVIDER.answer(typed_stream(*RICH)).marks
    assert (found.first_event, found.first_token, found.first_output, found.first_text) == (0, 2, 6, 6)
    assert (found.last_token, found.inferred) == (11, True)


def test_b3_tool_name_is_the_first_token_of_a_turn_of_tools_only():
    found = PROVIDER.answer(typed_stream(RICH[0], *RICH[9:])).marks
    assert (found.first_token, found.first_output, found.first_text, found.inferred) == (1, 1, None, False)


def test_b1_created_and_empty_deltas_are_no_token():
    found = PROVIDER.answer(typed_stream(*RICH[:2], RICH[4], RICH[5], delta("output_text", 1, ""))).marks
    assert (found.first_event, found.first_token) == (0, None)


def test_shown_reasoning_is_measured_and_not_inferred():
    shown = delta("reasoning_summary_text", 0, "Hm")
    found = PROVIDER.answer(typed_stream(*RICH[:3], shown, *RICH[3:])).marks
    assert (found.first_token, found.inferred, found.first_output) == (3, False, 7)


def test_chain_names_the_answer_that_it_continues():
    request = post(
        URL, {"model": "gpt-5", "input": "Go on.", "previous_response_id": "resp_1", "instructions": "Be brief."}
    )
    found = PROVIDER.prompt(request)
    assert found.previous_id == "resp_1"
    assert [(block.text, block.path) for block in found.system] == [("Be brief.", "instructions[0]")]
    assert [block.text for message in found.messages for block in message.blocks] == ["Go on."]


def test_server_side_search_makes_a_multi_pass_usage():
    searched = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    assert PROVIDER.answer(whole({**WHOLE, "output": [searched, SAID]})).usage.multi_pass
    assert not PROVIDER.answer(whole(WHOLE)).usage.multi_pass


def test_failed_and_cut_answers():
    failed = {**BEGUN, "status": "failed", "error": {"code": "server_error", "message": "x"}}
    answer = PROVIDER.answer(typed_stream(*RICH[:7], {"type": "response.failed", "response": failed}))
    assert (answer.error, answer.stop_reason, answer.finished) == ("server_error", "failed", True)
    short = {**WHOLE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert PROVIDER.answer(whole(short)).stop_reason == "max_output_tokens"
    cut = PROVIDER.answer(typed_stream(*RICH[:7]))
    assert (cut.finished, cut.stop_reason, cut.blocks[1].text) == (False, "", "Let me ")


def test_b17_unknown_event_is_kept_and_moves_nothing():
    odd = {"type": "response.hologram.delta", "delta": "x"}
    answer = PROVIDER.answer(typed_stream(*RICH[:2], odd, *RICH[2:]))
    assert answer.unknown_events == ("response.hologram.delta",)
    assert answer.marks.first_token == 3

"""Chat completions: what requests ask and responses say, checked against the SDK's own reading of the same bytes."""

import base64
import json

import openai
import pytest

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.openai import OpenAIChat, usage_of
from tests.support.wire import EVENT_STREAM, Wire, data_stream, post, whole

PROVIDER = OpenAIChat()
URL = "https://api.openai.com/v1/chat/completions"
ASK = {"model": "gpt-5", "messages": [{"role": "user", "content": "Where is my parcel?"}]}
USAGE = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "total_tokens": 2306,
    "prompt_tokens_details": {"cached_tokens": 1920},
    "completion_tokens_details": {"reasoning_tokens": 250},
}


def chunk(delta=None, *, finish=None, index=0, **more):
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": choices, **more}


def call(index, name=None, id_=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found = {"index": index, "function": function}
    return {"tool_calls": [{**found, "id": id_, "type": "function"} if id_ else found]}


RICH = (
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Let me "}),
    chunk({"content": "look."}),
    chunk(call(0, "track", "call_1", "")),
    chunk(call(0, arguments='{"id"')),
    chunk(call(0, arguments=": 7}")),
    chunk(call(1, "track", "call_2", "")),
    chunk(call(1, arguments='{"id": 8}')),
    chunk({}, finish="tool_calls"),
    chunk(usage=USAGE),
)


def sdk(*responses):
    wire = Wire(responses)
    return wire, openai.OpenAI(api_key="unused", http_client=wire.client, max_retries=0)


def test_streamed_answer_is_what_the_sdk_accumulates():
    response = data_stream(*RICH)
    _, client = sdk(response)
    with client.chat.completions.stream(**ASK, stream_options={"include_usage": True}) as stream:
        theirs = stream.get_final_completion()
    ours = PROVIDER.answer(response)
    (choice,) = theirs.choices
    assert (ours.id, ours.model, ours.stop_reason) == (theirs.id, theirs.model, choice.finish_reason)
    assert ours.usage.context == theirs.usage.prompt_tokens
    assert ours.usage.cache_read == theirs.usage.prompt_tokens_details.cached_tokens
    assert ours.usage.output == theirs.usage.completion_tokens
    assert ours.usage.thinking == theirs.usage.completion_tokens_details.reasoning_tokens
    text, *calls = ours.blocks
    assert text.text == choice.message.content
    assert [(each.id, each.name, each.text) for each in calls] == [
        (each.id, each.function.name, each.function.arguments) for each in choice.message.tool_calls
    ]
    assert (ours.streamed, ours.finished, ours.error, ours.unknown_events) == (True, True, "", ())


def test_answer_that_is_not_streamed_is_what_the_sdk_reads():
    function = {"name": "track", "arguments": '{"id": 7}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    response = whole({"id": "c2", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE})
    _, client = sdk(response)
    theirs = client.chat.completions.create(**ASK)
    ours = PROVIDER.answer(response)
    assert (ours.id, ours.stop_reason) == (theirs.id, theirs.choices[0].finish_reason)
    assert ours.blocks[0].text == theirs.choices[0].message.tool_calls[0].function.arguments
    assert (ours.streamed, ours.finished, ours.marks.first_token) == (False, True, None)


def test_answer_comes_back_in_the_next_request_as_it_left():
    answer = PROVIDER.answer(data_stream(*RICH))
    wire, client = sdk(data_stream(*RICH), data_stream(*RICH))
    with client.chat.completions.stream(**ASK) as stream:
        reply = stream.get_final_completion().choices[0].message
    with client.chat.completions.stream(**{**ASK, "messages": [*ASK["messages"], reply]}) as stream:
        stream.until_done()
    sent = PROVIDER.prompt(wire.requests[1]).messages[1]
    assert [block.raw for block in sent.blocks] == [block.raw for block in answer.message.blocks]


# First tokens; each event is one chunk


def marks(*chunks):
    return PROVIDER.answer(data_stream(*chunks)).marks


def test_b1_role_prelude_is_no_token():
    found = marks(*RICH)
    assert (found.first_event, found.first_token, found.first_text, found.last_token) == (0, 1, 1, 7)


def test_b3_tool_name_is_the_first_token_of_a_turn_of_tools_only():
    found = marks(RICH[0], *RICH[3:])
    assert (found.first_token, found.first_output, found.first_text) == (1, 1, None)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_b2_reasoning_counts_as_token_but_not_as_output(key):
    found = marks(RICH[0], chunk({key: "Hm"}), chunk({"content": "Lost."}))
    assert (found.first_token, found.first_output, found.first_text) == (1, 2, 2)


def test_reasoning_as_content_parts():
    """Mistral's magistral models put thinking into the content."""
    thought = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}
    answer = PROVIDER.answer(data_stream(chunk(thought), chunk({"content": "Lost."})))
    assert [(block.kind, block.text) for block in answer.blocks] == [("thinking", "Hm"), ("text", "Lost.")]


def test_keep_alive_comment_is_no_event():
    response = data_stream(*RICH)
    waiting = Response(200, EVENT_STREAM, (b": OPENROUTER PROCESSING\n\n", *response.chunks))
    assert PROVIDER.answer(waiting).marks.first_event == 1


# Usage: what each host writes, and what it means


@pytest.mark.parametrize(
    ("host", "reported", "context", "work", "output"),
    [
        ("C1 OpenAI", USAGE, 2006, 86, 300),
        ("no cache", {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, 10, 10, 2),
        (
            "C16 DeepSeek",
            {
                "prompt_tokens": 100,
                "prompt_cache_hit_tokens": 60,
                "prompt_cache_miss_tokens": 40,
                "completion_tokens": 5,
            },
            100,
            40,
            5,
        ),
        (
            "cache outside the prompt, no total",
            {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9_000}},
            9_007,
            7,
            5,
        ),
        (
            "cache outside the prompt, total tells",
            {
                "prompt_tokens": 7,
                "completion_tokens": 5,
                "total_tokens": 9_012,
                "prompt_tokens_details": {"cached_tokens": 9_000},
            },
            9_007,
            7,
            5,
        ),
        (
            "the total knows more input than prompt and cache",
            {
                "prompt_tokens": 7,
                "completion_tokens": 5,
                "total_tokens": 9_505,
                "prompt_tokens_details": {"cached_tokens": 9_000},
            },
            9_500,
            500,
            5,
        ),
        (
            "a small cache outside the prompt is seen by the total",
            {
                "prompt_tokens": 70,
                "completion_tokens": 5,
                "total_tokens": 95,
                "prompt_tokens_details": {"cached_tokens": 20},
            },
            90,
            70,
            5,
        ),
        (
            "reasoning outside the completion",
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 335,
                "completion_tokens_details": {"reasoning_tokens": 294},
            },
            32,
            32,
            303,
        ),
        (
            "both outside",
            {
                "prompt_tokens": 32,
                "completion_tokens": 300,
                "total_tokens": 432,
                "prompt_tokens_details": {"cached_tokens": 20},
                "completion_tokens_details": {"reasoning_tokens": 80},
            },
            52,
            32,
            380,
        ),
        (
            "writes are work",
            {
                "prompt_tokens": 3_000,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 1_000, "cache_write_tokens": 500},
            },
            3_000,
            2_000,
            1,
        ),
    ],
)
def test_usage_by_host(host, reported, context, work, output):
    usage = usage_of(reported)
    assert (usage.context, usage.prefill_work, usage.output) == (context, work, output)


def test_llama_cpp_says_what_it_cached_beside_the_usage():
    timings = {"cache_n": 700, "prompt_n": 60, "prompt_ms": 310.5, "predicted_n": 5, "predicted_ms": 99.25}
    last = chunk(usage={"prompt_tokens": 760, "completion_tokens": 5, "total_tokens": 765}, timings=timings)
    answer = PROVIDER.answer(data_stream(RICH[1], last))
    assert (answer.usage.context, answer.usage.prefill_work) == (760, 60)
    assert (answer.server.prefill, answer.server.decode) == (310_500_000, 99_250_000)


def test_usage_in_several_chunks_is_cumulative():
    answer = PROVIDER.answer(
        data_stream(
            chunk({"content": "a"}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
            chunk({"content": "b"}, usage={"prompt_tokens": 9, "completion_tokens": 2}),
        )
    )
    assert (answer.usage.context, answer.usage.output) == (9, 2)


def test_groq_puts_usage_and_times_aside():
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "queue_time": 0.25, "prompt_time": 0.5, "completion_time": 1.5}
    answer = PROVIDER.answer(data_stream(RICH[1], chunk({}, finish="stop", x_groq={"usage": usage})))
    assert answer.usage.context == 9
    server = answer.server
    assert (server.queue, server.prefill, server.decode) == (250_000_000, 500_000_000, 1_500_000_000)
    assert server.source == "usage.prompt_time"


def test_stream_without_usage_says_so():
    assert PROVIDER.answer(data_stream(*RICH[:-1])).usage.context is None


# Ends and errors


def test_stream_without_done_ends_with_its_reason_to_stop():
    assert PROVIDER.answer(data_stream(*RICH, end=b"")).finished
    assert not PROVIDER.answer(data_stream(*RICH[:4], end=b"")).finished


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "server_error", "message": "x"}, "server_error"),
        ({"code": 502, "message": "Provider disconnected"}, "502"),
        ("it broke", "error"),
    ],
)
def test_error_inside_a_stream_of_status_200(error, kind):
    answer = PROVIDER.answer(data_stream(*RICH[:3], {"error": error}, end=b""))
    assert (answer.error, answer.finished, answer.blocks[0].text) == (kind, False, "Let me look.")


def test_several_choices_stay_apart_and_the_first_is_the_history():
    answer = PROVIDER.answer(
        data_stream(chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk({"content": "c"}))
    )
    assert [block.text for block in answer.blocks] == ["ac", "b"]
    assert [block.text for block in answer.message.blocks] == ["ac"]


# Prompts


def prompt(*messages, **body):
    return PROVIDER.prompt(post(URL, {"model": "gpt-5", "messages": list(messages), **body}))


def test_system_messages_at_the_head_are_the_system_prompt():
    found = prompt(
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Later."},
    )
    assert [(block.text, block.path) for block in found.system] == [("Be brief.", "messages[0].content[0]")]
    assert [(message.role, message.path) for message in found.messages] == [
        ("user", "messages[1]"),
        ("system", "messages[2]"),
    ]


def test_tools_results_and_parameters():
    asked = {"id": "c", "type": "function", "function": {"name": "track", "arguments": '{"id": 7}'}}
    found = prompt(
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": "lost"},
        tools=[{"type": "function", "function": {"name": "track", "parameters": {}}}],
        temperature=0,
        stream=True,
    )
    assert [tool.name for tool in found.tools] == ["track"]
    (call_block,), (result,) = (message.blocks for message in found.messages)
    assert (call_block.kind, call_block.name, call_block.text) == ("tool_use", "track", '{"id": 7}')
    assert (result.kind, result.name, result.id, result.text) == ("tool_result", "track", "c", "lost")
    assert (found.params, found.streamed) == ({"temperature": "0"}, True)


def test_images_and_unknown_parts():
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + bytes(500)).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "hologram", "depth": 3}]
    image, unknown = prompt({"role": "user", "content": parts}).messages[0].blocks
    assert (image.kind, image.text, image.media[:4]) == ("image", "", b"\x89PNG")
    assert unknown.text == json.dumps(parts[1], separators=(",", ":"), sort_keys=True)


def test_breakpoint_of_a_part_is_no_part_of_it():
    part = {"type": "text", "text": "x"}
    for marker in ({"cache_control": {"type": "ephemeral"}}, {"prompt_cache_breakpoint": {"ttl": "30m"}}):
        plain, marked = prompt({"role": "user", "content": [part, {**part, **marker}]}).messages[0].blocks
        assert (plain.cache_marked, marked.cache_marked, plain.raw) == (False, True, marked.raw)


def test_azure_names_the_deployment_in_the_path():
    request = post("https://x/openai/deployments/my-gpt/chat/completions?api-version=1", {"messages": []})
    assert PROVIDER.recognises(request)
    assert PROVIDER.prompt(request).model == "my-gpt"

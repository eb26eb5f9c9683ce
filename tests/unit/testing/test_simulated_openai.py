"""The simulated model through the real openai SDK."""

import openai
import pytest

from pytest_agentlatency.testing import CostModel, Refuse, Reply, SimulatedModel, ToolUse

ASK = {"model": "gpt-simulated", "messages": [{"role": "user", "content": "Where is it?"}]}
CALLING = Reply("Look.", tool_calls=[ToolUse("search", {"q": "a"}), ToolUse("count")])


def client_of(model):
    return openai.OpenAI(base_url=model.openai_url, api_key="x", max_retries=0)


def test_a_plain_call_gives_the_reply_and_inclusive_usage():
    with SimulatedModel(Reply("Here."), costs=CostModel(cache="prefix")) as model, client_of(model) as client:
        answers = [client.chat.completions.create(**ASK) for _ in range(2)]
    assert answers[0].choices[0].message.content == "Here."
    assert answers[0].choices[0].finish_reason == "stop"
    usages = [answer.usage for answer in answers]
    assert [(use.prompt_tokens, use.prompt_tokens_details.cached_tokens) for use in usages] == [(3, 0), (3, 2)]
    assert usages[0].completion_tokens == 2


def test_a_stream_builds_text_and_parallel_calls():
    with SimulatedModel(CALLING) as model, client_of(model) as client:
        chunks = list(client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True}))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Look."
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert [call.function.name for call in calls if call.function.name] == ["search", "count"]
    arguments = ["".join(call.function.arguments for call in calls if call.index == index) for index in (0, 1)]
    assert arguments == ['{"q":"a"}', "{}"]
    assert chunks[-1].usage.completion_tokens == CALLING.output_tokens


def test_usage_is_streamed_only_when_asked_for():
    with SimulatedModel(Reply("Here.")) as model, client_of(model) as client:
        chunks = list(client.chat.completions.create(**ASK, stream=True))
    assert all(chunk.usage is None for chunk in chunks)


def test_reasoning_is_counted_and_streamed_apart():
    with SimulatedModel(Reply("Here.", thinking="x" * 40)) as model, client_of(model) as client:
        answer = client.chat.completions.create(**ASK)
    assert answer.usage.completion_tokens_details.reasoning_tokens == 10
    assert answer.choices[0].message.reasoning_content == "x" * 40


def test_server_times_are_reported_as_llama_cpp_does():
    costs = CostModel(prefill=1_000_000, decode=500_000)
    with SimulatedModel(Reply("12345678"), costs=costs, report_times=True) as model, client_of(model) as client:
        timings = client.chat.completions.create(**ASK).timings
    assert timings == {"cache_n": 0, "prompt_n": 3, "prompt_ms": 3.0, "predicted_n": 2, "predicted_ms": 0.5}


def test_an_overloaded_model_is_a_rate_limit_to_the_sdk():
    with (
        SimulatedModel(faults={1: Refuse(429)}) as model,
        client_of(model) as client,
        pytest.raises(openai.RateLimitError),
    ):
        client.chat.completions.create(**ASK)


@pytest.mark.asyncio
async def test_the_async_client_streams_too():
    with SimulatedModel(Reply("Here it is.")) as model:
        async with openai.AsyncOpenAI(base_url=model.openai_url, api_key="x", max_retries=0) as client:
            chunks = [chunk async for chunk in await client.chat.completions.create(**ASK, stream=True)]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Here it is."

"""The simulated model through the real anthropic SDK."""

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

from pytest_agentlatency.testing import CostModel, InputTokens, Reply, SimulatedModel, ToolUse, by_lane
from tests.support.agents import THREADS, with_threads

ASK = {"model": "claude-simulated", "max_tokens": 500, "messages": [{"role": "user", "content": "Where is it?"}]}
SEARCHING = Reply("Let me look.", thinking="A parcel...", tool_calls=[ToolUse("search", {"query": "parcel"})])
FOUND = Reply("It is on its way.")


@pytest.fixture
def connect():
    """Clients of a model, closed at the end."""
    clients = []

    def client(model, kind=Anthropic):
        clients.append(kind(base_url=model.url, api_key="x", max_retries=0))
        return clients[-1]

    yield client
    for each in clients:
        if isinstance(each, Anthropic):
            each.close()


def search_tool():
    @beta_tool
    def search(query: str) -> str:
        """Search the parcels."""
        return f"found {query}"

    return search


def test_a_plain_call_gives_the_reply_and_its_usage(connect):
    with SimulatedModel(FOUND) as model:
        message = connect(model).messages.create(**ASK, system="Be brief.")
    assert message.content[0].text == "It is on its way."
    # system 9 bytes -> 3 tokens, question 12 bytes -> 3; answer 17 bytes -> 5
    assert (message.usage.input_tokens, message.usage.output_tokens, message.stop_reason) == (6, 5, "end_turn")


def test_a_stream_carries_thinking_text_and_calls_whole(connect):
    with SimulatedModel(SEARCHING) as model, connect(model).messages.stream(**ASK) as stream:
        message = stream.get_final_message()
    thinking, text, call = message.content
    assert (thinking.thinking, text.text) == ("A parcel...", "Let me look.")
    assert (call.name, call.input, message.stop_reason) == ("search", {"query": "parcel"}, "tool_use")
    assert message.usage.output_tokens == SEARCHING.output_tokens
    assert message.usage.output_tokens_details.thinking_tokens == 3


def test_raw_events_come_in_the_providers_order(connect):
    with SimulatedModel(SEARCHING, tokens_per_event=99) as model:
        events = list(connect(model).messages.create(**ASK, stream=True))
    kinds = [event.type.removeprefix("content_") for event in events]
    assert kinds == [
        "message_start",
        *[
            "block_start",
            "block_delta",
            "block_delta",
            "block_delta",
            "block_stop",
        ],  # thinking: 1 + 2 tokens, signature
        *["block_start", "block_delta", "block_stop"],
        *["block_start", "block_delta", "block_delta", "block_stop"],  # arguments: an empty delta first
        "message_delta",
        "message_stop",
    ]
    assert events[10].delta.partial_json == ""


def test_hidden_thinking_is_counted_and_shows_only_its_signature(connect):
    reply = Reply("Yes.", thinking="x" * 400, hide_thinking=True)
    with SimulatedModel(reply) as model:
        events = list(connect(model).messages.create(**ASK, stream=True))
    deltas = [event.delta.type for event in events if event.type == "content_block_delta"]
    assert deltas == ["signature_delta", "text_delta"]
    assert events[-2].usage.output_tokens == 101


def test_an_empty_answer_is_a_complete_message_without_content(connect):
    with SimulatedModel(Reply()) as model, connect(model).messages.stream(**ASK) as stream:
        message = stream.get_final_message()
    assert (message.content, message.stop_reason, message.usage.output_tokens) == ([], "end_turn", 0)


async def run_async(model, stream, tool):
    async with AsyncAnthropic(base_url=model.url, api_key="x", max_retries=0) as client:
        runner = client.beta.messages.tool_runner(**ASK, tools=[tool], stream=stream)
        return [await item.get_final_message() if stream else item async for item in runner]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.asyncio
async def test_the_async_tool_runner_works_as_it_comes(stream):
    @beta_async_tool
    async def search(query: str) -> str:
        """Search the parcels."""
        return f"found {query}"

    with SimulatedModel([SEARCHING, FOUND]) as model:
        messages = await run_async(model, stream, search)
    assert [message.stop_reason for message in messages] == ["tool_use", "end_turn"]
    assert (b'"previous_message_id":"msg_sim_0001"' in model.requests[1].body) == THREADS


@pytest.mark.parametrize("stream", [False, True])
def test_the_tool_runner_works_as_it_comes(connect, stream):
    with SimulatedModel([SEARCHING, FOUND]) as model:
        runner = connect(model).beta.messages.tool_runner(**ASK, tools=[search_tool()], stream=stream)
        last = [item.get_final_message() if stream else item for item in runner][-1]
    assert last.content[0].text == "It is on its way."
    assert (b"Where is it?" not in model.requests[1].body) == THREADS


@with_threads
def test_a_thread_counts_the_history_that_the_server_holds(connect):
    with SimulatedModel([SEARCHING, FOUND] * 2) as model:
        client = connect(model)
        for thread in ({}, {"thread": False}):
            client.beta.messages.tool_runner(**ASK, tools=[search_tool()], **thread).until_done()
    threaded, whole = model.served[1], model.served[3]
    assert threaded.tokens == whole.tokens
    assert len(model.requests[1].body) < len(model.requests[3].body)


@with_threads
def test_a_thread_that_the_server_lost_is_told_so_and_the_sdk_starts_anew(connect):
    with SimulatedModel([SEARCHING, FOUND, FOUND]) as first, SimulatedModel(FOUND) as second:
        thread = connect(first).beta.messages.thread(model="claude-simulated", max_tokens=500)
        thread.send({"role": "user", "content": "Hello"})
        thread._client = connect(second)
        thread.send({"role": "user", "content": "Again"})
    assert [b'"type":"create"' in request.body for request in second.requests] == [False, True]


@with_threads
def test_an_answer_can_be_continued_once(connect):
    with SimulatedModel(FOUND) as model:
        messages = connect(model).beta.messages
        threads = {"betas": ["message-threads-2026-08-12"]}
        answer = messages.create(**ASK, **threads, thread={"type": "create"})
        follow = {"type": "continue", "previous_message_id": answer.id}
        messages.create(**ASK, **threads, thread=follow)
        with pytest.raises(anthropic.BadRequestError) as refused:
            messages.create(**ASK, **threads, thread=follow)
    assert refused.value.error_code == "thread_already_continued"


def test_counting_tokens_is_the_same_count_as_usage(connect):
    with SimulatedModel(FOUND) as model:
        client = connect(model)
        counted = client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])
        used = client.messages.create(**ASK).usage
    assert counted.input_tokens == used.input_tokens == 3


def test_cache_markers_show_in_usage_which_adds_up(connect):
    system = [{"type": "text", "text": "x" * 4000, "cache_control": {"type": "ephemeral"}}]
    with SimulatedModel(FOUND, costs=CostModel(cache="markers")) as model:
        client = connect(model)
        usages = [client.messages.create(**ASK, system=system).usage for _ in range(2)]
    sums = [(use.input_tokens, use.cache_creation_input_tokens, use.cache_read_input_tokens) for use in usages]
    assert sums == [(3, 1000, 0), (3, 0, 1000)]


def test_an_automatic_cache_reads_what_the_conversation_had_before(connect):
    history = [*ASK["messages"], {"role": "assistant", "content": "Where was it?"}, {"role": "user", "content": "Home"}]
    with SimulatedModel(FOUND, costs=CostModel(cache="prefix")) as model:
        client = connect(model)
        client.messages.create(**ASK)
        client.messages.create(**ASK | {"messages": history})
    assert [served.tokens for served in model.served] == [InputTokens(3), InputTokens(uncached=4 + 1, read=3)]


def test_lanes_get_their_own_answers_by_system_prompt(connect):
    script = by_lane({"planner": [Reply("plan")], "critic": [Reply("no")]})
    with SimulatedModel(script) as model:
        client = connect(model)
        texts = [client.messages.create(**ASK, system=f"the {who}").content[0].text for who in ("critic", "planner")]
    assert texts == ["no", "plan"]


def test_a_used_up_script_is_refused_with_its_reason_and_not_retried():
    with (
        SimulatedModel([]) as model,
        Anthropic(base_url=model.url, api_key="x", max_retries=5) as client,
        pytest.raises(anthropic.BadRequestError, match="the script holds 0"),
    ):
        client.messages.create(**ASK)
    assert len(model.requests) == 1


def test_a_model_that_was_not_entered_says_how_to():
    with pytest.raises(RuntimeError, match="with SimulatedModel"):
        _ = SimulatedModel().url


def test_an_unknown_path_is_a_404_that_names_it(connect):
    with SimulatedModel() as model, pytest.raises(anthropic.NotFoundError, match="no GET /v1/models"):
        connect(model).models.list()


def test_a_script_may_answer_what_was_asked(connect):
    with SimulatedModel(lambda asked: Reply(f"turn {asked.turn} of {asked.model}")) as model:
        assert connect(model).messages.create(**ASK).content[0].text == "turn 1 of claude-simulated"

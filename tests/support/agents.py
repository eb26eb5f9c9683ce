"""Small agents on the real Anthropic SDK, and scripts of the simulated model that keep them busy."""

import anthropic
import httpx
import httpx2
import pytest

from pytest_agentlatency.testing import Asked, Reply, ToolUse

HTTP = httpx2 if issubclass(anthropic.DefaultHttpxClient, httpx2.Client) else httpx
"""The HTTP library that the installed SDK sends through: httpx in its major 0, httpx2 in 2."""
THREADS = getattr(anthropic.Anthropic, "_supports_message_threads", False)
"""Whether its tool runner leaves the history on the server."""
with_threads = pytest.mark.skipif(not THREADS, reason="this anthropic SDK has no message threads; 2.14 has")
TOOLS = [
    {
        "name": "search",
        "description": "Search.",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    }
]


def searches(turns: int):
    """A script: `turns - 1` searches, then an answer."""

    def script(asked: Asked) -> Reply:
        if asked.turn < turns:
            return Reply("Looking.", tool_calls=[ToolUse("search", {"query": f"parcel {asked.turn}"})])
        return Reply("It was found.")

    return script


def answered(message) -> dict:
    return {"role": "assistant", "content": [block.to_dict() for block in message.content]}


def results(message, result: str) -> dict:
    calls = [block for block in message.content if block.type == "tool_use"]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": result} for call in calls],
    }


def ask(client, messages, *, system="You are an agent.", model="claude-sim"):
    with client.messages.stream(model=model, max_tokens=200, system=system, tools=TOOLS, messages=messages) as stream:
        return stream.get_final_message()


def loop(url: str, *, system="You are an agent.", result="found it", question="Where is it?", **client) -> str:
    """A loop written by hand, streamed."""
    with anthropic.Anthropic(base_url=url, api_key="not-a-key", **client) as agent:
        messages = [{"role": "user", "content": question}]
        while True:
            message = ask(agent, messages, system=system)
            if message.stop_reason != "tool_use":
                return message.content[-1].text
            messages += [answered(message), results(message, result)]


async def loop_async(url: str, *, system="You are an agent.", result="found it", question="Where is it?") -> str:
    """The same loop, async."""
    async with anthropic.AsyncAnthropic(base_url=url, api_key="not-a-key") as agent:
        messages = [{"role": "user", "content": question}]
        while True:
            async with agent.messages.stream(
                model="claude-sim", max_tokens=200, system=system, tools=TOOLS, messages=messages
            ) as stream:
                message = await stream.get_final_message()
            if message.stop_reason != "tool_use":
                return message.content[-1].text
            messages += [answered(message), results(message, result)]

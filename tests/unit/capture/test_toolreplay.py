"""Tools that are given their recorded results in a replay, so that what they return can't make the run drift."""

import asyncio
import itertools
import json

import anthropic
import openai
import pytest
from anthropic import beta_async_tool, beta_tool

from pytest_agentlatency import tool
from pytest_agentlatency.agent_run import AgentRun
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import Asked, Reply, SimulatedModel, ToolUse
from tests.support.agents import TOOLS, answered, ask, searches
from tests.support.sessions import PLAN, record, replaying


class Clock:
    """A tool's inside whose result is another at each run."""

    def __init__(self):
        self.times = itertools.count(1)
        self.runs = 0

    def read(self):
        self.runs += 1
        return f"it is {next(self.times)}"


def loop(url, search, *, lanes=None):
    """A hand-written agent; `search` is its only tool."""
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        messages = [{"role": "user", "content": "go"}]
        while True:
            message = ask(client, messages)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return message.content[-1].text
            given = [{"type": "tool_result", "tool_use_id": call.id, "content": search(**call.input)} for call in calls]
            messages += [answered(message), {"role": "user", "content": given}]


def recorded(agent, *arguments, script=None):
    with SimulatedModel(script or searches(4)) as model:
        session, document = record(agent, model.url, *arguments)
    return model.url, session, document


def clocked(clock):
    @tool
    def search(query: str) -> str:
        return clock.read()

    return search


def test_a_tool_that_returns_the_time_does_not_drift_the_run():
    """Field note A13."""
    clock = Clock()
    url, _, document = recorded(loop, clocked(clock))
    assert clock.runs == 3
    with replaying(document, replay_tools=True) as session:
        loop(url, clocked(clock))
    assert clock.runs == 3
    assert session.verdicts == {Verdict.IDENTICAL: 4, Verdict.DRIFTED: 0, Verdict.UNMATCHED: 0}
    assert not session.problems()
    assert session.notes == ()


def test_without_the_switch_it_runs_and_drifts():
    clock = Clock()
    url, _, document = recorded(loop, clocked(clock))
    with replaying(document) as session:
        loop(url, clocked(clock))
    assert clock.runs == 6
    assert session.verdicts[Verdict.DRIFTED] == 3


def test_tools_of_the_sdks_runner_are_given_their_results():
    clock = Clock()

    @beta_tool
    def search(query: str) -> str:
        """Search."""
        return clock.read()

    def agent(url):
        with anthropic.Anthropic(base_url=url, api_key="x") as client:
            client.beta.messages.tool_runner(
                model="m", max_tokens=200, tools=[search], messages=[{"role": "user", "content": "go"}]
            ).until_done()

    url, _, document = recorded(agent)
    with replaying(document, replay_tools=True) as session:
        agent(url)
    assert clock.runs == 3
    assert session.verdicts[Verdict.IDENTICAL] == 4
    assert [each.name for each in session.told().run.tools] == ["search"] * 3


def test_the_async_runner_too():
    clock = Clock()

    @beta_async_tool
    async def search(query: str) -> str:
        """Search."""
        return clock.read()

    async def agent(url):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
            await client.beta.messages.tool_runner(
                model="m", max_tokens=200, tools=[search], messages=[{"role": "user", "content": "go"}]
            ).until_done()

    url, _, document = recorded(lambda url: asyncio.run(agent(url)))
    with replaying(document, replay_tools=True) as session:
        asyncio.run(agent(url))
    assert clock.runs == 3
    assert session.verdicts[Verdict.IDENTICAL] == 4


def test_a_tool_of_the_runner_that_failed_fails_again_with_the_recorded_words():
    failing = itertools.count(1)

    @beta_tool
    def search(query: str) -> str:
        """Search."""
        msg = f"failure {next(failing)}"
        raise RuntimeError(msg)

    def agent(url):
        with anthropic.Anthropic(base_url=url, api_key="x") as client:
            client.beta.messages.tool_runner(
                model="m", max_tokens=200, tools=[search], messages=[{"role": "user", "content": "go"}]
            ).until_done()

    url, _, document = recorded(agent)
    with replaying(document, replay_tools=True) as session:
        agent(url)
    assert session.verdicts[Verdict.IDENTICAL] == 4
    assert next(failing) == 4


def test_concurrent_agents_are_given_their_own_results():
    """Both ask for the same thing at the same time, and were told different things."""

    async def agent(url, name, search):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
            messages = [{"role": "user", "content": "go"}]
            while True:
                message = await client.messages.create(
                    model="m", max_tokens=99, system=f"You are {name}.", tools=TOOLS, messages=messages
                )
                calls = [block for block in message.content if block.type == "tool_use"]
                if not calls:
                    return
                given = [
                    {"type": "tool_result", "tool_use_id": call.id, "content": await search(**call.input)}
                    for call in calls
                ]
                messages += [answered(message), {"role": "user", "content": given}]

    clock = Clock()

    @tool
    async def search(query: str) -> str:
        await asyncio.sleep(0)
        return clock.read()

    async def both(url):
        await asyncio.gather(*(agent(url, name, search) for name in ("one", "two", "three")))

    url, _, document = recorded(lambda url: asyncio.run(both(url)))
    for _ in range(5):
        with replaying(document, replay_tools=True) as session:
            asyncio.run(both(url))
        assert session.verdicts[Verdict.IDENTICAL] == 12
    assert clock.runs == 9


def test_parallel_calls_of_one_answer_are_told_apart_by_their_arguments():
    def script(asked: Asked) -> Reply:
        wanted = [ToolUse("search", {"query": name}) for name in ("a", "b", "c")]
        return Reply(tool_calls=wanted) if asked.turn == 1 else Reply("Done.")

    def backwards(url, search):
        with anthropic.Anthropic(base_url=url, api_key="x") as client:
            messages = [{"role": "user", "content": "go"}]
            message = ask(client, messages)
            given = {call.id: search(**call.input) for call in reversed(message.content)}
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": given[call.id]} for call in message.content
            ]
            ask(client, [*messages, answered(message), {"role": "user", "content": results}])

    clock = Clock()
    url, _, document = recorded(backwards, clocked(clock), script=script)
    with replaying(document, replay_tools=True) as session:
        backwards(url, clocked(clock))
    assert clock.runs == 3
    assert session.verdicts[Verdict.IDENTICAL] == 2


def test_a_function_that_returns_an_object_is_given_one():
    clock = Clock()

    @tool
    def search(query: str) -> dict[str, str]:
        return {"said": clock.read()}

    def agent(url):
        return loop(url, lambda query: json.dumps(search(query)))

    url, _, document = recorded(agent)
    with replaying(document, replay_tools=True) as session:
        agent(url)
    assert clock.runs == 3
    assert session.verdicts[Verdict.IDENTICAL] == 4


def test_a_result_that_the_function_could_not_have_returned_makes_it_run():
    clock = Clock()

    @tool
    def search(query: str) -> Clock:
        clock.read()
        return clock

    def agent(url):
        return loop(url, lambda query: f"{type(search(query)).__name__}")

    url, _, document = recorded(agent)
    with replaying(document, replay_tools=True) as session:
        agent(url)
    assert clock.runs == 6
    assert len(session.notes) == 1
    assert "annotate it" in session.notes[0]


def test_a_call_of_a_tool_that_the_recorded_run_did_not_make_is_run_with_a_note():
    clock = Clock()
    url, _, document = recorded(loop, clocked(clock))
    with replaying(document, replay_tools=True) as session:
        loop(url, clocked(clock))
        clocked(clock)("one more")
    assert clock.runs == 4
    assert session.notes == ("tool 'search' ran: the cassette holds no result for this call of it",)


def test_a_with_block_runs_and_says_that_a_function_would_not():
    clock = Clock()

    def recording(url, run):
        def search(query):
            with run.tool("search"):
                return clock.read()

        loop(url, search)

    with SimulatedModel(searches(2)) as model:
        _, document = record(loop, model.url, lambda query: query)
    with replaying(document, replay_tools=True) as session:
        recording(model.url, AgentRun(session))
    assert clock.runs == 1
    assert "with-block" in session.notes[0]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_fixtures_tool_decorates_functions(asynchronous):
    clock = Clock()

    def decorated(run):
        if asynchronous:

            @run.tool("search")
            async def search(query: str) -> str:
                return clock.read()

            return lambda query: asyncio.run(search(query))

        @run.tool("search")
        def search(query: str) -> str:
            return clock.read()

        return search

    with SimulatedModel(searches(3)) as model:
        with Session(PLAN) as session:
            loop(model.url, decorated(AgentRun(session)))
        document = session.document()
    assert [each.name for each in document.recording.tools] == ["search", "search"]
    with replaying(document, replay_tools=True) as session:
        loop(model.url, decorated(AgentRun(session)))
    assert clock.runs == 2


def test_a_sub_agent_is_run_because_its_calls_are_replayed():
    def script(asked: Asked) -> Reply:
        if "sub" in asked.system:
            return Reply("From below.")
        return Reply(tool_calls=[ToolUse("search", {"query": "x"})]) if asked.turn == 1 else Reply("Done.")

    def agent(url):
        @tool
        def search(query: str) -> str:
            with anthropic.Anthropic(base_url=url, api_key="x") as client:
                return ask(client, [{"role": "user", "content": query}], system="sub agent").content[0].text

        return loop(url, search)

    url, _, document = recorded(agent, script=script)
    with replaying(document, replay_tools=True) as session:
        agent(url)
    assert session.verdicts[Verdict.IDENTICAL] == 3
    assert session.unused() == 0


def test_chat_completions_too():
    def script(asked: Asked) -> Reply:
        return Reply(tool_calls=[ToolUse("search", {"query": "x"})]) if asked.turn < 3 else Reply("Done.")

    def agent(url, search):
        with openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
            messages = [{"role": "user", "content": "go"}]
            while True:
                message = client.chat.completions.create(model="m", messages=messages).choices[0].message
                if not message.tool_calls:
                    return
                messages.append(message.to_dict())
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": search(**json.loads(call.function.arguments))}
                    for call in message.tool_calls
                ]

    clock = Clock()
    url, _, document = recorded(agent, clocked(clock), script=script)
    with replaying(document, replay_tools=True) as session:
        agent(url, clocked(clock))
    assert clock.runs == 2
    assert session.verdicts[Verdict.IDENTICAL] == 3

"""What a type checker sees of the public API. Checked in strict mode, never run."""

from typing import assert_type

import pytest

from pytest_agentlatency import AgentRun, AgentTurn, tool
from pytest_agentlatency.model.run import Run, Turn
from pytest_agentlatency.testing import Asked, CostModel, Refuse, Reply, Served, SimulatedModel, ToolUse


@pytest.mark.agent_latency
@pytest.mark.latency_budget("turns at most 8")
def test_agent(agent_run: AgentRun) -> None:
    first = agent_run.turn(1)
    assert_type(first, AgentTurn)
    assert_type(first.number, int)
    assert_type(first.share("prefill"), float | None)
    assert_type(first.time("tool"), float | None)
    assert_type(first.ttft, float | None)
    assert_type(first.delivered, float | None)
    assert_type(first.tpot, float | None)
    assert_type(first.context_tokens, int | None)
    assert_type(first.output_tokens, int | None)
    assert_type(first.cached_share, float | None)
    assert_type(first.retries, int)
    assert_type(first.verdict, str)
    assert_type(first.details, Turn)
    assert_type(agent_run.details, Run)
    assert_type(agent_run.turns, tuple[AgentTurn, ...])
    assert_type(agent_run.duration, float | None)
    assert_type(agent_run.calls, int)
    assert_type(agent_run.figure("re-read cost", lane=2), float | None)
    with agent_run.tool("search"), agent_run.pause("approval"), agent_run.bounds():
        agent_run.delivered()
    first.share(1)  # type: ignore[arg-type]
    agent_run.turn("1")  # type: ignore[arg-type]
    agent_run.nothing  # type: ignore[attr-defined]  # noqa: B018


@tool
def search(query: str, limit: int = 3) -> list[str]:
    return [query] * limit


@tool(name="look up")
async def find(query: str) -> list[str]:
    return [query]


async def decorated_tools_keep_their_types() -> None:
    assert_type(search("a", limit=1), list[str])
    assert_type(await find("a"), list[str])
    search(1)  # type: ignore[arg-type]
    search("a", most=1)  # type: ignore[call-arg]


def decorated_by_the_fixture(agent_run: AgentRun) -> None:
    @agent_run.tool("search")
    def by_hand(query: str) -> int:
        return len(query)

    assert_type(by_hand("a"), int)


def script(asked: Asked) -> Reply:
    return Reply("Looking.", tool_calls=[ToolUse("search", {"query": asked.last})])


def simulated() -> None:
    with SimulatedModel(script, costs=CostModel(prefill=100), faults={1: Refuse(529)}) as model:
        assert_type(model, SimulatedModel)
        assert_type(model.url, str)
        assert_type(model.served, tuple[Served, ...])

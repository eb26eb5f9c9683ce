"""Latency regression testing of LLM agents: record one real run, then fail offline when it gets slower.

What tests and agents import. An agent marks its tools with `tool`; everything else is for type annotations.
"""

from typing import TYPE_CHECKING

from pytest_agentlatency.capture.tools import tool

if TYPE_CHECKING:
    from pytest_agentlatency.agent_run import AgentRun, AgentTurn

__all__ = ["AgentRun", "AgentTurn", "tool"]


def __getattr__(name: str) -> object:
    """Import what only type annotations need when it is asked for."""
    if name in {"AgentRun", "AgentTurn"}:
        from pytest_agentlatency import agent_run  # noqa: PLC0415

        return getattr(agent_run, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

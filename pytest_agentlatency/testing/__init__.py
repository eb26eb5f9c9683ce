"""For users' own tests: a model on loopback, recordings without a server, Hypothesis strategies.

    from pytest_agentlatency.testing import CostModel, Reply, SimulatedModel, ToolUse

Recordings are built by `pytest_agentlatency.testing.builders`; `pytest_agentlatency.testing.strategies` draws them, and
is the only module here that needs hypothesis.
"""

from pytest_agentlatency.testing.clock import FakeClock
from pytest_agentlatency.testing.costs import Cost, CostModel, InputTokens, count_tokens
from pytest_agentlatency.testing.faults import (
    Blank,
    Buffer,
    Coding,
    Cut,
    Drop,
    ErrorEvent,
    Fault,
    Insert,
    LineEnds,
    Refuse,
    SlowHeaders,
    Stall,
    comment,
    ping,
    unknown_event,
)
from pytest_agentlatency.testing.script import Asked, Reply, Script, ScriptError, ToolUse, by_lane, by_turn
from pytest_agentlatency.testing.server import Received, Sent
from pytest_agentlatency.testing.simulated import Served, SimulatedModel

__all__ = [
    "Asked",
    "Blank",
    "Buffer",
    "Coding",
    "Cost",
    "CostModel",
    "Cut",
    "Drop",
    "ErrorEvent",
    "FakeClock",
    "Fault",
    "InputTokens",
    "Insert",
    "LineEnds",
    "Received",
    "Refuse",
    "Reply",
    "Script",
    "ScriptError",
    "Sent",
    "Served",
    "SimulatedModel",
    "SlowHeaders",
    "Stall",
    "ToolUse",
    "by_lane",
    "by_turn",
    "comment",
    "count_tokens",
    "ping",
    "unknown_event",
]

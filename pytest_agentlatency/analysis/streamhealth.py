"""Whether a stream's arrival times can be believed: buffered on the way, held up by its reader, or hiding its thinking.

Owns the thresholds of the flags on a call; docs/measuring.md lists them.
"""

from pytest_agentlatency.model.run import Call
from pytest_agentlatency.wire.message import Answer

MANY_TOKENS = 8
"""A shorter answer may honestly arrive in one chunk."""
BURST = 0.01
"""A proxy that holds a stream back delivers all of it within this fraction of the wait before it."""
CLIENT_BOUND = "client-bound"
READERS = 0.5
"""Share of the decode time that the reader spent before asking for the next chunk, above which a call is that."""


def flags(call: Call, answer: Answer) -> frozenset[str]:
    """The flags that a call's bytes and stamps earn; see `Call.flags`."""
    found = {
        "buffered": _buffered(call),
        CLIENT_BOUND: _client_bound(call),
        "multi-pass": answer.usage.multi_pass,
        "hidden-thinking": _hidden_thinking(answer),
        "no-tokens": answer.streamed and answer.marks.first_token is None,
    }
    return frozenset(name for name, holds in found.items() if holds)


def _buffered(call: Call) -> bool:
    at = call.milestones
    if not call.streamed or at.first_token is None or at.last_token is None or at.call is None:
        return False
    return (call.usage.output or 0) >= MANY_TOKENS and at.last_token - at.first_token < BURST * (
        at.last_token - (at.sent or at.call)
    )


def _client_bound(call: Call) -> bool:
    at = call.milestones
    if at.first_token is None or at.last_token is None:
        return False
    return held(call) > READERS * (at.last_token - at.first_token)


def held(call: Call) -> int:
    """Nanoseconds of the decode in which nothing was asked for: the reader was busy with the chunk before."""
    at, stamps = call.milestones, call.attempts[-1].stamps if call.attempts else None
    if stamps is None or at.first_token is None or at.last_token is None:
        return 0
    return sum(
        max(0, asked - arrived)
        for arrived, asked in zip(stamps.arrived, stamps.asked[1:], strict=False)
        if at.first_token <= arrived < at.last_token
    )


def _hidden_thinking(answer: Answer) -> bool:
    shown = any(block.kind == "thinking" and block.text for block in answer.blocks)
    return answer.marks.inferred or (bool(answer.usage.thinking) and not shown)

"""Recordings made from a few figures: real wire bytes, exact token counts and exact nanoseconds, without a server.

Owns the arithmetic of a run's timeline. What each figure becomes can be read off the docstrings; no randomness.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Facts, Recording, Request, ToolRecord
from pytest_agentlatency.testing import messages_api
from pytest_agentlatency.testing.bodies import Head, Messages, encoded, filler, following, opening
from pytest_agentlatency.testing.costs import Cost, InputTokens, count_tokens
from pytest_agentlatency.testing.faults import Drop, Refuse
from pytest_agentlatency.testing.observing import Client, observe
from pytest_agentlatency.testing.plan import Plan, Speech
from pytest_agentlatency.testing.script import Reply, ToolUse
from pytest_agentlatency.testing.specs import ToolSpec, TurnSpec, contexts, failure, growing, tool, turn

__all__ = [
    "ToolSpec",
    "TurnSpec",
    "contexts",
    "edited",
    "failure",
    "growing",
    "recording",
    "tool",
    "turn",
    "untimed",
    "with_longer_system",
]

URL = "http://127.0.0.1:8000/v1/messages"


def recording(
    turns: Sequence[TurnSpec],
    *,
    system: str = "You are an agent.",
    sub_system: str = "You are a sub-agent.",
    tools: Sequence[str] | None = None,
    model: str = "claude-simulated",
    sdk: str = "anthropic 2.14.0",
    timed: bool = True,
) -> Recording:
    """What would have been observed of a run of these turns, from 0 on the run's clock.

    Every request's body is exactly `context` tokens by the rule of `testing.prompts`, an append-only history unless a
    context is too small for it (then it is compacted to one message); usage says the same figures, and the output is
    exactly `output` tokens. The tools offered are those that any turn calls, unless `tools` names others.
    `sdk` empty: no SDK hook saw the calls. `timed` False: no times at all, as in a foreign cassette.
    ValueError when a figure can't be met: a context or an output too small for what must be in it.
    """
    names = dict.fromkeys(tools if tools is not None else (each.name for spec in turns for each in spec.tools))
    builder = _Builder(Head(model, system, tuple(names)), Head(model, sub_system, ()), sdk)
    end = builder.lane(turns, builder.main, at=0, parent=None)
    made = builder.made(Ns(end))
    return made if timed else untimed(made)


def untimed(observed: Recording) -> Recording:
    """The recording without a single time, as from another tool's cassette; tools and backoffs go with them."""
    attempts = tuple(replace(attempt, stamps=None) for attempt in observed.attempts)
    calls = tuple(replace(call, entered=None, returned=None, backoffs=(), parent=None) for call in observed.calls)
    return Recording(attempts, calls, facts=observed.facts)


def edited(observed: Recording, edit: Callable[[int, dict[str, Any]], object]) -> Recording:
    """The recording with other requests: `edit` gets each attempt's call id and its JSON body, and changes the body.

    Answers and times stay: what a changed agent looks like beside its cassette.
    """

    def changed(attempt: Attempt) -> Attempt:
        body = json.loads(attempt.request.body)
        edit(attempt.call, body)
        return replace(attempt, request=replace(attempt.request, body=encoded(body)))

    return replace(observed, attempts=tuple(changed(attempt) for attempt in observed.attempts))


def with_longer_system(observed: Recording, tokens: int) -> Recording:
    """The recording of an agent whose system prompt is longer by so many tokens, at its end."""
    if tokens < 0:
        msg = f"a system prompt can't grow by {tokens!r} tokens; give 0 or more"
        raise ValueError(msg)

    def longer(_: int, body: dict[str, Any]) -> None:
        text = body["system"]
        padding = -len(text.encode()) % 4  # so that the added tokens are whole ones
        body["system"] = text + " " * padding + filler(tokens, "more")

    return edited(observed, longer)


class _Builder:
    """Lays the turns of all lanes on one clock."""

    def __init__(self, main: Head, sub: Head, sdk: str) -> None:
        self.main = main
        self._sub = sub
        self._sdk = sdk
        self._attempts: list[Attempt] = []
        self._calls: list[CallRecord] = []
        self._tools: list[ToolRecord] = []

    def lane(self, turns: Sequence[TurnSpec], head: Head, *, at: int, parent: int | None) -> int:
        """Add a lane that begins at a time, inside a tool's body or not; when it ends."""
        history: Messages = ()
        answer: list[dict[str, Any]] = []
        for number, spec in enumerate(turns, 1):
            seed = f"{len(self._calls) + 1}.{number}"
            known = following(head, history, answer, spec.context, seed) if history else ()
            history = known or opening(head, spec.context, seed)
            answer, ended = self._call(spec, head.body(history, streamed=spec.streamed), at, parent)
            at = self._run_tools(spec, ended + spec.overhead, parent)
        return at

    def made(self, end: Ns) -> Recording:
        """The recording, calls numbered in the order in which they were made."""
        calls = sorted(self._calls, key=lambda call: call.entered or 0)
        number = {call.id: place for place, call in enumerate(calls, 1)}
        attempts = sorted(self._attempts, key=lambda attempt: attempt.stamps.start if attempt.stamps else 0)
        return Recording(
            attempts=tuple(replace(attempt, call=number[attempt.call]) for attempt in attempts),
            calls=tuple(self._seen(replace(call, id=number[call.id])) for call in calls),
            tools=tuple(sorted(self._tools, key=lambda each: each.start)),
            bounds=(Ns(0), end),
            facts=Facts("tests/test_agent.py::test_agent", "2026-01-01T00:00:00Z", versions={"anthropic": "2.14.0"}),
        )

    def _seen(self, call: CallRecord) -> CallRecord:
        return call if self._sdk else CallRecord(call.id, parent=call.parent)

    def _call(
        self, spec: TurnSpec, body: Mapping[str, Any], at: int, parent: int | None
    ) -> tuple[list[dict[str, Any]], int]:
        """Add a call; its answer's blocks, and when it is over."""
        number = len(self._calls) + 1
        request = Request("POST", URL, (("content-type", "application/json"),), encoded(body))
        reply = _reply(spec)
        plan, answer_id = _plan(spec, reply, number, str(body["model"]))
        start, backoffs = self._fail(spec, request, number, at + spec.serialization)
        attempt = observe(plan, request, call=number, at=start, client=spec.client)
        self._attempts.append(attempt)
        stamps = attempt.stamps
        end = stamps.end if stamps else start
        returned = stamps.headers if stamps and spec.streamed else Ns(end)
        self._calls.append(CallRecord(number, self._sdk, Ns(at), returned, backoffs, parent))
        return messages_api.content(reply, answer_id), end

    def _fail(self, spec: TurnSpec, request: Request, call: int, at: int) -> tuple[int, tuple[tuple[Ns, Ns], ...]]:
        """Add the failed attempts; when the one that succeeds begins, and the waits between."""
        backoffs: list[tuple[Ns, Ns]] = []
        for failed in spec.failures:
            fault = Refuse(failed.status) if failed.status else Drop()
            plan = fault.change(Plan(200, headers_at=failed.duration))
            attempt = observe(plan, request, call=call, at=at, client=Client())
            over = at + failed.duration
            stamps = replace(attempt.stamps, end=Ns(over)) if attempt.stamps else None
            self._attempts.append(replace(attempt, stamps=stamps))
            at = over + failed.backoff
            backoffs.append((Ns(over), Ns(at)))
        return at, tuple(backoffs)

    def _run_tools(self, spec: TurnSpec, at: int, parent: int | None) -> int:
        """Add the turn's tools; when the last of them ends."""
        ends = [at]
        for each in spec.tools:
            ends.append(self._run_tool(each, at if spec.parallel else ends[-1], parent))
        return max(ends)

    def _run_tool(self, spec: ToolSpec, at: int, parent: int | None) -> int:
        number = len(self._tools) + 1
        self._tools.append(ToolRecord(number, spec.name, Ns(at), Ns(at), parent=parent, error=spec.error))
        end = self.lane(spec.turns, self._sub, at=at, parent=number) + spec.duration
        self._tools[number - 1] = replace(self._tools[number - 1], end=Ns(end), body=(Ns(at), Ns(end)))
        return end


def _reply(spec: TurnSpec) -> Reply:
    """Thinking, text and the tool calls of exactly `output` tokens."""
    calls = [ToolUse(each.name, each.input) for each in spec.tools]
    text = spec.output - spec.thinking - sum(1 + count_tokens(call.json) for call in calls)
    if text < 0:
        msg = f"output {spec.output!r} has no room: thinking and tool calls take {spec.output - text} tokens"
        raise ValueError(msg)
    return Reply(filler(text, "answer"), filler(spec.thinking, "thought"), calls)


def _plan(spec: TurnSpec, reply: Reply, number: int, model: str) -> tuple[Plan, str]:
    cost = Cost(0, spec.prefill, spec.decode, spec.output)
    tokens = InputTokens(spec.context - spec.cached - spec.written, spec.cached, spec.written)
    if tokens.uncached < 0:
        msg = f"cached {spec.cached!r} and written {spec.written!r} are more than context {spec.context!r}"
        raise ValueError(msg)
    answer_id = f"msg_built_{number:04}"
    each = max(1, -(-spec.output // spec.events))
    plan = messages_api.plan(
        reply, Speech(answer_id, model, tokens, cost, spec.streamed, each, early_prelude=spec.early_prelude)
    )
    for fault in spec.faults:
        plan = fault.change(plan)
    return plan, answer_id

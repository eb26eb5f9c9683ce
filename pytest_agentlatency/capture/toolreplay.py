"""Results that tools gave in the recorded run, given back in a replay in place of running the tools.

Nothing is stored for it: the recorded request that followed a tool call carries its result. Owns finding it. A tool
in whose body the recorded run called a model is run, so that a sub-agent's calls are made and judged.
"""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, get_origin, get_type_hints

from pytest_agentlatency.cassette.matching import Match
from pytest_agentlatency.cassette.recorded import RecordedCall, asked
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.wire.draft import TOOL_JSON
from pytest_agentlatency.wire.jsonedge import arguments, loads, mapping, sequence
from pytest_agentlatency.wire.message import Block, Prompt

_lane: ContextVar[int] = ContextVar("agentlatency_lane", default=0)
"""Recorded lane of the answer that this context was given last."""

_FAILED = "it failed in the recorded run, and with which exception isn't stored"
_OTHER_TYPE = (
    "its recorded result can't be turned into what the function says that it returns; annotate it as str, or as what "
    "json.loads makes of the result"
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave, as the recorded request carries it."""

    content: Any
    """A string, or a list of content blocks."""
    error: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """A value that stands in for a function's own."""

    value: Any


@dataclass(slots=True)
class _Asked:
    """One tool call of a recorded answer that was given to the agent, and its result."""

    lane: int
    name: str
    arguments: Mapping[str, Any]
    result: Result | None


class ToolResults:
    """The recorded results of one replay. Safe to use from several threads."""

    def __init__(self, recording: Recording, calls: Sequence[RecordedCall]) -> None:
        callers = {call.parent for call in recording.calls}
        self._run = {tool.name for tool in recording.tools if tool.id in callers}
        self._calls = {call.record.id: call for call in calls}
        self._turns = {(call.lane, call.turn): call for call in calls}
        self._open: list[_Asked] = []
        self._lock = threading.Lock()
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which tools were run all the same, and why."""
        return tuple(self._notes)

    def answered(self, match: Match) -> None:
        """The agent is given this answer: it may now ask for what the answer's tool calls gave."""
        _lane.set(match.lane)
        call = self._calls[match.record.id]
        if match.recorded is call.attempts[-1]:
            with self._lock:
                self._open.extend(self._asked(call))

    def _asked(self, call: RecordedCall) -> Iterator[_Asked]:
        follower = self._turns.get((call.lane, call.turn + 1))
        given = list(_results(asked(follower.request)[1])) if follower else []
        for block in call.read.answer.blocks:
            if block.kind == TOOL_JSON:
                found = next((each for each in given if _answers(each, block.id, block.name)), None)
                if found is not None:
                    given.remove(found)
                result = None if found is None else _content(found)
                yield _Asked(call.lane, block.name, mapping(arguments(block.text)), result)

    def take(self, name: str, live: Mapping[str, Any]) -> Result | None:
        """The result of a tool call, each once; None, with a note, when it has to be run."""
        if name in self._run:
            self._note(name, "it calls a model, which is replayed instead")
            return None
        with self._lock:
            calls = [each for each in self._open if each.name == name]
            # Among equal ones the first asked is the first run; one lane's calls are not another's.
            best = min(
                calls, key=lambda each: (each.lane != _lane.get(), not _within(each.arguments, live)), default=None
            )
            if best is not None:
                self._open.remove(best)
        if best is None or best.result is None:
            self._note(name, "the cassette holds no result for this call of it")
            return None
        return best.result

    def for_function(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Given | None:
        """What stands in for a function's return value; None, with a note, when it has to be run."""
        result = self.take(name, _bound(function, args, kwargs))
        if result is None:
            return None
        given = None if result.error else _as_returned(result.content, function)
        if given is None:
            self._note(name, _FAILED if result.error else _OTHER_TYPE)
        return given

    def block(self, name: str) -> None:
        """Note that a with-block was entered: there is no way around its body."""
        self._note(name, f"a with-block can't be replayed, a decorated function can: @agent_run.tool({name!r})")

    def _note(self, name: str, reason: str) -> None:
        self._notes[f"tool {name!r} ran: {reason}"] = None


def _results(prompt: Prompt) -> Iterator[Block]:
    """The tool results behind the last answer in a history."""
    messages = list(prompt.messages)
    last = max((at for at, each in enumerate(messages) if each.role in {"assistant", "model"}), default=-1)
    return (block for each in messages[last + 1 :] for block in each.blocks if block.kind == "tool_result")


def _answers(result: Block, id_: str, name: str) -> bool:
    return result.id == id_ if result.id and id_ else result.name == name


def _content(block: Block) -> Result:
    content = mapping(loads(block.raw)).get("content")
    whole = isinstance(content, list) and all(isinstance(each, dict) for each in sequence(content))
    return Result(content if whole else block.text, error=block.error)


def _within(recorded: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether a live call has the recorded arguments; defaults of the function may have joined them."""
    return all(key in live and live[key] == value for key, value in recorded.items())


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return kwargs


def _as_returned(content: Any, function: Callable[..., Any]) -> Given | None:
    """A recorded content as the function would have returned it, going by its annotation; without one, the text."""
    hints: dict[str, Any] = {}
    with suppress(Exception):  # names that only a type checker can resolve
        hints = get_type_hints(function)
    said = hints.get("return", str)
    expected = get_origin(said) or said
    if isinstance(expected, type) and isinstance(content, expected):
        return Given(content)
    text = content if isinstance(content, str) else _text(content)
    if expected is str or expected is Any:
        return Given(text)
    value = loads(text)
    return Given(value) if isinstance(expected, type) and isinstance(value, expected) else None


def _text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(each["text"]) for each in blocks if "text" in each)

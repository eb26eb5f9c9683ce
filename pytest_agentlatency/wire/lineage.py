"""Which conversation a request belongs to: lanes, told apart by what the requests say, never by time or thread.

Owns the comparison of prompts across calls. Refuses to know providers' fields, bytes, and what a lane costs.

Rules, in order:
1. A request that names an earlier answer (`previous_id`) continues that answer's lane, its history filled in. A second
   continuation of one answer, while or after the lane went on, is a lane of its own.
2. Otherwise the lane whose latest messages are a prefix of the new ones, block by block, without ids, cache markers and
   the difference between a string and a text block. Preferred in this order: its answer follows the prefix, its head
   (tools and system) is equal and not only alike, the new request is longer, the match is longer, it spoke last.
   The same messages once more are a re-ask in their lane, unless that lane still waits for its answer: equal requests
   in flight together are parallel conversations.
3. Otherwise a rewrite: a lane with a head alike that shares a block which its model made since its first request
   (sliding window, edited history, volatile tail), or whose first request opens the new one (compaction behind the
   task).
4. Otherwise a new lane. A compaction that keeps nothing but a summary can't be told from a fresh task.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import dropwhile, takewhile
from typing import NamedTuple

from pytest_agentlatency.wire.head import Head, alike, head_of, opens_system
from pytest_agentlatency.wire.jsonedge import canonical, loads
from pytest_agentlatency.wire.message import Answer, Block, Message, Prompt

_MODEL_ROLES = frozenset({"assistant", "model"})
_SPOKEN = frozenset({"text", "thinking", "tool_use", "tool_result"})
_ROOT = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one request stands in its run."""

    lane: int
    """From 1, in order of the lanes' first requests."""
    turn: int
    """From 1 within the lane."""
    prompt: Prompt
    """The effective prompt: history that the server holds is filled in, each block with the path it was sent under."""
    whole: bool = True
    """The history is known completely."""
    extends: bool = False
    """The lane's previous messages are a prefix of these, or equal to them. Says nothing about tools and system."""
    repeats: bool = False
    """These are the lane's previous messages once more."""
    rewritten_from: str | None = None
    """When the history was rewritten, path of the first block that the lane's previous request had not there."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One block of a conversation."""

    key: int
    """Equal for equal blocks."""
    node: int
    """Equal for equal histories up to and including this block."""
    path: str
    made: bool
    """The model made it."""
    thought: bool
    """Agents may leave it out when they send the answer back."""


class _Walked(NamedTuple):
    """A message's steps from a node; a later request that holds the same object there has the same ones."""

    message: Message
    before: int
    steps: tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class _Track:
    """A prompt as lanes compare it."""

    head: Head
    steps: tuple[_Step, ...]

    @property
    def node(self) -> int:
        return self.steps[-1].node if self.steps else _ROOT


@dataclass(slots=True)
class _Lane:
    id: int
    first: _Track
    last: _Track
    prompt: Prompt
    whole: bool
    used: int
    turns: int = 1
    asked: str = ""
    """`previous_id` of the latest request."""
    waiting: bool = True
    """The latest request is in flight."""
    foretold: bool = False
    """The latest request's answer is known."""
    answer_id: str = ""
    reply: tuple[int, ...] = ()
    """Keys of the latest answer's blocks, thinking left out."""
    made: set[int] = field(default_factory=set[int])
    """Keys of the blocks that the model made since the first request."""


@dataclass(frozen=True, slots=True)
class _Held:
    """History that a server holds under an answer's id."""

    lane: int
    prompt: Prompt


class Lineage:
    """Places the requests of one run, one after the other. Not thread-safe.

    Tell it what happened in the order in which it happened: `place` when a call is made, `answered` when it ended, well
    or not. Each takes time linear in the blocks of its own request.
    """

    def __init__(self) -> None:
        self._lanes: list[_Lane] = []
        self._ends: dict[int, dict[int, None]] = {}
        """Node of a lane's latest request -> the lanes that end there."""
        self._keys: dict[tuple[object, ...], int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._walked: dict[int, _Walked] = {}
        """Of the lanes' latest requests, by the message's identity; each holds its message, so that no id is reused."""
        self._held: dict[str, _Held] = {}
        self._placed = 0

    def place(self, prompt: Prompt) -> Placement:
        """Lane and turn of the run's next request."""
        self._placed += 1
        if prompt.previous_id:
            return self._continue(prompt)
        track = self._track(prompt)
        if lane := self._extended(track):
            return self._advance(lane, track, prompt, extends=True)
        if lane := self._rewritten(track):
            return self._advance(lane, track, prompt, extends=False)
        return self._open(track, prompt, whole=True)

    def answered(self, lane: int, answer: Answer, *, finished: bool = True) -> None:
        """Say how the lane's latest call ended; without an answer, by an empty `Answer`.

        `finished=False` foretells the answer of a call that is still in flight.
        """
        owner = self._lanes[lane - 1]
        owner.waiting = not finished
        owner.foretold = True
        history = owner.prompt
        if answer.message is not None:
            steps = self._walk(answer.message, owner.last.node)
            owner.reply = tuple(step.key for step in steps if not step.thought)
            owner.made.update(step.key for step in steps)
            history = replace(history, messages=(*history.messages, answer.message))
        if answer.id:
            owner.answer_id = answer.id
            self._held[answer.id] = _Held(lane, history)

    def _continue(self, prompt: Prompt) -> Placement:
        held = self._held.get(prompt.previous_id)
        if held is None:
            return self._open(self._track(prompt), prompt, whole=False)
        effective = _filled(prompt, held.prompt)
        track = self._track(effective)
        lane = self._lanes[held.lane - 1]
        in_flight = lane.waiting and lane.asked == prompt.previous_id
        re_ask = not lane.waiting and lane.last.node == track.node
        if re_ask or (lane.answer_id == prompt.previous_id and not in_flight):
            return self._advance(lane, track, effective, extends=True)
        return self._open(track, effective, whole=lane.whole)

    def _extended(self, track: _Track) -> _Lane | None:
        """Rule 2."""
        ranked = [
            (rank, lane)
            for length, step in enumerate(track.steps, start=1)
            if step.node in self._ends
            for lane in map(self._lane, self._ends[step.node])
            if (rank := _rank(lane, track, length))
        ]
        return max(ranked, key=lambda each: each[0])[1] if ranked else None

    def _rewritten(self, track: _Track) -> _Lane | None:
        """Rule 3."""
        made = {step.key for step in track.steps if step.made}
        nodes = {step.node for step in track.steps[:-1]}
        ranked = [
            ((shared, lane.last.head == track.head, lane.used), lane)
            for lane in self._lanes
            if (shared := len(made & lane.made) or _opens(lane, nodes))
            if lane.foretold or not lane.waiting
            if alike(lane.last.head, track.head)
        ]
        return max(ranked, key=lambda each: each[0])[1] if ranked else None

    def _lane(self, number: int) -> _Lane:
        return self._lanes[number - 1]

    def _open(self, track: _Track, prompt: Prompt, *, whole: bool) -> Placement:
        lane = _Lane(len(self._lanes) + 1, track, track, prompt, whole, self._placed, asked=prompt.previous_id)
        self._lanes.append(lane)
        self._ends.setdefault(track.node, {})[lane.id] = None
        return Placement(lane.id, 1, prompt, whole)

    def _advance(self, lane: _Lane, track: _Track, prompt: Prompt, *, extends: bool) -> Placement:
        repeats = lane.last.node == track.node
        rewritten = None if extends else _first_new(track, lane.last)
        del self._ends[lane.last.node][lane.id]
        self._ends.setdefault(track.node, {})[lane.id] = None
        known = {step.key for step in lane.first.steps}
        lane.made.update(step.key for step in track.steps if step.made and step.key not in known)
        self._forget(lane.prompt, prompt)
        lane.last, lane.prompt, lane.asked = track, prompt, prompt.previous_id
        lane.turns, lane.used = lane.turns + 1, self._placed
        lane.waiting, lane.foretold, lane.reply = True, False, ()
        return Placement(lane.id, lane.turns, prompt, lane.whole, extends, repeats, rewritten)

    def _track(self, prompt: Prompt) -> _Track:
        body = tuple(dropwhile(opens_system, prompt.messages))
        return _Track(head_of(prompt), tuple(self._steps(body, _ROOT)))

    def _steps(self, messages: tuple[Message, ...], node: int) -> list[_Step]:
        steps: list[_Step] = []
        for message in messages:
            known = self._walked.get(id(message))
            if known is None or known.before != node:
                known = self._walked[id(message)] = _Walked(message, node, self._walk(message, node))
            steps += known.steps
            node = steps[-1].node if steps else node
        return steps

    def _forget(self, before: Prompt, now: Prompt) -> None:
        """Keep the steps of a lane's latest request only."""
        held = set(map(id, now.messages))
        for message in before.messages:
            if id(message) not in held:
                self._walked.pop(id(message), None)

    def _walk(self, message: Message, node: int) -> tuple[_Step, ...]:
        steps: list[_Step] = []
        made = message.role in _MODEL_ROLES
        for block in message.blocks:
            key = self._key(message.role, block)
            node = self._nodes.setdefault((node, key), len(self._nodes) + 1)
            steps.append(_Step(key, node, block.path, made, "thinking" in block.kind))
        return tuple(steps)

    def _key(self, role: str, block: Block) -> int:
        """Number of the block's content; a new one for content not met before."""
        who = "" if block.kind == "tool_result" else "model" if role in _MODEL_ROLES else role
        said = (block.text, block.media) if block.kind in _SPOKEN or block.media else (block.raw,)
        seen = (who, block.kind, block.name if block.kind == "tool_use" else "", *said)
        key = self._keys.get(seen)
        if key is None:
            plain = (who, block.kind, block.name, _arguments(block.text)) if block.kind == "tool_use" else seen
            key = self._keys.setdefault(plain, len(self._keys) + 1)
            self._keys[seen] = key
        return key


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call with what it asked, what it was answered, and from when to when it was in flight."""

    prompt: Prompt
    answer: Answer
    start: int | None = None
    end: int | None = None
    """Nanoseconds; None where no time is known."""


def place_all(exchanges: Iterable[Exchange]) -> tuple[Placement, ...]:
    """Place the calls of a finished run, given in the order in which they were made.

    Calls without times count as made one after the other.
    """
    lineage = Lineage()
    placements: list[Placement] = []
    in_flight: list[tuple[int, int, Answer]] = []
    for exchange in exchanges:
        for ended in [each for each in in_flight if exchange.start is None or each[0] <= exchange.start]:
            lineage.answered(*ended[1:])
            in_flight.remove(ended)
        placement = lineage.place(exchange.prompt)
        placements.append(placement)
        if exchange.end is None:
            lineage.answered(placement.lane, exchange.answer)
        else:
            in_flight.append((exchange.end, placement.lane, exchange.answer))
    return tuple(placements)


def _arguments(text: str) -> str:
    """Arguments as canonical JSON: SDKs write them out again when they send a call back."""
    value = loads(text)
    return text if value is None else canonical(value)


def _rank(lane: _Lane, track: _Track, length: int) -> tuple[bool, bool, bool, int, int] | None:
    """How well a lane, whose latest messages are the track's first `length` blocks, fits; None: not at all."""
    rest = track.steps[length:]
    same = lane.last.head == track.head
    if lane.waiting and not any(step.made for step in rest):
        return None
    if not (same if not rest else alike(lane.last.head, track.head)):
        return None
    said = [step.key for step in rest if not step.thought][: len(lane.reply)]
    return bool(lane.reply) and tuple(said) == lane.reply, same, bool(rest), length, lane.used


def _opens(lane: _Lane, nodes: set[int]) -> bool:
    return lane.first.node in nodes and lane.foretold and not lane.waiting


def _first_new(track: _Track, before: _Track) -> str:
    """Path of the first block whose history is not the earlier request's; of the last when blocks were only cut off."""
    pairs = zip(track.steps, before.steps, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0].node == pair[1].node, pairs))
    return track.steps[min(common, len(track.steps) - 1)].path


def _filled(prompt: Prompt, held: Prompt) -> Prompt:
    """The prompt with what the server holds before it."""
    return replace(
        prompt,
        tools=prompt.tools or held.tools,
        system=prompt.system or held.system,
        messages=(*held.messages, *prompt.messages),
    )

"""The clock of a run, laid out again when some calls take another time than they were recorded with.

Owns what waited for what, read off the recorded times: an activity begins when everything that its conversation waited
for has ended, and keeps the gap that it had behind the last of it. Conversations side by side don't delay each other.
Refuses to know why a call takes longer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Pause, Recording, Stamps, ToolRecord
from pytest_agentlatency.model.run import Call, Milestones


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a call takes other than recorded."""

    begin: Ns
    """Prefill began, as recorded."""
    first: Ns
    """Prefill ended."""
    last: Ns
    """The last token came."""
    prefill: int = 0
    """Nanoseconds by which prefill is longer; not below minus its recorded length."""
    decode: float = 1.0
    """Factor of the time from the first token to the last."""

    def moved(self, moment: int) -> int:
        """Where a moment of the call goes, when the call begins as recorded."""
        if moment < self.first:
            return max(min(moment, self.first + self.prefill), min(moment, self.begin))
        inside = max(0, min(moment, self.last) - self.first)
        saved = inside - round(inside * self.decode)
        return moment + self.prefill - saved


def rescheduled(
    recording: Recording, readings: Sequence[Reading], stretches: Mapping[int, Stretch]
) -> tuple[Recording, tuple[Reading, ...]]:
    """The run on its new clock: tools, pauses and bounds of the recording, and the readings with all their stamps.

    stretches: call id -> what it takes. Without any, everything stays where it is, to the nanosecond. A call without
    stamps has no place on a clock; then nothing is moved.
    """
    if not stretches or any(each.call.attempts[-1].stamps is None for each in readings):
        return recording, tuple(readings)
    clock = _Clock(recording, readings, stretches)
    moved = replace(
        recording,
        tools=tuple(clock.tool(tool) for tool in recording.tools),
        pauses=tuple(clock.pause(pause) for pause in recording.pauses),
        bounds=clock.bounds(recording.bounds),
    )
    return moved, tuple(replace(each, call=clock.call(each.call)) for each in readings)


@dataclass(slots=True, eq=False)
class _Node:
    """A call or a tool on both clocks; the run itself is a tool that holds everything."""

    start: int
    end: int
    lane: int | None
    stretch: Stretch | None = None
    is_call: bool = False
    children: "list[_Node]" = field(default_factory=list["_Node"])
    begun: int = 0
    """Where it starts now."""
    placed: "list[_Node]" = field(default_factory=list["_Node"])
    """Children that have their new place, in the order of their starts."""
    _known: dict[int, int] = field(default_factory=dict[int, int])

    def at(self, moment: int) -> int:
        """Where a moment inside goes. Inside a tool, it follows whatever had ended, or ran, at that moment."""
        if self.is_call:
            moved = self.stretch.moved(moment) if self.stretch else moment
            return moved + self.begun - self.start
        if moment not in self._known:
            ended = [(min(each.end, moment), each) for each in self.placed if each.start <= moment]
            self._known[moment] = _after(moment, [(self.start, self.begun), *((t, each.at(t)) for t, each in ended)])
        return self._known[moment]

    def place(self, child: "_Node") -> None:
        """Give a child its new start. Children come in the order of their starts."""
        child.begun = self.begin(child)
        self.placed.append(child)
        self._known.clear()

    def begin(self, child: "_Node") -> int:
        """The new start of a child: after those of its siblings that it waited for."""
        before = [each for each in self.placed if each.start <= child.start]
        mine = [
            (min(each.end, child.start), each)
            for each in before
            if each.lane == child.lane and (each.is_call or each.end <= child.start)
        ]
        # What had ended when the latest of them began, that one waited for already.
        latest = max((each.start for _, each in mine), default=self.start)
        mine = [(moment, each) for moment, each in mine if moment >= latest]
        idle = max((moment for moment, _ in mine), default=self.start)
        others = [
            (each.end, each)
            for each in before
            if each.lane != child.lane and each.start >= idle and each.end <= child.start
        ]
        waited = ((moment, each.at(moment)) for moment, each in (*mine, *others))
        return _after(child.start, [(self.start, self.begun), *waited])


def _after(moment: int, anchors: Sequence[tuple[int, int]]) -> int:
    """The moment behind its anchors (recorded, new), at the recorded distance from the last of them."""
    return max(new for _, new in anchors) + moment - max(old for old, _ in anchors)


class _Clock:
    """Every activity of a run in its new place."""

    def __init__(self, recording: Recording, readings: Sequence[Reading], stretches: Mapping[int, Stretch]) -> None:
        owners = assembly.tool_owners(readings, recording.tools)
        self._tools = {tool.id: _Node(tool.start, tool.end, owners.get(tool.id)) for tool in recording.tools}
        self._calls = {
            each.call.record.id: _Node(*_extent(each.call), each.lane, stretches.get(each.call.record.id), is_call=True)
            for each in readings
        }
        self._parents: dict[_Node, int | None] = {self._tools[tool.id]: tool.parent for tool in recording.tools}
        self._parents |= {self._calls[each.call.record.id]: each.call.record.parent for each in readings}
        start = min((node.start for node in self._parents), default=0)
        start = min(start, recording.bounds[0]) if recording.bounds else start
        self._root = _Node(start, start, None, begun=start)
        for node in sorted(self._parents, key=lambda each: (each.start, self._depth(each))):
            self._parent(node).place(node)

    def _parent(self, node: _Node) -> _Node:
        held = self._parents.get(node)
        return self._tools.get(held, self._root) if held is not None else self._root

    def _depth(self, node: _Node) -> int:
        return 0 if node is self._root else 1 + self._depth(self._parent(node))

    def call(self, call: Call) -> Call:
        """The call with every stamp moved."""
        node = self._calls[call.record.id]
        delivered = self._handed_over(call.record.delivered, node)
        return replace(
            call,
            record=replace(_moved_record(call.record, node), delivered=delivered),
            attempts=tuple(_moved_attempt(attempt, node) for attempt in call.attempts),
            milestones=replace(_moved_milestones(call.milestones, node), delivered=delivered),
            generated=tuple(
                replace(block, start=_moved(block.start, node), end=_moved(block.end, node)) for block in call.generated
            ),
        )

    def _handed_over(self, moment: Ns | None, call: _Node) -> Ns | None:
        """The agent hands on what it has waited for: an activity of its own, often behind the end of the call."""
        return None if moment is None else Ns(self._parent(call).begin(_Node(moment, moment, call.lane)))

    def tool(self, tool: ToolRecord) -> ToolRecord:
        """The tool, begun when it can be and as long as what it waits for."""
        node = self._tools[tool.id]
        body = tool.body and (Ns(node.at(tool.body[0])), Ns(node.at(tool.body[1])))
        end = max(node.at(tool.end), body[1] if body else node.begun)
        return replace(tool, start=Ns(node.begun), end=Ns(end), body=body)

    def pause(self, pause: Pause) -> Pause:
        """The pause, as long as it was, after the same things."""
        start = self._root.at(pause.start)
        return replace(pause, start=Ns(start), end=Ns(start + pause.end - pause.start))

    def bounds(self, bounds: tuple[Ns, Ns] | None) -> tuple[Ns, Ns] | None:
        """Stated bounds: the start stands, the end keeps its distance from what ended last."""
        return bounds and (bounds[0], Ns(self._root.at(bounds[1])))


def _extent(call: Call) -> tuple[int, int]:
    """First and last moment of a call, as the timeline sees them."""
    first, last = call.attempts[0].stamps, call.attempts[-1].stamps
    start = call.record.entered if call.record.entered is not None else first.start if first else 0
    end = last.end if last else start
    return start, max(end, call.record.returned or end)


def _moved(moment: Ns | None, node: _Node) -> Ns | None:
    return None if moment is None else Ns(node.at(moment))


def _pair(pair: tuple[Ns, Ns], node: _Node) -> tuple[Ns, Ns]:
    return Ns(node.at(pair[0])), Ns(node.at(pair[1]))


def _all(moments: Iterable[Ns], node: _Node) -> tuple[Ns, ...]:
    return tuple(Ns(node.at(moment)) for moment in moments)


def _moved_record(record: CallRecord, node: _Node) -> CallRecord:
    backoffs = tuple(_pair(sleep, node) for sleep in record.backoffs)
    return replace(
        record, entered=_moved(record.entered, node), returned=_moved(record.returned, node), backoffs=backoffs
    )


def _moved_attempt(attempt: Attempt, node: _Node) -> Attempt:
    stamps = attempt.stamps
    if stamps is None:
        return attempt
    moved = Stamps(
        start=Ns(node.at(stamps.start)),
        end=Ns(node.at(stamps.end)),
        connect=stamps.connect and _pair(stamps.connect, node),
        sent=_moved(stamps.sent, node),
        headers=_moved(stamps.headers, node),
        asked=_all(stamps.asked, node),
        arrived=_all(stamps.arrived, node),
    )
    return replace(attempt, stamps=moved)


def _moved_milestones(at: Milestones, node: _Node) -> Milestones:
    return Milestones(
        call=_moved(at.call, node),
        sent=_moved(at.sent, node),
        headers=_moved(at.headers, node),
        first_event=_moved(at.first_event, node),
        first_token=_moved(at.first_token, node),
        first_output=_moved(at.first_output, node),
        first_text=_moved(at.first_text, node),
        last_token=_moved(at.last_token, node),
        end=_moved(at.end, node),
        returned=_moved(at.returned, node),
    )

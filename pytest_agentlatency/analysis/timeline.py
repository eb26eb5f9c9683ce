"""Where the time of a run went: every call and tool as activities, resolved by the blocking path into phases.

Owns the definition of each phase as an interval between stamps (DESIGN of phases: docs/measuring.md). Leaves the
resolution of overlaps to `analysis.attribution`.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from pytest_agentlatency.analysis.attribution import Activity, blocking_path, without, work
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase, Span
from pytest_agentlatency.model.recording import Attempt, Pause, Recording, Stamps, ToolRecord
from pytest_agentlatency.model.run import Call

LaneCall = tuple[int, Call]

_LLAMA_SERVER = "llama.cpp"


@dataclass(frozen=True, slots=True)
class Layout:
    """A run's time, resolved."""

    start: Ns | None
    end: Ns | None
    segments: tuple[Span, ...]
    work: Mapping[Phase, Ns]
    lanes: Mapping[int, tuple[Span, ...]] = field(default_factory=dict[int, tuple[Span, ...]])
    """Blocking path of each lane alone, pauses still in."""
    starts: Mapping[int, tuple[Ns, ...]] = field(default_factory=dict[int, tuple[Ns, ...]])
    pauses: tuple[Pause, ...] = ()

    def windows(self, lane: int) -> tuple[tuple[Ns, Ns], ...]:
        """Start and end of each turn of a lane: from its call to the lane's next call, the last to the lane's end."""
        starts = self.starts.get(lane, ())
        if not starts:
            return ()
        path = self.lanes[lane]
        end = path[-1].end if path else starts[-1]
        return tuple(zip(starts, (*starts[1:], end), strict=True))

    def within(self, lane: int, window: tuple[Ns, Ns]) -> tuple[Span, ...]:
        """The part of a lane's path inside a window, pauses taken out."""
        return without(tuple(_clip(self.lanes[lane], window)), self.pauses)

    def paused(self, window: tuple[Ns, Ns]) -> Ns:
        """Nanoseconds of pauses inside a window; overlapping pauses count once."""
        total, covered = 0, window[0]
        for pause in sorted(self.pauses, key=lambda each: each.start):
            start, end = max(pause.start, covered), min(pause.end, window[1])
            if end > start:
                total, covered = total + end - start, end
        return Ns(total)


def lay_out(
    recording: Recording, calls: Sequence[LaneCall], owners: Mapping[int, int], asked_again: Collection[int] = ()
) -> Layout:
    """Resolve a recording's time. Without a stamp on every call nothing is resolved: a hole would pass for overhead.

    `asked_again`: ids of calls that only repeat what an output that failed validation should have done.
    """
    if not calls or any(call.attempts[-1].stamps is None for _, call in calls):
        return Layout(None, None, (), {})
    tree = _Tree(recording.tools, calls, owners, asked_again)
    bounds = recording.bounds or tree.extent
    root = Activity(0, bounds[0], bounds[1], Phase.OVERHEAD, children=tree.top)
    lanes = {lane: blocking_path(tree.lane(lane)) for lane in dict.fromkeys(lane for lane, _ in calls)}
    starts = {lane: tuple(_start(call) for owner, call in calls if owner == lane) for lane in lanes}
    return Layout(
        bounds[0],
        bounds[1],
        without(blocking_path(root), recording.pauses),
        work(root),
        lanes,
        starts,
        recording.pauses,
    )


class _Tree:
    """Activities nested by who started them: a tool holds the calls and tools made in its body."""

    def __init__(
        self,
        tools: Sequence[ToolRecord],
        calls: Sequence[LaneCall],
        owners: Mapping[int, int],
        asked_again: Collection[int],
    ) -> None:
        self._tools, self._calls, self._owners, self._asked_again = tools, calls, owners, asked_again
        self.top = tuple(self._under(None))

    @property
    def extent(self) -> tuple[Ns, Ns]:
        """First and last moment of anything observed."""
        return min(each.start for each in self.top), max(each.end for each in self.top)

    def lane(self, lane: int) -> Activity:
        """One lane alone, as a root from its first call to the end of its last activity."""
        children = [self._call(call, lane) for owner, call in self._calls if owner == lane]
        children += [self._tool(tool) for tool in self._tools if self._owners.get(tool.id) == lane]
        start = min(_start(call) for owner, call in self._calls if owner == lane)
        end = max(child.end for child in children)
        return Activity(0, start, end, Phase.OVERHEAD, lane=lane, children=tuple(children))

    def _under(self, parent: int | None) -> Iterator[Activity]:
        known = {tool.id for tool in self._tools}
        for lane, call in self._calls:
            if call.record.parent == parent or (parent is None and call.record.parent not in known):
                yield self._call(call, lane)
        for tool in self._tools:
            if tool.parent == parent or (parent is None and tool.parent not in known):
                yield self._tool(tool)

    def _call(self, call: Call, lane: int) -> Activity:
        return activity(call, lane, asked_again=call.record.id in self._asked_again)

    def _tool(self, tool: ToolRecord) -> Activity:
        lane = self._owners.get(tool.id)
        children = list(self._under(tool.id))
        if tool.body is not None:
            children += [
                Activity(-tool.id, start, end, Phase.SERIALIZATION, "arguments", lane)
                for start, end in ((tool.start, tool.body[0]), (tool.body[1], tool.end))
                if end > start
            ]
        return Activity(tool.id, tool.start, tool.end, Phase.TOOL, tool.name, lane, tuple(children))


def _start(call: Call) -> Ns:
    stamps = call.attempts[0].stamps
    if call.record.entered is not None:
        return call.record.entered
    return stamps.start if stamps is not None else Ns(0)


def activity(call: Call, lane: int, *, asked_again: bool = False) -> Activity:
    """A call as an activity: its own phases as children, what none of them covers as overhead.

    `asked_again`: the whole call is retry time, with the phases as its details.
    """
    last = _stamps(call.attempts[-1])
    end = max(last.end, call.record.returned or last.end)
    spans = (*_before(call), *_answering(call), *_after(call, last))
    if asked_again:
        spans = tuple(replace(span, phase=Phase.RETRY, detail=str(span.phase)) for span in spans)
    children = tuple(
        Activity(call.record.id, span.start, span.end, span.phase, span.detail, lane)
        for span in spans
        if span.end > span.start
    )
    return Activity(call.record.id, _start(call), end, Phase.OVERHEAD, "sdk", lane, children)


def _stamps(attempt: Attempt) -> Stamps:
    if attempt.stamps is None:
        msg = "a call without stamps has no place on a timeline"
        raise ValueError(msg)
    return attempt.stamps


def _before(call: Call) -> Iterator[Span]:
    """Request made ready, and everything spent on attempts that came to nothing."""
    first, last = _stamps(call.attempts[0]), _stamps(call.attempts[-1])
    yield Span(Phase.SERIALIZATION, _start(call), first.start, "request")
    for attempt, following in zip(call.attempts, call.attempts[1:], strict=False):
        failed = _stamps(attempt)
        yield Span(Phase.RETRY, failed.start, failed.end, "attempt")
        yield Span(Phase.RETRY, failed.end, min(_stamps(following).start, last.start), "backoff")


def _answering(call: Call) -> Iterator[Span]:
    """The attempt that answered: network, then prefill and decode, or both in one where they can't be told apart."""
    stamps = _stamps(call.attempts[-1])
    if call.error and call.milestones.first_token is None:
        yield Span(Phase.RETRY, stamps.start, stamps.end, "attempt")
        return
    sent = stamps.sent if stamps.sent is not None else (stamps.connect or (stamps.start,))[-1]
    if stamps.connect is not None:
        yield Span(Phase.NETWORK, stamps.start, stamps.connect[1], "connect")
        yield Span(Phase.NETWORK, stamps.connect[1], sent, "upload")
    else:
        yield Span(Phase.NETWORK, stamps.start, sent, "upload")
    if not call.splits:
        yield Span(Phase.UNSPLIT, sent, stamps.end)
        return
    yield from _split(call, stamps, sent)


def _split(call: Call, stamps: Stamps, sent: Ns) -> Iterator[Span]:
    begin, first = prefill_bounds(call, sent)
    if begin > sent:
        yield Span(Phase.NETWORK, sent, begin, "queue")
    yield Span(Phase.PREFILL, begin, first)
    last = max(_last_generated(call) or first, first)
    cursor = first
    blocks = [block for block in call.generated if block.start is not None and block.end is not None]
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        until = following.start if following is not None and following.start is not None else last
        until = min(max(until, cursor), last)
        yield Span(Phase.DECODE, cursor, until, block.kind)
        cursor = until
    yield Span(Phase.DECODE, cursor, min(last, stamps.end))


def prefill_bounds(call: Call, sent: Ns) -> tuple[Ns, Ns]:
    """Start and end of prefill as this server lets them be seen.

    By default: request sent -> first generated token. llama.cpp's server sends its headers when prefill starts and its
    first event with the first token, while the first visible part of a tool call comes ten or more tokens later
    (measured against the server's own clock: docs/accuracy.md).
    """
    at = call.milestones
    first = at.first_token if at.first_token is not None else sent
    if _by_llama_server(call) and at.headers is not None and at.first_event is not None:
        return max(sent, at.headers), max(at.first_event, at.headers, sent)
    return sent, max(first, sent)


def _last_generated(call: Call) -> Ns | None:
    """When the last token was generated.

    llama.cpp's server generates the closing tag of a tool call and the end of the message without showing them; its
    last events come when it has.
    """
    arrived = _stamps(call.attempts[-1]).arrived
    if _by_llama_server(call) and arrived and not call.error:
        return arrived[-1]
    return call.milestones.last_token


def _by_llama_server(call: Call) -> bool:
    response = call.attempts[-1].response
    return response is not None and (response.header("server") or "").startswith(_LLAMA_SERVER)


def _after(call: Call, last: Stamps) -> Iterator[Span]:
    returned = call.record.returned
    if returned is not None and returned > last.end:
        yield Span(Phase.SERIALIZATION, last.end, returned, "response")


def _clip(path: Sequence[Span], window: tuple[Ns, Ns]) -> Iterator[Span]:
    """The spans inside a window. They stand in order and don't overlap."""
    first = bisect_right(path, window[0], key=lambda span: span.end)
    for span in takewhile(lambda span: span.start < window[1], islice(path, first, None)):
        start, end = max(span.start, window[0]), min(span.end, window[1])
        if end > start:
            yield Span(span.phase, start, end, span.detail, span.lane)

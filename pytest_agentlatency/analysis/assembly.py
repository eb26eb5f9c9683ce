"""From a recording to a run: whose turn each call is, what its milestones were, which tool belongs to it.

Owns the reading of bytes with times as calls, lanes and turns. Leaves the wire formats to `wire`, the question which
conversation a request continues to `wire.lineage`, and where time went to `analysis.timeline`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_agentlatency.analysis import streamhealth, timeline
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Attempt, CallRecord, Outcome, Recording, ToolRecord
from pytest_agentlatency.model.run import Call, Generated, Lane, Milestones, Run, Turn
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.lineage import Exchange, Placement, place_all
from pytest_agentlatency.wire.message import Answer, Prompt, Provider

FIRST_FAILURE = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """A call beside what its bytes were read as."""

    call: Call
    prompt: Prompt
    """The effective prompt: a history that the server holds is filled in as far as the run knows it."""
    answer: Answer
    lane: int
    turn: int
    whole: bool = True
    """The history is known completely."""


def assemble(recording: Recording, *, provenance: Provenance = Provenance.MEASURED) -> Run:
    """The run that a recording tells; `provenance` is that of its times. Odd bytes become notes, never errors."""
    return from_readings(read(recording), recording, provenance=provenance)


def read(recording: Recording) -> tuple[Reading, ...]:
    """Each model call of a recording with its prompt and answer, in the order in which the calls were made."""
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in recording.attempts:
        attempts[attempt.call].append(attempt)
    read_ = [
        (record, tries, provider, provider.prompt(tries[-1].request), _answer(provider, tries[-1]))
        for record in sorted(recording.calls, key=lambda each: each.id)
        if (tries := tuple(attempts[record.id])) and (provider := registry.recognise(tries[-1].request))
    ]
    placements = place_all(_exchange(prompt, answer, tries) for _, tries, _, prompt, answer in read_)
    return tuple(
        Reading(
            _call(record, tries, provider.name, placement, answer),
            placement.prompt,
            answer,
            placement.lane,
            placement.turn,
            placement.whole,
        )
        for (record, tries, provider, _, answer), placement in zip(read_, placements, strict=True)
    )


def _answer(provider: Provider, attempt: Attempt) -> Answer:
    return provider.answer(attempt.response) if attempt.response is not None else Answer()


def _exchange(prompt: Prompt, answer: Answer, tries: tuple[Attempt, ...]) -> Exchange:
    first, last = tries[0].stamps, tries[-1].stamps
    return Exchange(prompt, answer, first.start if first else None, last.end if last else None)


def from_readings(
    readings: Sequence[Reading], recording: Recording, *, provenance: Provenance = Provenance.MEASURED
) -> Run:
    """Lay readings out as lanes and turns on the recording's timeline."""
    owners = tool_owners(readings, recording.tools)
    calls = [(each.lane, each.call) for each in readings]
    layout = timeline.lay_out(recording, calls, owners, asked_again(readings, recording.tools, owners))
    lanes = tuple(_lane(number, readings, layout, owners, recording, provenance) for number in _lanes_of(readings))
    return Run(
        lanes=lanes,
        segments=layout.segments,
        start=layout.start,
        end=layout.end,
        tools=recording.tools,
        pauses=recording.pauses,
        paused=layout.paused((layout.start, layout.end))
        if layout.start is not None and layout.end is not None
        else Ns(0),
        work=layout.work,
        facts=recording.facts,
        provenance=provenance,
        notes=tuple(_notes(readings, layout)),
    )


def _lanes_of(readings: Sequence[Reading]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(reading.lane for reading in readings))


def _call(
    record: CallRecord, attempts: tuple[Attempt, ...], provider: str, placement: Placement, answer: Answer
) -> Call:
    last = attempts[-1]
    call = Call(
        record=record,
        attempts=attempts,
        provider=provider,
        model=answer.model or placement.prompt.model,
        milestones=_milestones(record, attempts, answer),
        usage=answer.usage,
        streamed=answer.streamed,
        answer_id=answer.id,
        stop_reason=answer.stop_reason,
        generated=_generated(last, answer),
        error=_error(last, answer),
    )
    return replace(call, flags=streamhealth.flags(call, answer))


def _error(last: Attempt, answer: Answer) -> str:
    if answer.error:
        return answer.error
    if last.failure is not None:
        return last.failure.kind
    if last.response is not None and last.response.status >= FIRST_FAILURE:
        return f"HTTP {last.response.status}"
    return "" if last.outcome in {Outcome.COMPLETE, Outcome.CLOSED} else last.outcome.value


def _milestones(record: CallRecord, attempts: tuple[Attempt, ...], answer: Answer) -> Milestones:
    stamps = attempts[-1].stamps
    if stamps is None:
        return Milestones()
    marks = answer.marks

    def arrival(index: int | None) -> Ns | None:
        return stamps.arrived[index] if index is not None and index < len(stamps.arrived) else None

    return Milestones(
        # With retries, TTFT is that of the attempt that answered: what came before it is the retry phase.
        call=record.entered if record.entered is not None and len(attempts) == 1 else stamps.start,
        sent=stamps.sent,
        headers=stamps.headers,
        first_event=arrival(marks.first_event),
        first_token=arrival(marks.first_token),
        first_output=arrival(marks.first_output),
        first_text=arrival(marks.first_text),
        last_token=arrival(marks.last_token),
        end=stamps.end,
        returned=record.returned,
        delivered=record.delivered,
    )


def _generated(last: Attempt, answer: Answer) -> tuple[Generated, ...]:
    arrived = last.stamps.arrived if last.stamps else ()

    def at(index: int | None) -> Ns | None:
        return arrived[index] if index is not None and index < len(arrived) else None

    return tuple(
        Generated(block.kind, at(block.first_chunk), at(block.last_chunk), block.name, block.id)
        for block in answer.blocks
    )


def tool_owners(readings: Sequence[Reading], tools: Sequence[ToolRecord]) -> Mapping[int, int]:
    """Tool record id -> lane. A tool belongs to the lane whose answer asked for it last before it started.

    A tool that no answer asked for by name goes to the lane with the latest call before it.
    """
    asked: set[tuple[int, int]] = set()
    owners: dict[int, int] = {}
    latest = sorted(readings, key=_began, reverse=True)
    ages = [-_began(each) for each in latest]
    for tool in sorted(tools, key=lambda each: (each.start, each.id)):
        before = latest[bisect_left(ages, -tool.start) :]
        candidates = [each for each in before if each.call.record.parent == tool.parent] or before or latest
        if candidates:
            owners[tool.id] = (_asker(candidates, tool, asked) or candidates[0]).lane
    return owners


def asked_again(readings: Sequence[Reading], tools: Sequence[ToolRecord], owners: Mapping[int, int]) -> frozenset[int]:
    """Ids of the calls that answer nothing but rejected arguments: every tool call of the turn before was one."""
    found: set[int] = set()
    if not any(tool.rejected for tool in tools):
        return frozenset()
    for lane in _lanes_of(readings):
        mine = sorted((each for each in readings if each.lane == lane), key=_began)
        ran = [tool for tool in tools if owners.get(tool.id) == lane]
        for before, now in pairwise(mine):
            between = [tool for tool in ran if _began(before) <= tool.start < _began(now)]
            if between and all(tool.rejected for tool in between):
                found.add(now.call.record.id)
    return frozenset(found)


def _asker(candidates: Sequence[Reading], tool: ToolRecord, asked: set[tuple[int, int]]) -> Reading | None:
    """The first of the candidates, the latest first, that asked for the tool and hasn't had its answer."""
    for reading in candidates:
        for index, block in enumerate(reading.answer.blocks):
            key = (reading.call.record.id, index)
            if block.kind == "tool_json" and block.name == tool.name and key not in asked:
                asked.add(key)
                return reading
    return None


def _began(reading: Reading) -> Ns:
    return reading.call.milestones.call or Ns(0)


def _lane(
    number: int,
    readings: Sequence[Reading],
    layout: timeline.Layout,
    owners: Mapping[int, int],
    recording: Recording,
    provenance: Provenance,
) -> Lane:
    mine = [each for each in readings if each.lane == number]
    windows = layout.windows(number)
    tools = [tool for tool in recording.tools if owners.get(tool.id) == number]
    turns = tuple(
        _turn(position, reading, windows[position - 1] if windows else None, layout, tools, provenance)
        for position, reading in enumerate(mine, start=1)
    )
    parent = mine[0].call.record.parent
    return Lane(number, turns, owners.get(parent) if parent is not None else None)


def _turn(
    position: int,
    reading: Reading,
    window: tuple[Ns, Ns] | None,
    layout: timeline.Layout,
    tools: Sequence[ToolRecord],
    provenance: Provenance,
) -> Turn:
    start, end = window or (None, None)
    until = max(window[1], window[0] + 1) if window else 0
    return Turn(
        number=position,
        lane=reading.lane,
        call=reading.call,
        start=start,
        end=end,
        segments=layout.within(reading.lane, window) if window else (),
        tools=tuple(tool for tool in tools if start is not None and start <= tool.start < until),
        paused=layout.paused(window) if window else Ns(0),
        provenance=provenance if window else Provenance.UNKNOWN,
    )


def _notes(readings: Sequence[Reading], layout: timeline.Layout) -> list[str]:
    notes: list[str] = []
    unknown = sorted({event for each in readings for event in each.answer.unknown_events})
    if unknown:
        notes.append(f"unknown stream events kept without effect: {', '.join(unknown)}")
    if readings and layout.start is None:
        notes.append("the recording carries no times: every duration is n/a")
    partial = [each for each in readings if not each.whole]
    if partial:
        notes.append(f"{len(partial)} call(s) continue a history that the server holds and this run doesn't know")
    return notes

"""The subjects that are times, or shares of time: of phases, of calls, of turns, of the run.

Owns why a time may be missing. Refuses to judge.
"""

from collections.abc import Callable, Iterable

from pytest_agentlatency.budgets.figure import Figure, Unit, missing
from pytest_agentlatency.budgets.subjects import Measure, Question, Subject, place
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Call, Run, Turn

Reader = Callable[[Call], float | None]


def why_unsplit(call: Call) -> str:
    """Why prefill and decode of a call can't be told apart; empty when they can."""
    if call.splits:
        return ""
    if not call.streamed:
        return "the call was not streamed"
    if "buffered" in call.flags:
        return "the stream was buffered on the way"
    return "the call gave no token"


def _why_no_time(question: Question, phase: Phase | None = None) -> str:
    """Why a time is missing, naming the turn when the run as a whole is asked."""
    if (question.turn or question.run).duration is None:
        return "no timings: they were not recorded"
    whys = ((turn, why_unsplit(turn.call)) for turn in question.turns if phase)
    turn, why = next(((turn, why) for turn, why in whys if why), (None, "prefill and decode can't be told apart"))
    return f"{place(turn)}: {why}" if turn and question.turn is None else why


def _figure(value: float | None, unit: Unit, provenance: Provenance, why: Callable[[], str]) -> Figure:
    return missing(unit, why()) if value is None else Figure(value, unit, provenance)


def _phase_time(phase: Phase) -> Measure:
    def measure(question: Question) -> Figure:
        owner = question.turn or question.run
        value: float | None = owner.time(phase)
        if question.tool and value is not None:
            value = _tool_time(owner, question.tool)
        return _figure(value, Unit.TIME, owner.provenance, lambda: _why_no_time(question, phase))

    return measure


def _tool_time(owner: Turn | Run, tool: str) -> int:
    return sum(span.duration for span in owner.segments if span.phase is Phase.TOOL and span.detail == tool)


def _phase_share(phase: Phase) -> Measure:
    time = _phase_time(phase)

    def measure(question: Question) -> Figure:
        part, whole = time(question), (question.turn or question.run).duration
        if part.value is None or whole is None:
            return missing(Unit.SHARE, part.reason)
        detail = f"{units.duration(part.value)} of {units.duration(whole)}"
        return Figure(part.value / whole if whole else 0.0, Unit.SHARE, part.provenance, detail=detail)

    return measure


def _duration(question: Question) -> Figure:
    owner = question.turn or question.run
    return _figure(owner.duration, Unit.TIME, owner.provenance, lambda: _why_no_time(question))


def _call_time(read: Reader) -> Measure:
    def measure(question: Question) -> Figure:
        turn = question.one
        why = why_unsplit(turn.call) or "it did not happen in this call, or was not stamped"
        return _figure(read(turn.call), Unit.TIME, turn.provenance, lambda: why)

    return measure


def _tpot(question: Question) -> Figure:
    turn = question.one
    why = why_unsplit(turn.call) or "fewer than two output tokens, or no count of them"
    return _figure(turn.call.tpot, Unit.TIME, turn.provenance, lambda: why)


def _delivered(question: Question) -> Figure:
    """Call to hand-over, with how long after the first token that was."""
    turn = question.one
    call, first = turn.call, turn.call.ttft
    if call.delivered is None:
        when = " when it was recorded; record it again" if call.verdict else ""
        return missing(Unit.TIME, f"the agent didn't call agent_run.delivered() in this turn{when}")
    held = None if first is None else call.delivered - first
    detail = f"{units.duration(held)} behind the first token" if held and held > 0 else ""
    return Figure(call.delivered, Unit.TIME, turn.provenance, detail=detail)


def _phases() -> Iterable[Subject]:
    for phase in Phase:
        tool = phase is Phase.TOOL
        share, time = _phase_share(phase), _phase_time(phase)
        yield Subject(f"{phase} share", Unit.SHARE, share, takes_tool=tool, clock=True, noun=str(phase))
        yield Subject(f"{phase} time", Unit.TIME, time, takes_tool=tool, clock=True, noun=str(phase))


def _at_turns(name: str, read: Reader, *aliases: str) -> Subject:
    return Subject(name, Unit.TIME, _call_time(read), in_total=False, clock=True, aliases=aliases)


def _first_event(call: Call) -> float | None:
    made, first = call.milestones.call, call.milestones.first_event
    return None if made is None or first is None else first - made


SUBJECTS: tuple[Subject, ...] = (
    *_phases(),
    _at_turns("ttft", lambda call: call.ttft, "time to first token"),
    _at_turns("time to first event", _first_event),
    _at_turns("time to first output", lambda call: call.time_to_first_output),
    _at_turns("time to first text", lambda call: call.time_to_first_text),
    Subject("delivered", Unit.TIME, _delivered, in_total=False, clock=True),
    Subject("tpot", Unit.TIME, _tpot, in_total=False, clock=True, aliases=("time per output token",)),
    Subject("total", Unit.TIME, _duration, at_turn=False, clock=True, aliases=("total time",)),
    Subject("turn time", Unit.TIME, _duration, in_total=False, clock=True),
)

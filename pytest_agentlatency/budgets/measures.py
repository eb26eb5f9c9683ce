"""The subjects that come with the package, each read off a run or asked of an analysis.

Owns where each figure comes from and why it may be missing. Refuses to judge.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

from pytest_agentlatency.analysis.kvcache import NoSpec, known, kv_bytes
from pytest_agentlatency.budgets.figure import Figure, Unit, missing
from pytest_agentlatency.budgets.subjects import Measure, Question, Subject
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Call, Run, Turn
from pytest_agentlatency.model.usage import Usage

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
    whys = ((turn, why_unsplit(turn.call)) for turn in _turns(question) if phase)
    turn, why = next(((turn, why) for turn, why in whys if why), (None, "prefill and decode can't be told apart"))
    return f"{_place(turn)}: {why}" if turn and question.turn is None else why


def _place(turn: Turn) -> str:
    return f"turn {turn.number}" if turn.lane == 1 else f"lane {turn.lane} turn {turn.number}"


def _figure(value: float | None, unit: Unit, provenance: Provenance, why: Callable[[], str]) -> Figure:
    return missing(unit, why()) if value is None else Figure(value, unit, provenance)


# --- times


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
        turn = _one(question)
        why = why_unsplit(turn.call) or "it did not happen in this call, or was not stamped"
        return _figure(read(turn.call), Unit.TIME, turn.provenance, lambda: why)

    return measure


def _tpot(question: Question) -> Figure:
    turn = _one(question)
    why = why_unsplit(turn.call) or "fewer than two output tokens, or no count of them"
    return _figure(turn.call.tpot, Unit.TIME, turn.provenance, lambda: why)


def _delivered(question: Question) -> Figure:
    """Call to hand-over, with how long after the first token that was."""
    turn = _one(question)
    call, first = turn.call, turn.call.ttft
    if call.delivered is None:
        when = " when it was recorded; record it again" if call.verdict else ""
        return missing(Unit.TIME, f"the agent didn't call agent_run.delivered() in this turn{when}")
    held = None if first is None else call.delivered - first
    detail = f"{units.duration(held)} behind the first token" if held and held > 0 else ""
    return Figure(call.delivered, Unit.TIME, turn.provenance, detail=detail)


def _one(question: Question) -> Turn:
    if question.turn is None:
        msg = "this subject has no total; the grammar asks it at turns only"
        raise ValueError(msg)
    return question.turn


# --- counts


def _counted(value: float) -> Figure:
    return Figure(value, Unit.COUNT)


def _retries(question: Question) -> Figure:
    calls = [question.turn.call] if question.turn else question.run.calls
    return _counted(sum(call.retries for call in calls))


def _tool_calls(question: Question) -> Figure:
    tools = (question.turn or question.run).tools
    return _counted(sum(1 for tool in tools if question.tool in ("", tool.name)))


def _unused_tools(question: Question) -> Figure:
    ask = question.figures.unused_tools
    if ask is None:
        return missing(Unit.COUNT, "the tools offered to the model are not known")
    names = ask(question.run)
    return Figure(len(names), Unit.COUNT, detail=", ".join(names))


# --- tokens and bytes


def _turns(question: Question) -> tuple[Turn, ...]:
    return (question.turn,) if question.turn else question.run.all_turns


def _why_no_tokens(usage: Usage) -> str:
    return "the provider summed several hidden passes" if usage.multi_pass else "the provider reported no such count"


def _context_of(call: Call) -> float | None:
    return None if call.usage.multi_pass else call.usage.context


Origin = Callable[[Usage], Provenance]


def _of_input(usage: Usage) -> Provenance:
    return usage.provenance


def _of_output(usage: Usage) -> Provenance:
    return usage.output_provenance


def _summed(read: Reader, origin: Origin = _of_input) -> Measure:
    def measure(question: Question) -> Figure:
        return _sum(_turns(question), read, origin)

    return measure


def _sum(turns: Iterable[Turn], read: Reader, origin: Origin = _of_input) -> Figure:
    total, provenances = 0.0, [Provenance.MEASURED]
    for turn in turns:
        value = read(turn.call)
        if value is None:
            return missing(Unit.TOKENS, f"{_place(turn)}: {_why_no_tokens(turn.call.usage)}")
        total += value
        provenances.append(origin(turn.call.usage))
    return Figure(total, Unit.TOKENS, weakest(provenances))


def _cached_share(question: Question) -> Figure:
    turns = _turns(question)
    read, context = _sum(turns, _cached), _sum(turns, lambda call: call.usage.context)
    if read.value is None or context.value is None:
        return missing(Unit.SHARE, context.reason)
    return Figure(read.value / context.value if context.value else 0.0, Unit.SHARE, context.provenance)


def _largest_step(question: Question) -> Figure:
    """Largest rise of the context from one turn of the main lane to the next, or the rise at one turn."""
    turns = question.run.turns
    pairs = [(a, b) for a, b in pairwise(turns) if question.turn is None or b.number == question.turn.number]
    steps = [(_step(a, b), b) for a, b in pairs]
    if not steps:
        return missing(Unit.TOKENS, "there is no turn before to compare with")
    unknown = next((step for step, _ in steps if step.value is None), None)
    return unknown or max((step for step, _ in steps), key=lambda step: step.value or 0)


def _step(earlier: Turn, later: Turn) -> Figure:
    before, after = _sum([earlier], _context_of), _sum([later], _context_of)
    if before.value is None or after.value is None:
        return before if before.value is None else after
    provenance = weakest([before.provenance, after.provenance])
    return Figure(
        after.value - before.value, Unit.TOKENS, provenance, detail=f"turn {earlier.number} to {later.number}"
    )


def _tool_results(question: Question) -> Figure:
    ask = question.figures.results
    if ask is None:
        return missing(Unit.TOKENS, "the tokens of tool results were not counted")
    at = question.turn.number if question.turn else None
    items = [r for r in ask(question.run) if at in (None, r.turn) and question.tool in ("", r.tool)]
    provenance = weakest([Provenance.MEASURED, *(item.provenance for item in items)])
    largest = max(items, key=lambda item: item.tokens, default=None)
    if largest is None:
        return Figure(0, Unit.TOKENS, provenance)
    detail = f"{largest.tool!r} at turn {largest.turn}: {largest.tokens:,} tokens"
    value = largest.tokens if question.each else sum(item.tokens for item in items)
    return Figure(value, Unit.TOKENS, provenance, detail=detail)


def _results_of_context(question: Question) -> Figure:
    turn, ask = _one(question), question.figures.held
    context = _context_of(turn.call)
    if ask is None or context is None:
        reason = "the tokens of tool results were not counted" if ask is None else _why_no_tokens(turn.call.usage)
        return missing(Unit.SHARE, reason)
    held = ask(question.run, turn, question.tool)
    if held.value is None:
        return missing(Unit.SHARE, held.reason)
    return Figure(held.value / context if context else 0.0, Unit.SHARE, held.provenance)


def _reread(question: Question) -> Figure:
    ask = question.figures.reread
    return ask(question.run, question.turn) if ask else missing(Unit.TOKENS, "re-read tokens were not worked out")


def _kv_bytes(question: Question) -> Figure:
    """Cache of the turn's context and output, by the model's published or given configuration."""
    turn = _one(question)
    call, tokens = turn.call, _sum([turn], _held_by_cache)
    spec = question.figures.kv_specs.get(call.model) or known(call.model)
    if isinstance(spec, NoSpec) or tokens.value is None:
        return missing(Unit.BYTES, spec.reason if isinstance(spec, NoSpec) else tokens.reason)
    return Figure(kv_bytes(spec, round(tokens.value)), Unit.BYTES, Provenance.ESTIMATED)


def _held_by_cache(call: Call) -> float | None:
    context, output = _context_of(call), call.usage.output
    return None if context is None or output is None else context + output


def _request_bytes(question: Question) -> Figure:
    sizes = [len(turn.call.attempts[-1].request.body) for turn in _turns(question) if turn.call.attempts]
    return Figure(sum(sizes), Unit.BYTES) if sizes else missing(Unit.BYTES, "no request was seen")


def _phases() -> Iterable[Subject]:
    for phase in Phase:
        tool = phase is Phase.TOOL
        share, time = _phase_share(phase), _phase_time(phase)
        yield Subject(f"{phase} share", Unit.SHARE, share, takes_tool=tool, clock=True, noun=str(phase))
        yield Subject(f"{phase} time", Unit.TIME, time, takes_tool=tool, clock=True, noun=str(phase))


def _at_turns(name: str, read: Reader, *aliases: str) -> Subject:
    return Subject(name, Unit.TIME, _call_time(read), in_total=False, clock=True, aliases=aliases)


def _cached(call: Call) -> float | None:
    return None if call.usage.uncached is None else call.usage.cache_read


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
    Subject("turns", Unit.COUNT, lambda q: _counted(len(q.run.turns)), at_turn=False),
    Subject("calls", Unit.COUNT, lambda q: _counted(len(q.run.calls)), at_turn=False),
    Subject("retries", Unit.COUNT, _retries),
    Subject("tool calls", Unit.COUNT, _tool_calls, takes_tool=True),
    Subject("unused tools", Unit.COUNT, _unused_tools, at_turn=False),
    Subject("context tokens", Unit.TOKENS, _summed(_context_of), in_total=False, aliases=("context",)),
    Subject("output tokens", Unit.TOKENS, _summed(lambda call: call.usage.output, _of_output)),
    Subject("thinking tokens", Unit.TOKENS, _summed(lambda call: call.usage.thinking, _of_output)),
    Subject("prefill work", Unit.TOKENS, _summed(lambda call: call.usage.prefill_work)),
    Subject("cached tokens", Unit.TOKENS, _summed(_cached)),
    Subject("cached share", Unit.SHARE, _cached_share, noun="cached"),
    Subject("largest step", Unit.TOKENS, _largest_step),
    Subject(
        "tool result tokens",
        Unit.TOKENS,
        _tool_results,
        aliases=("tool results",),
        takes_tool=True,
        takes_each=True,
        of_context=_results_of_context,
    ),
    Subject("re-read cost", Unit.TOKENS, _reread),
    Subject("kv cache", Unit.BYTES, _kv_bytes, in_total=False),
    Subject("request bytes", Unit.BYTES, _request_bytes),
)

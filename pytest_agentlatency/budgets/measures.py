"""The subjects that come with the package: times are `timing`'s, counts, tokens and bytes are here.

Owns where each of these comes from, a run or an analysis, and why it may be missing. Refuses to judge.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

from pytest_agentlatency.analysis.kvcache import NoSpec, known, kv_bytes
from pytest_agentlatency.budgets import timing
from pytest_agentlatency.budgets.figure import Figure, Unit, missing
from pytest_agentlatency.budgets.subjects import Measure, Question, Subject, place
from pytest_agentlatency.budgets.timing import Reader
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Call, Turn
from pytest_agentlatency.model.usage import Usage


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
        return _sum(question.turns, read, origin)

    return measure


def _sum(turns: Iterable[Turn], read: Reader, origin: Origin = _of_input) -> Figure:
    total, provenances = 0.0, [Provenance.MEASURED]
    for turn in turns:
        value = read(turn.call)
        if value is None:
            return missing(Unit.TOKENS, f"{place(turn)}: {_why_no_tokens(turn.call.usage)}")
        total += value
        provenances.append(origin(turn.call.usage))
    return Figure(total, Unit.TOKENS, weakest(provenances))


def _cached_share(question: Question) -> Figure:
    turns = question.turns
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
    turn, ask = question.one, question.figures.held
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
    turn = question.one
    call, tokens = turn.call, _sum([turn], _held_by_cache)
    spec = question.figures.kv_specs.get(call.model) or known(call.model)
    if isinstance(spec, NoSpec) or tokens.value is None:
        return missing(Unit.BYTES, spec.reason if isinstance(spec, NoSpec) else tokens.reason)
    return Figure(kv_bytes(spec, round(tokens.value)), Unit.BYTES, Provenance.ESTIMATED)


def _held_by_cache(call: Call) -> float | None:
    context, output = _context_of(call), call.usage.output
    return None if context is None or output is None else context + output


def _request_bytes(question: Question) -> Figure:
    sizes = [len(turn.call.attempts[-1].request.body) for turn in question.turns if turn.call.attempts]
    return Figure(sum(sizes), Unit.BYTES) if sizes else missing(Unit.BYTES, "no request was seen")


def _cached(call: Call) -> float | None:
    return None if call.usage.uncached is None else call.usage.cache_read


SUBJECTS: tuple[Subject, ...] = (
    *timing.SUBJECTS,
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

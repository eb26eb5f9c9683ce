"""The one next step that a broken budget offers, in the order in which steps pay.

Shrink the context, reuse the prefix, trim tool output, a faster model: that is the order. Owns it, and when a run
shows that a step would help. Refuses to promise a saving: that is a what-if's.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.model import units
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance, weakest
from pytest_agentlatency.model.run import Run

Lever = Callable[[Run, Figures], str]
"""The step, with the numbers that speak for it; empty when the run doesn't show that it would help."""

_GROWN = 1.5  # last context against the first, from which on older turns are worth summarising
_CACHED = 0.5  # share of the input read from a cache below which the prefix is worth a look
_HEAVY = 0.2  # share of the largest context from which on one tool result is worth trimming


def next_step(subject: str, run: Run, figures: Figures) -> str:
    """One sentence for a broken budget over a subject; the first lever, of those that move it, that the run shows."""
    return next(filter(None, (lever(run, figures) for lever in _levers(subject))), "")


def follows_context(subject: str) -> bool:
    """Whether a subject's figure goes with the context's size."""
    return _shrink in _levers(subject)


def _shrink(run: Run, _figures: Figures) -> str:
    known = _contexts(run)
    if len(known) < 2 or known[-1].value < _GROWN * known[0].value:  # noqa: PLR2004  growth needs two
        return ""
    sizes = f"{known[0]} to {known[-1]} tokens"
    return f"shrink the context: it grew from {sizes} over {len(known)} turns; summarise or drop older turns"


def _reuse(run: Run, figures: Figures) -> str:
    later = [turn.call.usage for turn in run.turns[1:]]
    context = sum(usage.context or 0 for usage in later)
    read = sum(usage.cache_read for usage in later)
    if not context or read >= _CACHED * context:
        return ""
    first = next(iter(figures.stability(run, ()).breaks), None) if figures.stability else None
    where = f"; it first broke at turn {first.turn} ({first.reason})" if first else ""
    share = units.share(read / context, weakest(usage.provenance for usage in later))
    return f"reuse the prefix: {share} of the input after turn 1 came from a cache{where}"


def _trim(run: Run, figures: Figures) -> str:
    results = figures.results(run) if figures.results else ()
    largest = max(results, key=lambda result: result.tokens, default=None)
    if largest is None or largest.tokens < _HEAVY * max((each.value for each in _contexts(run)), default=0):
        return ""
    size = units.tokens(largest.tokens, largest.provenance)
    return (
        f"trim tool output: {largest.tool!r} brought {size} tokens at turn {largest.turn}, and they stay in the context"
    )


def _faster(run: Run, _figures: Figures) -> str:
    share = run.share(Phase.DECODE)
    return (
        f"a faster model or a shorter answer: decode takes {units.share(share, run.provenance)} of the run"
        if share
        else ""
    )


def _tool(run: Run, _figures: Figures) -> str:
    times: dict[str, int] = {}
    for span in run.segments:
        if span.phase is Phase.TOOL:
            times[span.detail] = times.get(span.detail, 0) + span.duration
    name = max(times, key=lambda tool: times[tool], default="")
    if not name:
        return ""
    waited = units.duration(times[name], run.provenance)
    return f"make tool {name!r} faster, or call it less: the run waits {waited} for it"


def _unused(run: Run, figures: Figures) -> str:
    names = figures.unused_tools(run) if figures.unused_tools else ()
    return f"don't offer {', '.join(names)}: every turn sends the definitions" if names else ""


def _loop(run: Run, _figures: Figures) -> str:
    known = _contexts(run)
    cost = f": each further one sends {known[-1]} tokens again" if known else ""
    return f"make fewer calls{cost}"


def _retry(run: Run, _figures: Figures) -> str:
    retried = [turn for turn in run.all_turns if turn.call.retries]
    return f"see why turn {retried[0].number} was tried {retried[0].call.retries + 1} times" if retried else ""


def _largest(run: Run, _figures: Figures) -> str:
    phases = run.phases
    if not phases:
        return ""
    phase = max(phases, key=lambda each: phases[each])
    share = run.share(phase)
    return f"start with {phase}: it takes {units.share(share, run.provenance)} of the run" if share else ""


@dataclass(frozen=True, slots=True)
class _Context:
    """Size of one turn's context; as text with the mark of its provenance."""

    value: int
    provenance: Provenance

    def __str__(self) -> str:
        return units.tokens(self.value, self.provenance)


def _contexts(run: Run) -> list[_Context]:
    usages = [turn.call.usage for turn in run.turns if not turn.call.usage.multi_pass]
    return [_Context(usage.context, usage.provenance) for usage in usages if usage.context is not None]


_ORDER: tuple[Lever, ...] = (_shrink, _reuse, _trim, _faster, _largest)
_BY_WORD: tuple[tuple[str, tuple[Lever, ...]], ...] = (
    ("tool result", (_trim, _shrink)),
    ("largest step", (_trim, _shrink)),
    ("unused tools", (_unused,)),
    ("tool calls", (_loop,)),
    ("tool", (_tool, _largest)),
    ("retr", (_retry,)),
    ("turns", (_loop,)),
    ("calls", (_loop,)),
    ("decode", (_faster,)),
    ("tpot", (_faster,)),
    ("output tokens", (_faster,)),
    ("thinking", (_faster,)),
    ("cached", (_reuse,)),
    ("prefix", (_reuse,)),
    ("overhead", (_largest,)),
    ("serialization", (_largest,)),
    ("network", (_largest,)),
)


def _levers(subject: str) -> tuple[Lever, ...]:
    return next((levers for word, levers in _BY_WORD if word in subject), _ORDER)

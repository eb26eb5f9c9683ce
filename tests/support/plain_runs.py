"""Runs built from plain numbers: a turn is a list of (phase, milliseconds), laid end to end."""

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase, Span
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Attempt, CallRecord, Request, ToolRecord
from pytest_agentlatency.model.run import Call, Lane, Milestones, Run, Turn, totals
from pytest_agentlatency.model.usage import Tokens, Usage

MS = 1_000_000
Parts = Sequence[tuple[str, float]] | Sequence[tuple[str, float, str]]


def usage(context: int | None, *, output: int | None = 40, cached: int = 0, **more: Any) -> Usage:
    uncached = None if context is None else Tokens(context - cached)
    provenance = more.pop("provenance", Provenance.MEASURED)
    generated = None if output is None else Tokens(output)
    return Usage(uncached, Tokens(cached), Tokens(0), generated, provenance=provenance, **more)


def call(
    number: int, used: Usage, *, at: float = 0, prefill: float | None = None, decode: float = 0, **more: Any
) -> Call:
    """Call number `number`, made at `at` ms; first token `prefill` ms later (None: no token seen)."""
    first = None if prefill is None else Ns(round((at + prefill) * MS))
    last = None if first is None else Ns(first + round(decode * MS))
    stones = Milestones(
        call=Ns(round(at * MS)), first_token=first, first_output=first, first_text=first, last_token=last
    )
    attempts = tuple(
        Attempt(number, Request("POST", "https://model.test", body=b"{}")) for _ in range(more.pop("tries", 1))
    )
    fields: dict[str, Any] = {"streamed": True, "provider": "anthropic", "model": "m", "milestones": stones} | more
    return Call(CallRecord(number), attempts, usage=used, **fields)


def turn(
    number: int,
    parts: Parts = (("prefill", 500), ("decode", 400), ("tool", 100)),
    *,
    used: Usage | None = None,
    at: float = 0,
    lane: int = 1,
    **more: Any,
) -> Turn:
    """One turn that starts at `at` ms; its parts follow each other without a gap."""
    spans, clock = [], round(at * MS)
    for part in parts:
        end = clock + round(part[1] * MS)
        spans.append(Span(Phase(part[0]), Ns(clock), Ns(end), *part[2:]))
        clock = end
    times: dict[str, float] = {}
    for part in parts:
        times[part[0]] = times.get(part[0], 0) + part[1]
    first = times.get("prefill")
    tools = tuple(ToolRecord(100 * number, s.detail, s.start, s.end) for s in spans if s.phase is Phase.TOOL)
    provenance = more.pop("provenance", Provenance.MEASURED)
    made = call(number, used or usage(1000 * number), at=at, prefill=first, decode=times.get("decode", 0), **more)
    return Turn(number, lane, made, Ns(round(at * MS)), Ns(clock), tuple(spans), tools, provenance=provenance)


def run_of(*turns: Turn, **more: Any) -> Run:
    """A run of one lane whose turns follow each other."""
    segments = tuple(span for each in turns for span in each.segments)
    work: Mapping[Phase, Ns] = totals(segments)
    tools = tuple(tool for each in turns for tool in each.tools)
    lanes = (Lane(1, turns),) if turns else ()
    fields: dict[str, Any] = {"segments": segments, "work": work, "tools": tools, "lanes": lanes} | more
    return Run(start=turns[0].start if turns else None, end=turns[-1].end if turns else None, **fields)


def laid_out(*rows: Parts, contexts: Sequence[int] = (), **more: Any) -> Run:
    """A run of one turn a row, one after the other, with the given context tokens."""
    made, clock = [], 0.0
    for index, parts in enumerate(rows):
        context = contexts[index] if contexts else 1000 * (index + 1)
        made.append(turn(index + 1, parts, used=usage(context), at=clock))
        clock += sum(part[1] for part in parts)
    return run_of(*made, **more)


def grown(*contexts: int, **more: Any) -> Run:
    """A run of equal turns with the given context tokens."""
    return laid_out(*([(("prefill", 500), ("decode", 400), ("tool", 100))] * len(contexts)), contexts=contexts, **more)

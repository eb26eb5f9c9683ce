"""A run and its judgements as plain JSON types, for other programs.

Owns the schema and its version. Times are integer nanoseconds, shares fractions 0-1 of six digits, unknown is null.
Keys come in a fixed order, so that two files of the same run are equal byte for byte.
"""

from collections.abc import Mapping, Sequence

from pytest_agentlatency.budgets.phrase import StablePrefix
from pytest_agentlatency.budgets.verdict import Judgement, Point
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.run import Call, Change, Lane, Retiming, Run, Turn

VERSION = 1
"""1: the first. A reader may rely on keys staying; new ones may come without a new version."""

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def to_json(run: Run, judgements: Sequence[Judgement] = ()) -> dict[str, Json]:
    """Everything that a reader of figures needs of a run; no request or answer text."""
    return {
        "schema": "agentlatency.run",
        "version": VERSION,
        "test": run.facts.test,
        "recorded": run.facts.recorded,
        "counter": run.facts.counter,
        "provenance": str(run.provenance),
        "duration_ns": run.duration,
        "paused_ns": run.paused,
        "phases": _phases(run),
        "work_ns": {str(phase): run.work[phase] for phase in Phase if phase in run.work},
        "turns_made": len(run.all_turns),
        "turns_recorded": run.recorded_turns,
        "lanes": [_lane(lane) for lane in run.lanes],
        "budgets": [_judgement(each) for each in judgements],
        "notes": list(run.notes),
    }


def _phases(owner: Run | Turn) -> dict[str, Json]:
    """Every phase that occurs. A null share: some call couldn't be split, and the time is the least it can be."""
    return {str(phase): {"ns": time, "share": _share(owner.share(phase))} for phase, time in owner.phases.items()}


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _lane(lane: Lane) -> dict[str, Json]:
    return {"id": lane.id, "parent": lane.parent, "turns": [_turn(turn) for turn in lane.turns]}


def _turn(turn: Turn) -> dict[str, Json]:
    return {
        "number": turn.number,
        "duration_ns": turn.duration,
        "provenance": str(turn.provenance),
        "phases": _phases(turn),
        "call": _call(turn.call),
        "tools": [{"name": tool.name, "ns": tool.end - tool.start, "error": tool.error} for tool in turn.tools],
    }


def _call(call: Call) -> dict[str, Json]:
    return {
        "id": call.record.id,
        "provider": call.provider,
        "model": call.model,
        "streamed": call.streamed,
        "retries": call.retries,
        "error": call.error,
        "flags": sorted(call.flags),
        "ttft_ns": call.ttft,
        "delivered_ns": call.delivered,
        "tpot_ns": None if call.tpot is None else round(call.tpot),
        "tokens": _tokens(call),
        "request": None if call.verdict is None else str(call.verdict),
        "drift_tokens": call.drift.delta if call.drift else None,
        "drift_path": call.drift.difference.path if call.drift and call.drift.difference else None,
        "drift_changes": [_change(each) for each in call.drift.changes] if call.drift else [],
        "retimed": _retimed(call.retimed) if call.retimed else None,
    }


def _change(change: Change) -> dict[str, Json]:
    return {"what": change.what, "path": change.path, "tokens": change.tokens, "since_turn": change.since}


def _retimed(retimed: Retiming) -> dict[str, Json]:
    """Prefill before and after the change, nanoseconds."""
    return {
        "recorded_ns": retimed.recorded,
        "projected_ns": retimed.projected,
        "low_ns": retimed.low,
        "high_ns": retimed.high,
        "again_low_ns": retimed.again[0],
        "again_high_ns": retimed.again[1],
    }


def _tokens(call: Call) -> dict[str, Json]:
    usage = call.usage
    return {
        "context": usage.context,
        "prefill_work": usage.prefill_work,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "output": usage.output,
        "thinking": usage.thinking,
        "provenance": str(usage.provenance),
        "output_provenance": str(usage.output_provenance),
    }


def _judgement(judgement: Judgement) -> dict[str, Json]:
    return {
        "phrase": judgement.phrase.text,
        "lane": judgement.phrase.lane,
        "wants_measured": not isinstance(judgement.phrase, StablePrefix) and judgement.phrase.measured,
        "ruling": str(judgement.ruling),
        "limit": judgement.limit,
        "decided_by": _point(judgement.point) if judgement.point else None,
        "reason": judgement.reason,
        "headline": judgement.overrun.headline if judgement.overrun else "",
        "evidence": list(judgement.overrun.evidence) if judgement.overrun else [],
        "next_step": judgement.overrun.next_step if judgement.overrun else "",
        "points": [_point(each) for each in judgement.points],
    }


def _point(point: Point) -> dict[str, Json]:
    figure = point.figure
    return {
        "turn": point.turn,
        "unit": str(figure.unit),
        "value": _number(figure.value),
        "low": _number(figure.low),
        "high": _number(figure.high),
        "provenance": str(figure.provenance),
        "headroom": _number(point.headroom),
        "ruling": str(point.ruling),
        "reason": figure.reason or figure.caution,
    }


def _number(value: float | None) -> int | float | None:
    """Whole numbers as integers; others to six digits after the point."""
    if value is None:
        return None
    return int(value) if float(value).is_integer() else round(value, 6)

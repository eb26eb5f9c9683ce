"""What an unmatched request would cost as a change of the recorded call that is nearest to it.

Owns one line of a message. Tokens and time are those of the analyses; nothing is said where they say nothing.
"""

from collections.abc import Sequence

from pytest_agentlatency.analysis import drift, retiming
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.drift import LiveCall
from pytest_agentlatency.cassette.matching import Unmatched
from pytest_agentlatency.cassette.recorded import RecordedCall
from pytest_agentlatency.model import units
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Call, Verdict

_PROJECTED = Provenance.PROJECTED


def price(
    miss: Unmatched,
    recording: Recording,
    recorded: Sequence[RecordedCall],
    counter: Counter,
    calibrations: Sequence[Calibration] = (),
) -> str:
    """`~+1,240 tokens of context, ~+310 ms to the first token`; empty when the change has no known cost."""
    nearest = miss.nearest
    if nearest is None:
        return ""
    calls = [
        LiveCall(each.record.id, miss.live, Verdict.DRIFTED)
        if each is nearest
        else LiveCall(each.record.id, each.request, Verdict.IDENTICAL)
        for each in recorded
    ]
    told = drift.replayed(recording, calls, counter)
    before, after = (_call(run.calls, nearest) for run in (told.run, retiming.by_fits(told, calibrations).run))
    if before is None or after is None or before.drift is None or before.drift.delta is None:
        return ""
    parts = [f"{_signed(units.tokens(before.drift.delta, _PROJECTED))} tokens of context"]
    if before.ttft is not None and after.ttft is not None and after.ttft != before.ttft:
        parts.append(f"{_signed(units.duration(after.ttft - before.ttft, _PROJECTED))} to the first token")
    return ", ".join(parts)


def _call(calls: Sequence[Call], wanted: RecordedCall) -> Call | None:
    return next((call for call in calls if call.record.id == wanted.record.id), None)


def _signed(text: str) -> str:
    """The mark first, then the sign: `~+1,240`."""
    mark, number = text[:1], text[1:]
    return f"{mark}{units.signed(number)}"

"""Accepted figures of a test, compared with its replay or replaced by it.

Owns what an update compares with. The rule that nothing is loosened in silence is `budgets.baseline`'s.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.budgets import analyses, baseline, clientbound
from pytest_agentlatency.budgets.baseline import Baseline, BaselineError, Settled
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.phrase import Phrase
from pytest_agentlatency.budgets.verdict import Judgement
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import acceptedfile
from pytest_agentlatency.settings import Settings


def settle(session: Session, run: Run, judgements: Sequence[Judgement], cassette: Path, settings: Settings) -> Settled:
    """What becomes of the accepted figures: compared, or, where that is asked for, replaced."""
    if session.plan.mode is not Mode.REPLAY or not judgements:
        return Settled()
    path = acceptedfile.path_of(cassette)
    try:
        held = acceptedfile.read(path)
    except BaselineError as error:
        return Settled(str(error))
    retimed = any(call.drift for call in run.calls)
    now = baseline.baseline(judgements, run.facts.recorded, retimed=retimed)
    if not settings.update:
        return baseline.settle(held, now, judgements)
    if held is None or held.recorded != now.recorded:
        held = _as_recorded(session, [each.phrase for each in judgements])
    now, unfit = baseline.without(now, clientbound.reasons([each.phrase for each in judgements], run))
    found = baseline.update(held, now, judgements, loosen=settings.loosen)
    if found.written is not None:
        acceptedfile.write(path, found.written)
    return replace(found, lines=(*found.lines, *unfit))


def _as_recorded(session: Session, phrases: Sequence[Phrase]) -> Baseline:
    """The figures of the recording itself, before any change."""
    recording = session.plan.document.recording
    readings = assembly.read(recording)
    run = assembly.from_readings(readings, recording, provenance=Provenance.REPLAYED)
    prompts = {reading.call.record.id: reading.prompt for reading in readings}
    figures = analyses.figures(run, prompts, session.plan.counter, session.plan.kv_specs)
    judgements = [judge(each, run, figures) for each in phrases]
    return baseline.baseline(judgements, run.facts.recorded, retimed=False)

"""A finished run judged: budgets, what can't be trusted, what nothing guards, and the words for all of it.

Owns which complaint comes first, and that a failure quotes no secret.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.budgets import analyses, clientbound
from pytest_agentlatency.budgets.baseline import Settled
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.headroom import Seen
from pytest_agentlatency.budgets.phrase import Phrase, StablePrefix
from pytest_agentlatency.budgets.projection import with_projection
from pytest_agentlatency.budgets.suggest import suggested
from pytest_agentlatency.budgets.verdict import Judgement, Ruling
from pytest_agentlatency.capture.passes import Finding, PassError, unstable
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.case.accepted import settle
from pytest_agentlatency.case.keeping import Keeper
from pytest_agentlatency.case.place import Identity
from pytest_agentlatency.cassette.veil import Veil
from pytest_agentlatency.model import units
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import failure, probe, suggest, summary
from pytest_agentlatency.settings import INI, Settings

_MAIN = 1  # number of the main lane


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test's latency came to."""

    failure: str = ""
    """Message of the test failure; empty when it passes."""
    sections: tuple[tuple[str, str], ...] = ()
    entry: summary.Entry | None = None
    run: Run | None = None
    judgements: tuple[Judgement, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """What is asked of one test's run."""

    identity: Identity
    settings: Settings
    phrases: tuple[Phrase, ...]
    cassette: Path
    moves_prefix: str
    """Why the test can't keep its prefix stable; empty: it can."""
    second_pass: Callable[[Counter], tuple[Finding, ...]] | None
    """What a second pass of the test finds; None when none was asked for."""
    keeper: Keeper

    def outcome(self, session: Session, *, passed: bool, consulted: bool) -> Outcome:
        """Judge the run so far; a recording is kept when the body passed and nothing is wrong with the run.

        consulted: the test read a figure, so that it may guard itself.
        """
        told = session.retimed()
        problems = (*session.problems(), *self._too_far(told.run), *self._read_slowly(session, told.run))
        prompts = {reading.call.record.id: reading.prompt for reading in told.readings}
        findings, unprobed = self._probed(session) if not problems else ((), ())
        problems += unprobed
        figures = analyses.figures(told.run, prompts, session.plan.counter, session.plan.kv_specs)
        figures = _with_findings(with_projection(figures, told), findings)
        judgements = tuple(self._judge(phrase, told.run, figures) for phrase in self.phrases)
        broken = failure.message(judgements, told.run, strict=self.settings.strict_growth)
        settled = settle(session, told.run, judgements, self.cassette, self.settings) if not problems else Settled()
        guarded = problems or self.phrases or consulted or not passed
        offered = () if guarded else tuple(each.phrase.text for each in suggested([Seen(told.run, figures)]))
        message = "\n\n".join(problems) or broken or settled.failure or self._unguarded(offered, session.plan.mode)
        kept = self.keeper.keep(session, trustworthy=not problems, passed=passed and not message)
        word = {Mode.REPLAY: "replayed", Mode.RECORD: "recorded", Mode.LIVE: "live"}[session.plan.mode]
        outcome = Outcome(
            failure="\n".join(filter(None, [message, kept])) if message or kept.startswith("not recorded") else "",
            sections=tuple(_sections(session.notes, findings, told.run, judgements, settled)),
            entry=replace(
                summary.entry(self.identity.nodeid, word, told.run, judgements, probe.word(findings)),
                accepted=settled.retimed,
                offered="\n".join(offered),
            ),
            run=told.run,
            judgements=judgements,
        )
        return _veiled(outcome, session) if outcome.failure or findings else outcome

    def _unguarded(self, offered: Sequence[str], mode: Mode) -> str:
        """Why a test that nothing guards fails, where budgets are required: not yet while they are chosen."""
        wanted = self.settings.require_budget and mode is not Mode.RECORD
        return suggest.refusal(offered) if offered and wanted else ""

    def _probed(self, session: Session) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """What a second pass finds, or why there was none."""
        if self.second_pass is None or session.plan.mode is not Mode.REPLAY:
            return (), ()
        try:
            return self.second_pass(session.plan.counter), ()
        except PassError as error:
            return (), (str(error),)

    def _judge(self, phrase: Phrase, run: Run, figures: Figures) -> Judgement:
        if self.moves_prefix and isinstance(phrase, StablePrefix):
            return Judgement(phrase, Ruling.WAIVED, "stable", reason=f"moves_cache_prefix: {self.moves_prefix}")
        return judge(phrase, run, figures)

    def _too_far(self, run: Run) -> tuple[str, ...]:
        """Say of the request that is furthest from the recorded one that its recorded answer proves nothing."""
        bound = self.settings.max_drift
        furthest = max(run.all_turns, key=lambda turn: turn.call.drifted, default=None)
        if bound is None or furthest is None or furthest.call.drifted <= bound:
            return ()
        msg = (
            f"turn {furthest.number} drifted {units.share(furthest.call.drifted)}, allowed {units.share(bound)}\n"
            f"The recorded answer was given to a request of another size ({INI['max_drift']} is the bound).\n"
            f"Record it again: {self.identity.record_command}"
        )
        return (msg,)

    def _read_slowly(self, session: Session, run: Run) -> tuple[str, ...]:
        """Say of a recording whose reader held the model up that no time budget may stand on it."""
        refused = clientbound.refusal(self.phrases, run) if session.plan.mode is Mode.RECORD else ""
        return (refused,) if refused else ()


def _with_findings(figures: Figures, findings: Sequence[Finding]) -> Figures:
    """Figures to whose prefix comparisons a second pass's findings belong, lane by lane."""
    if not findings:
        return figures
    lanes = {lane: _unstable(each, findings, lane) for lane, each in figures.lanes.items()}
    return replace(_unstable(figures, findings, _MAIN), lanes=lanes)


def _unstable(figures: Figures, findings: Sequence[Finding], lane: int) -> Figures:
    compared = figures.stability
    if compared is None:
        return figures

    def stability(run: Run, except_turns: Collection[int]) -> Stability:
        return unstable(compared(run, except_turns), findings, except_turns, lane)

    return replace(figures, stability=stability)


def _veiled(outcome: Outcome, session: Session) -> Outcome:
    """What quotes the run's requests, without the secrets in them."""
    veil = Veil.of(session.learned, (request.body for request in session.recorder.requests))
    entry = outcome.entry and replace(
        outcome.entry, headline=veil.over(outcome.entry.headline), volatile=veil.over(outcome.entry.volatile)
    )
    sections = tuple((title, veil.over(text)) for title, text in outcome.sections)
    return replace(outcome, failure=veil.over(outcome.failure), sections=sections, entry=entry)


def _sections(
    notes: Sequence[str], findings: Sequence[Finding], run: Run, judgements: Sequence[Judgement], settled: Settled
) -> Iterator[tuple[str, str]]:
    """Titles and texts for the test's report."""
    if notes:
        yield "latency notes", "\n".join(notes)
    if findings:
        yield probe.TITLE, "\n".join(probe.lines(findings))
    if run.lanes:
        yield from failure.sections(run, judgements)
    if settled.lines:
        yield "latency: accepted figures", "\n".join(settled.lines)

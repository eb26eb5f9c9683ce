"""One marked test: from its settings to a session, from the session to a verdict, and to the cassette on disk.

Owns the order of these, and what makes a recording worth keeping. Knows no test framework; `plugin` calls it.
"""

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_agentlatency.agent_run import AgentRun
from pytest_agentlatency.analysis import assembly, counters
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import Counter, CounterError
from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.budgets import analyses, baseline, clientbound
from pytest_agentlatency.budgets.baseline import Baseline, BaselineError, Settled
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.headroom import Seen
from pytest_agentlatency.budgets.phrase import Phrase, StablePrefix
from pytest_agentlatency.budgets.projection import with_projection
from pytest_agentlatency.budgets.suggest import suggested
from pytest_agentlatency.budgets.verdict import Judgement, Ruling
from pytest_agentlatency.capture import before, calibrations, kvconfigs
from pytest_agentlatency.capture.before import Refuser
from pytest_agentlatency.capture.calibrations import CalibrationError
from pytest_agentlatency.capture.passes import Finding, PassError, unstable
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.cassette import foreign, store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.cassette.redaction import Redaction, RedactionError
from pytest_agentlatency.cassette.vcr import honoured
from pytest_agentlatency.cassette.veil import Veil
from pytest_agentlatency.cassette.vetting import vet
from pytest_agentlatency.model import units
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import acceptedfile, failure, probe, suggest, summary
from pytest_agentlatency.settings import INI, DriftPolicy, Settings

_FORBIDDEN = r"<>?%*:|\"'/\\"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which test this is."""

    nodeid: str
    name: str
    """Function name with parameters, behind its class: `TestSupport.test_parcel[de]`."""
    file: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test's latency came to."""

    failure: str = ""
    """Message of the test failure; empty when it passes."""
    sections: tuple[tuple[str, str], ...] = ()
    entry: summary.Entry | None = None
    run: Run | None = None
    judgements: tuple[Judgement, ...] = ()


def default_name(name: str) -> str:
    """A test's name as pytest-recording turns it into a file name."""
    for character in _FORBIDDEN:
        name = name.replace(character, "-")
    return name


def cassette_path(identity: Identity, named: str | None) -> Path:
    """Where the cassette of a test is: beside its file, in pytest-recording's layout. Refused leads out of there."""
    directory = identity.file.parent / "cassettes"
    if named is not None:
        return store.path_for(directory, named)
    return store.path_for(directory / identity.file.stem, default_name(identity.name))


@dataclass
class Case:
    """One test's run."""

    identity: Identity
    settings: Settings
    phrases: tuple[Phrase, ...]
    path: Path
    named: bool = False
    """The path was given by the marker, so that several tests may share it."""
    moves_prefix: str = ""
    """Why the test can't keep its prefix stable; empty: it can."""
    second_pass: Callable[[Counter], tuple[Finding, ...]] | None = None
    """What a second pass of the test finds; None when none was asked for."""
    hooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The user's `vcr_config`, of which the redaction hooks count."""
    fatal: str = ""
    """Why the test can't run at all."""
    late: str = ""
    """What is wrong with what went on between the verdict and `close`."""
    _before: ExitStack = field(default_factory=ExitStack)
    _refuser: Refuser = field(default_factory=Refuser)
    _stack: ExitStack = field(default_factory=ExitStack)
    _session: Session | None = None
    _agent_run: AgentRun | None = None
    _judged_calls: int | None = None
    """How many model calls the verdict is about; None before it."""
    _kept: Document | None = None
    """What was written as the cassette."""

    @property
    def mode(self) -> Mode:
        """The mode in force: `once` records only where there is no cassette."""
        if self.settings.mode is not Mode.ONCE:
            return self.settings.mode
        return Mode.REPLAY if self.path.exists() else Mode.RECORD

    def prepare(self, stopping: Callable[[str], RunFailedError]) -> None:
        """Until `open`, let no fixture of a wider scope ask the model: no test's run would hold the call."""
        self._refuser = Refuser(stopping)
        if self.mode is not Mode.LIVE:
            replaying = self.mode is Mode.REPLAY
            before.install(self._refuser, self._before, closed=replaying, allow_hosts=self.settings.allow_hosts)

    def prepared(self) -> None:
        """The end of that. Harmless when it has come."""
        self._before.close()

    def open(self, stopping: Callable[[str], RunFailedError] = RunFailedError) -> AgentRun:
        """Begin the run. What is wrong with the cassette is kept for `fatal`; nothing leaves all the same.

        `stopping` makes the exception that stops the agent.
        """
        self.prepared()
        self.fatal, self.late = self._asked_before(), ""  # a test may be run again
        self._session, self._judged_calls, self._kept = None, None, None
        mode = self.mode
        counter = self._counter()
        document = self._document(counter) if mode is Mode.REPLAY and not self.fatal else Document(Recording())
        if mode is Mode.RECORD and not self.fatal:
            try:
                self._stack.enter_context(store.writing(self.path, self.identity.nodeid))
            except CassetteError as error:
                self.fatal = str(error)
        plan = Plan(
            mode=Mode.REPLAY if self.fatal else mode,
            test=self.identity.nodeid,
            counter=counter,
            document=document,
            masks=Masks(self.settings.volatile),
            strict=self.settings.drift is DriftPolicy.STRICT,
            replay_tools=self.settings.replay_tools,
            redaction=Redaction(honoured(self.hooks)),
            allow_hosts=self.settings.allow_hosts,
            calibrations=self._calibrations(),
            kv_specs=self._kv_specs(),
            stopping=stopping,
        )
        self._session = self._stack.enter_context(Session(plan))
        self._agent_run = AgentRun(self._session)
        return self._agent_run

    def _counter(self) -> Counter:
        try:
            return counters.counter(self.settings.counter)
        except CounterError as error:
            self.fatal = str(error)
            return counters.counter()

    def _calibrations(self) -> tuple[Calibration, ...]:
        try:
            return calibrations.load_all(map(Path, self.settings.calibrations))
        except CalibrationError as error:
            self.fatal = self.fatal or str(error)
            return ()

    def _kv_specs(self) -> dict[str, KvSpec]:
        try:
            return {model: kvconfigs.read(path) for model, path in self.settings.kv_configs}
        except ValueError as error:
            self.fatal = self.fatal or f"{error}. It is named in the ini value {INI['kv_configs']}"
            return {}

    def _document(self, counter: Counter) -> Document:
        try:
            if not self.path.exists():
                self.fatal = self._missing()
                return Document(Recording())
            document = store.load(self.path)
            if not document.recording.attempts and document.others:
                document = foreign.read(self.path).document  # plain vcrpy's: the same calls, without their times
            counters.check_recorded(document.recording.facts.counter, counter)
        except (CassetteError, CounterError) as error:
            self.fatal = str(error)
            return Document(Recording())
        recorded_by = document.recording.facts.test
        if not self.named and recorded_by and _short(recorded_by) != _short(self.identity.nodeid):
            self.fatal = (
                f"cassette of another test: {self.path} was recorded by {recorded_by}.\n"
                f"Rename it back, or record this test: {self.record_command}"
            )
        return document

    @property
    def record_command(self) -> str:
        """What records this test."""
        return f"pytest {shlex.quote(self.identity.nodeid)} --latency-mode=record"

    def _missing(self) -> str:
        rejected = self.path.with_name(f"{self.path.name}.rejected")
        kept = f"\nA recording that was rejected is at {rejected}; its test failed." if rejected.exists() else ""
        return (
            f"no cassette to replay: {self.path} doesn't exist.\n"
            f"Record it once, with a key; that calls the model for real:\n\n    {self.record_command}\n{kept}"
        ).rstrip()

    def close(self) -> None:
        """Take everything away. Harmless when it was done."""
        try:
            self.late = self.late or self._add_clean_up() or self._after_the_verdict()
        finally:
            self._stack.close()

    def _after_the_verdict(self) -> str:
        if self._session is None or self._judged_calls is None:
            return ""
        calls = self._session.recorder.observed_calls - self._judged_calls
        told = f"{calls} model call(s) after the test's body: no cassette holds them, no budget counts them."
        return f"{told}\nEnd the agent inside the test, or in a fixture before it." if calls else ""

    def _add_clean_up(self) -> str:
        """Other HTTP that fixtures did after the verdict: a replay will ask for it."""
        if self._session is None or self._kept is None:
            return ""
        others, kept = self._session.others, self._kept
        if len(others) == len(kept.others):
            return ""
        self._kept = None
        refused = vet(replace(kept, others=others), self._session.learned)
        try:
            if not refused:
                store.save(self.path, replace(kept, others=others))
        except CassetteError as error:
            refused = str(error)
        return f"the cassette lacks what fixtures did after the test: {refused}" if refused else ""

    def stopped(self) -> str:
        """Why the run was stopped before the test's body."""
        if self.fatal or self._session is None:
            return self.fatal or self._asked_before()
        return Veil(self._session.learned).over("\n\n".join(self._session.problems()))

    def _asked_before(self) -> str:
        return str(self._refuser.failures[0]) if self._refuser.failures else ""

    def finish(self, *, passed: bool) -> Outcome:
        """Judge the run so far. A recording is kept when the body passed and nothing is wrong with the run.

        The seams stay until `close`: a fixture's clean-up is no way around them.
        """
        session = self._session
        if session is None or self.fatal:
            return Outcome(self.fatal)
        self._judged_calls = session.recorder.observed_calls
        return self._judged(session, passed=passed)

    def _judged(self, session: Session, *, passed: bool) -> Outcome:
        told = session.retimed()
        problems = (*session.problems(), *self._too_far(told.run), *self._read_slowly(session, told.run))
        prompts = {reading.call.record.id: reading.prompt for reading in told.readings}
        findings, unprobed = self._probed(session) if not problems else ((), ())
        problems += unprobed
        figures = analyses.figures(told.run, prompts, session.plan.counter, session.plan.kv_specs)
        figures = _with_findings(with_projection(figures, told), findings)
        judgements = tuple(self._judge(phrase, told.run, figures) for phrase in self.phrases)
        broken = failure.message(judgements, told.run, strict=self.settings.strict_growth)
        settled = self._settled(session, told.run, judgements) if not problems else Settled()
        offered = self._offered(Seen(told.run, figures)) if passed and not problems else ()
        message = "\n\n".join(problems) or broken or settled.failure or self._unguarded(offered, session.plan.mode)
        kept = self._keep(session, trustworthy=not problems, passed=passed and not message)
        word = {Mode.REPLAY: "replayed", Mode.RECORD: "recorded", Mode.LIVE: "live"}[session.plan.mode]
        outcome = Outcome(
            failure="\n".join(filter(None, [message, kept])) if message or kept.startswith("not recorded") else "",
            sections=(
                *_noted(session.notes),
                *(((probe.TITLE, "\n".join(probe.lines(findings))),) if findings else ()),
                *(failure.sections(told.run, judgements) if told.run.lanes else ()),
                *((("latency: accepted figures", "\n".join(settled.lines)),) if settled.lines else ()),
            ),
            entry=replace(
                summary.entry(self.identity.nodeid, word, told.run, judgements, probe.word(findings)),
                accepted=settled.retimed,
                offered="\n".join(offered),
            ),
            run=told.run,
            judgements=judgements,
        )
        return _veiled(outcome, session) if outcome.failure or findings else outcome

    def _offered(self, seen: Seen) -> tuple[str, ...]:
        """Budgets for a test that nothing guards: it has none, and read no figure. None for any other."""
        if self.phrases or self._agent_run is None or self._agent_run.consulted:
            return ()
        return tuple(each.phrase.text for each in suggested([seen]))

    def _unguarded(self, offered: Sequence[str], mode: Mode) -> str:
        """Why such a test fails, where budgets are required. A recording comes first: budgets are chosen from it."""
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

    def _settled(self, session: Session, run: Run, judgements: Sequence[Judgement]) -> Settled:
        """What becomes of the accepted figures: compared, or, where that is asked for, replaced."""
        if session.plan.mode is not Mode.REPLAY or not judgements:
            return Settled()
        path = acceptedfile.path_of(self.path)
        try:
            held = acceptedfile.read(path)
        except BaselineError as error:
            return Settled(str(error))
        retimed = any(call.drift for call in run.calls)
        now = baseline.baseline(judgements, run.facts.recorded, retimed=retimed)
        if not self.settings.update:
            return baseline.settle(held, now, judgements)
        if held is None or held.recorded != now.recorded:
            held = self._as_recorded(session)
        now, unfit = baseline.without(now, clientbound.reasons(self.phrases, run))
        settled = baseline.update(held, now, judgements, loosen=self.settings.loosen)
        if settled.written is not None:
            acceptedfile.write(path, settled.written)
        return replace(settled, lines=(*settled.lines, *unfit))

    def _as_recorded(self, session: Session) -> Baseline:
        """The figures of the recording itself, before any change."""
        recording = session.plan.document.recording
        readings = assembly.read(recording)
        run = assembly.from_readings(readings, recording, provenance=Provenance.REPLAYED)
        prompts = {reading.call.record.id: reading.prompt for reading in readings}
        figures = analyses.figures(run, prompts, session.plan.counter, session.plan.kv_specs)
        judgements = [judge(each, run, figures) for each in self.phrases]
        return baseline.baseline(judgements, run.facts.recorded, retimed=False)

    def _too_far(self, run: Run) -> tuple[str, ...]:
        """Say of the request that is furthest from the recorded one that its recorded answer proves nothing."""
        bound = self.settings.max_drift
        furthest = max(run.all_turns, key=lambda turn: turn.call.drifted, default=None)
        if bound is None or furthest is None or furthest.call.drifted <= bound:
            return ()
        msg = (
            f"turn {furthest.number} drifted {units.share(furthest.call.drifted)}, allowed {units.share(bound)}\n"
            f"The recorded answer was given to a request of another size ({INI['max_drift']} is the bound).\n"
            f"Record it again: {self.record_command}"
        )
        return (msg,)

    def _read_slowly(self, session: Session, run: Run) -> tuple[str, ...]:
        """Say of a recording whose reader held the model up that no time budget may stand on it."""
        refused = clientbound.refusal(self.phrases, run) if session.plan.mode is Mode.RECORD else ""
        return (refused,) if refused else ()

    def _keep(self, session: Session, *, trustworthy: bool, passed: bool) -> str:
        """Write the cassette, or the rejected one beside it; says what a reader of a failure must know of it."""
        if session.plan.mode is not Mode.RECORD or not session.recorder.observed_calls:
            return ""
        try:
            document = session.document()
            refused = vet(document, session.learned, session.asked())
        except RedactionError as error:
            return f"not recorded: {error}"
        if refused:
            return f"not recorded: {refused}"
        try:
            return self._written(document, trustworthy=trustworthy, passed=passed)
        except CassetteError as error:
            return f"not recorded: {error}"

    def _written(self, document: Document, *, trustworthy: bool, passed: bool) -> str:
        if trustworthy and passed:
            store.save(self.path, document)
            self._kept = document
            return ""
        told = f"the recording was not kept: it is at {store.reject(self.path, document)}"
        if not trustworthy:
            return f"{told}, for a look only."
        return (
            f"{told}, and the cassette is as it was. "
            f"If it is right and only a budget is not, rename it to {self.path.name} and mend the budget."
        )


def _with_findings(figures: Figures, findings: Sequence[Finding]) -> Figures:
    """Figures to whose prefix comparison a second pass's findings belong."""
    compared = figures.stability
    if compared is None or not findings:
        return figures

    def stability(run: Run, except_turns: Collection[int]) -> Stability:
        return unstable(compared(run, except_turns), findings, except_turns)

    return replace(figures, stability=stability)


def _veiled(outcome: Outcome, session: Session) -> Outcome:
    """What quotes the run's requests, without the secrets in them."""
    veil = Veil.of(session.learned, (request.body for request in session.recorder.requests))
    entry = outcome.entry and replace(
        outcome.entry, headline=veil.over(outcome.entry.headline), volatile=veil.over(outcome.entry.volatile)
    )
    sections = tuple((title, veil.over(text)) for title, text in outcome.sections)
    return replace(outcome, failure=veil.over(outcome.failure), sections=sections, entry=entry)


def _noted(notes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return (("latency notes", "\n".join(notes)),) if notes else ()


def _short(nodeid: str) -> str:
    """A node id without the folders, which depend on where pytest was started."""
    file, _, rest = nodeid.partition("::")
    return f"{Path(file).name}::{rest}"


def shared_paths(cases: Sequence[Case]) -> str:
    """Say which two tests would record into one cassette; empty when none would."""
    seen: dict[Path, Case] = {}
    for case in cases:
        other = seen.setdefault(case.path, case)
        if other is not case and Mode.RECORD in {case.mode, other.mode}:
            return (
                f"two tests would record the cassette {case.path}: {other.identity.nodeid} and "
                f"{case.identity.nodeid}. Give one of them a name of its own: "
                "@pytest.mark.agent_latency(cassette='...')"
            )
    return ""

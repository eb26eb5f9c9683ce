"""One marked test: from its settings to a session, from the session to a verdict, and to the cassette on disk.

Owns the order of these, and what is held from one to the next; each is a module here. Knows no test framework; `plugin`
calls it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agentlatency.agent_run import AgentRun
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.budgets.phrase import Phrase
from pytest_agentlatency.capture import before
from pytest_agentlatency.capture.before import Refuser
from pytest_agentlatency.capture.passes import Finding
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.case.inputs import Inputs
from pytest_agentlatency.case.judging import Judge, Outcome
from pytest_agentlatency.case.keeping import Keeper
from pytest_agentlatency.case.place import Identity, cassette_path
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.cassette.redaction import Redaction
from pytest_agentlatency.cassette.vcr import honoured
from pytest_agentlatency.cassette.veil import Veil
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.settings import DriftPolicy, Settings

__all__ = ["Case", "Identity", "Outcome", "cassette_path", "shared_paths"]


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
    _keeper: Keeper | None = None

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
        self.late = ""  # a test may be run again
        self._session, self._judged_calls, self._keeper = None, None, Keeper(self.path)
        plan = self._plan(self.mode, stopping)
        self._session = self._stack.enter_context(Session(plan))
        self._agent_run = AgentRun(self._session)
        return self._agent_run

    def _plan(self, mode: Mode, stopping: Callable[[str], RunFailedError]) -> Plan:
        inputs = Inputs(self.identity, self.settings, self.path, self.named, self._asked_before())
        counter = inputs.counter()
        document = inputs.document(counter) if mode is Mode.REPLAY and not inputs.fatal else Document(Recording())
        if mode is Mode.RECORD and not inputs.fatal:
            try:
                self._stack.enter_context(store.writing(self.path, self.identity.nodeid))
            except CassetteError as error:
                inputs.fatal = str(error)
        plan = Plan(
            mode=Mode.REPLAY if inputs.fatal else mode,
            test=self.identity.nodeid,
            counter=counter,
            document=document,
            masks=Masks(self.settings.volatile),
            strict=self.settings.drift is DriftPolicy.STRICT,
            replay_tools=self.settings.replay_tools,
            redaction=Redaction(honoured(self.hooks)),
            allow_hosts=self.settings.allow_hosts,
            calibrations=inputs.calibrations(),
            kv_specs=inputs.kv_specs(),
            stopping=stopping,
        )
        self.fatal = inputs.fatal
        return plan

    def close(self) -> None:
        """Take everything away. Harmless when it was done."""
        try:
            self.late = self.late or self._after_the_verdict()
        finally:
            self._stack.close()

    def _after_the_verdict(self) -> str:
        """What is wrong with what fixtures did since."""
        if self._session is None or self._judged_calls is None:
            return ""
        lacking = self._keeper.add_clean_up(self._session) if self._keeper else ""
        if lacking:
            return lacking
        calls = self._session.recorder.observed_calls - self._judged_calls
        told = f"{calls} model call(s) after the test's body: no cassette holds them, no budget counts them."
        return f"{told}\nEnd the agent inside the test, or in a fixture before it." if calls else ""

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
        session, keeper, run = self._session, self._keeper, self._agent_run
        if session is None or keeper is None or self.fatal:
            return Outcome(self.fatal)
        self._judged_calls = session.recorder.observed_calls
        judge = Judge(
            self.identity, self.settings, self.phrases, self.path, self.moves_prefix, self.second_pass, keeper
        )
        return judge.outcome(session, passed=passed, consulted=run is not None and run.consulted)


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

"""What the fixture `agent_run` gives to a test: the run so far in plain numbers, and stamps that only it knows.

Numbers are rounded where they are read, so that `assert agent_run.turn(6).share("prefill") <= 0.48` can be kept as a
ratchet: shares to 3 digits, seconds to microseconds, tokens whole. None means not measured. They are the figures that
budgets judge, read through the same registry.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from pytest_agentlatency.analysis import fits, whatif
from pytest_agentlatency.analysis.growth import Growth
from pytest_agentlatency.analysis.retiming import Retimed
from pytest_agentlatency.analysis.whatif import Change
from pytest_agentlatency.budgets import analyses, series
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.lanes import only
from pytest_agentlatency.budgets.subjects import SERIES, Question, registry
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.capture.tools import ToolBlock
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.run import Run, Turn


class AgentTurn:
    """One turn of the run, as plain rounded numbers."""

    def __init__(self, run: "AgentRun", turn: Turn) -> None:
        self._run = run
        self.details = turn
        """The turn as a value, with stamps, attempts and blocks."""

    def _tokens(self, subject: str, tool: str = "") -> int | None:
        return _whole(self._run.figure(subject, self.details, tool))

    @property
    def number(self) -> int:
        """From 1."""
        return self.details.number

    def share(self, phase: str) -> float | None:
        """Fraction (0-1) of the turn spent in a phase."""
        return _rounded(self.details.share(phase), 3)

    def time(self, phase: str) -> float | None:
        """Seconds spent in a phase."""
        return _seconds(self.details.time(phase))

    @property
    def duration(self) -> float | None:
        """Seconds from this turn's call to the lane's next."""
        return _seconds(self.details.duration)

    @property
    def ttft(self) -> float | None:
        """Seconds from the call to the first generated token of the attempt that answered."""
        return _seconds(self.details.call.ttft)

    @property
    def delivered(self) -> float | None:
        """Seconds from the call to the first output handed on, as the agent told with `agent_run.delivered()`."""
        return _seconds(self.details.call.delivered)

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first."""
        return _seconds(self.details.call.tpot)

    @property
    def context_tokens(self) -> int | None:
        """All input tokens of the request as it is now, cached or not; None where usage sums several hidden passes."""
        return self._tokens("context tokens")

    @property
    def output_tokens(self) -> int | None:
        """Generated tokens, thinking included."""
        return self.details.call.usage.output

    @property
    def cached_share(self) -> float | None:
        """Fraction (0-1) of the context that was read from the prompt cache."""
        return _rounded(self._run.figure("cached share", self.details), 3)

    @property
    def prefill_work(self) -> int | None:
        """Input tokens that had to be prefilled: all that were not read from a cache."""
        return self._tokens("prefill work")

    @property
    def step(self) -> int | None:
        """Tokens by which the context is larger than at the turn before; None at turn 1."""
        return self._tokens("largest step")

    def tool_result_tokens(self, tool: str = "") -> int | None:
        """Tokens of the results that this turn brought, of one tool or of all."""
        return self._tokens("tool result tokens", tool)

    @property
    def reread_tokens(self) -> int | None:
        """Tokens of this turn's context that earlier turns brought."""
        return self._tokens("re-read cost")

    @property
    def retries(self) -> int:
        """Attempts beyond the first."""
        return self.details.call.retries

    @property
    def verdict(self) -> str:
        """`identical` or `drifted` in a replay; empty otherwise."""
        return self.details.call.verdict.value if self.details.call.verdict else ""


class AgentRun:
    """The run of a marked test. Figures can be asked at any time; they are those of the run so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: tuple[tuple[int, ...], Retimed, Figures] | None = None
        self.consulted = False
        """Whether anybody asked for a figure."""

    @property
    def details(self) -> Run:
        """The run as a value, with lanes, segments and provenance."""
        return self._latest()[0].run

    def _latest(self) -> tuple[Retimed, Figures]:
        self.consulted, seen = True, self._session.recorder.events
        if self._told is None or self._told[0] != seen:
            told = self._session.retimed()
            prompts = {reading.call.record.id: reading.prompt for reading in told.readings}
            plan = self._session.plan
            self._told = (seen, told, analyses.figures(told.run, prompts, plan.counter, plan.kv_specs))
        return self._told[1:]

    def figure(
        self, subject: str, turn: Turn | None = None, tool: str = "", *, each: bool = False, lane: int | None = None
    ) -> float | None:
        """What a budget over this subject would judge, in its base unit (ns, fraction, tokens, bytes, things).

        Of one turn, or of the run, or of one lane of it; of one tool; of the largest single item. None: not measured.
        KeyError for a subject that isn't one, ValueError where it has no such value, IndexError for a lane that the run
        doesn't have.
        """
        measured = registry()[subject]
        if (turn is None and not measured.in_total) or (turn is not None and not measured.at_turn):
            msg = f"{subject!r} has no value {'over the run' if turn is None else 'at a turn'}"
            raise ValueError(msg)
        run, figures = self._of_lane(lane if turn is None else turn.lane)
        return measured.measure(Question(run, turn, tool, each, figures)).value

    def _of_lane(self, lane: int | None) -> tuple[Run, Figures]:
        """One lane as a run, or the whole run, and its analyses."""
        told, figures = self._latest()
        if lane is None:
            return told.run, figures
        run = only(told.run, lane)
        if run is None:
            msg = f"no lane {lane!r}: the run has {len(told.run.lanes)} lane(s)"
            raise IndexError(msg)
        return run, figures.of_lane(lane)

    def turn(self, number: int, lane: int = 1) -> AgentTurn:
        """A turn by its number, from 1. IndexError, saying how many there are, when the run has no such turn."""
        return AgentTurn(self, self.details.turn(number, lane))

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """Turns of the main lane."""
        return tuple(AgentTurn(self, turn) for turn in self.details.turns)

    def share(self, phase: str) -> float | None:
        """Fraction (0-1) of the run spent in a phase."""
        return _rounded(self.details.share(phase), 3)

    def time(self, phase: str) -> float | None:
        """Seconds of the run spent in a phase."""
        return _seconds(self.details.time(phase))

    @property
    def duration(self) -> float | None:
        """Seconds from the first thing observed to the last, pauses left out."""
        return _seconds(self.details.duration)

    @property
    def calls(self) -> int:
        """Model calls of every lane."""
        return len(self.details.calls)

    @property
    def retries(self) -> int:
        """Attempts beyond the first, over all calls."""
        return sum(call.retries for call in self.details.calls)

    @property
    def cached_share(self) -> float | None:
        """Fraction (0-1) of all input tokens, over every lane, that was read from the prompt cache."""
        return _rounded(self.figure("cached share"), 3)

    @property
    def largest_step(self) -> int | None:
        """Most tokens by which the context of the main lane rose from one turn to the next."""
        return _whole(self.figure("largest step"))

    def tool_result_tokens(self, tool: str = "", *, each: bool = False) -> int | None:
        """Tokens of the results that came into the main lane, of one tool or of all; `each`: of the largest one."""
        return _whole(self.figure("tool result tokens", tool=tool, each=each))

    @property
    def reread_tokens(self) -> int | None:
        """Tokens that the main lane sent again after the turn that brought them."""
        return _whole(self.figure("re-read cost"))

    @property
    def unused_tools(self) -> tuple[str, ...] | None:
        """Names of the tools that were offered on the main lane and never called, the dearest first."""
        told, figures = self._latest()
        return None if figures.unused_tools is None else tuple(figures.unused_tools(told.run))

    def growth(self, of: str = "context", lane: int | None = None) -> Growth:
        """The law by which a series grows over the turns of the main lane, or of another.

        `of`: `context`, `cumulative prefill`, `output` or `tool result` (tokens), or `turn time` (milliseconds). A turn
        without a value, or whose usage sums several hidden passes, keeps its number. ValueError on another series.
        """
        if of not in SERIES:
            msg = f"growth of {of!r} is not known: allowed are {', '.join(map(repr, SERIES))}"
            raise ValueError(msg)
        run, figures = self._of_lane(lane)
        return series.growth(of, run, figures)

    def tool(self, name: str) -> ToolBlock:
        """Time a block, or as a decorator a function, as an execution of a tool, in a loop written by hand.

        A decorated function can be replayed (`replay_tools`), a with-block can't: nothing gets around its body.
        """
        return ToolBlock(self._session.recorder, name)

    def what_if(self, *changes: str | Change) -> Run:
        """The run as it would have been with these changes, one after the other: a run like any other.

        `agent_run.what_if("perfect prefix cache").turn(6).share("prefill")`. Names are those of `agentlatency whatif`;
        own changes are functions of a `whatif.Start`. ValueError, listing the names, for one that there isn't.
        """
        start = self._start()
        named = whatif.by_name([each for each in changes if isinstance(each, str)], whatif.levers(start))
        table = {lever.name: lever.change for lever in named}
        return whatif.combined(*(table[each] if isinstance(each, str) else each for each in changes))(start).run

    def _start(self) -> whatif.Start:
        told, plan = self._session.told(), self._session.plan
        known = fits.fits((*told.recorded, *told.unmade), plan.calibrations)
        return whatif.Start(self._latest()[0].again(), lambda reading: known[fits.key_of(reading)], plan.counter)

    def delivered(self) -> None:
        """Tell that the agent hands its first output of this turn on to its user now, where something holds it back.

        A gate, a moderator or a splitter of sentences: the model's first token is then not the user's. The first call
        in a turn counts. Before the first model call it belongs to no turn, which a note says. In a replay the recorded
        moment stands. May be called from any thread or task.
        """
        self._session.recorder.deliver()

    def pause(self, reason: str) -> AbstractContextManager[None]:
        """Take a block's time out of every figure: a human's approval is nobody's latency."""
        return self._session.recorder.pause(reason)

    @contextmanager
    def bounds(self) -> Generator[None]:
        """State the run's start and end, where set-up and clean-up of the agent are to count as overhead."""
        start = self._session.recorder.now()
        try:
            yield
        finally:
            self._session.recorder.bounds = (start, self._session.recorder.now())


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _seconds(value: Ns | float | None) -> float | None:
    return None if value is None else round(value / 1e9, 6)

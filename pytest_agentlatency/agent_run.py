"""What the fixture `agent_run` gives to a test: the run so far in plain numbers, and stamps that only it knows.

Numbers are rounded where they are read, so that `assert agent_run.turn(6).share("prefill") <= 0.48` can be kept as a
ratchet: shares to 3 digits, seconds to microseconds. None means not measured.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pytest_agentlatency.analysis.growth import Growth, classify
from pytest_agentlatency.analysis.retiming import Retimed
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.capture.tools import ToolBlock
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.run import Run, Turn


class AgentTurn:
    """One turn of the run, as plain rounded numbers."""

    def __init__(self, turn: Turn) -> None:
        self.details = turn
        """The turn as a value, with stamps, attempts and blocks."""

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
    def tpot(self) -> float | None:
        """Seconds per output token after the first."""
        return _seconds(self.details.call.tpot)

    @property
    def context_tokens(self) -> int | None:
        """All input tokens of the request as it is now, cached or not."""
        return self.details.call.usage.context

    @property
    def output_tokens(self) -> int | None:
        """Generated tokens, thinking included."""
        return self.details.call.usage.output

    @property
    def cached_share(self) -> float | None:
        """Fraction (0-1) of the context that was read from the prompt cache."""
        usage = self.details.call.usage
        return _rounded(usage.cache_read / usage.context, 3) if usage.context else None

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
        self._told: tuple[tuple[int, ...], Retimed] | None = None

    @property
    def details(self) -> Run:
        """The run as a value, with lanes, segments and provenance."""
        return self._latest().run

    def _latest(self) -> Retimed:
        seen = self._session.recorder.events
        if self._told is None or self._told[0] != seen:
            self._told = (seen, self._session.retimed())
        return self._told[1]

    def turn(self, number: int, lane: int = 1) -> AgentTurn:
        """A turn by its number, from 1. IndexError, saying how many there are, when the run has no such turn."""
        return AgentTurn(self.details.turn(number, lane))

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """Turns of the main lane."""
        return tuple(map(AgentTurn, self.details.turns))

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

    def growth(self, of: str = "context") -> Growth:
        """The law by which `context` or `output` tokens grow over the turns of the main lane. ValueError on another."""
        series = {"context": "context", "output": "output"}
        if of not in series:
            msg = f"growth of {of!r} is not known: allowed are {', '.join(map(repr, series))}"
            raise ValueError(msg)
        values = [getattr(turn.call.usage, series[of]) for turn in self.details.turns]
        return classify([float(value) for value in values if value is not None])

    def tool(self, name: str) -> ToolBlock:
        """Time a block, or as a decorator a function, as an execution of a tool, in a loop written by hand.

        A decorated function can be replayed (`replay_tools`), a with-block can't: nothing gets around its body.
        """
        return ToolBlock(self._session.recorder, name)

    def pause(self, reason: str) -> AbstractContextManager[None]:
        """Take a block's time out of every figure: a human's approval is nobody's latency."""
        return self._session.recorder.pause(reason)

    @contextmanager
    def bounds(self) -> Iterator[None]:
        """State the run's start and end, where set-up and clean-up of the agent are to count as overhead."""
        start = self._session.recorder.now()
        try:
            yield
        finally:
            self._session.recorder.bounds = (start, self._session.recorder.now())


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _seconds(value: Ns | float | None) -> float | None:
    return None if value is None else round(value / 1e9, 6)

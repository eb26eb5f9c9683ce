"""The state machine of a run being observed: calls open and close, chunks arrive, tools run; at any time, a recording.

Owns the run's clock and the mutable side of what is observed. Knows no HTTP library, no SDK and no file.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentlatency.capture.openattempt import OpenAttempt
from pytest_agentlatency.model import clock
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import CallRecord, Facts, Pause, Recording, Request, ToolRecord

if TYPE_CHECKING:
    from pytest_agentlatency.capture.toolreplay import ToolResults


@dataclass(slots=True)
class OpenCall:
    """One model call while it runs, as the SDK's caller sees it; without an SDK hook it has no times of its own."""

    id: int
    sdk: str = ""
    entered: Ns | None = None
    returned: Ns | None = None
    backoffs: list[tuple[Ns, Ns]] = field(default_factory=list[tuple[Ns, Ns]])
    parent: int | None = None
    delivered: Ns | None = None

    def record(self) -> CallRecord:
        """What has been seen of it so far."""
        backoffs = tuple(self.backoffs)
        return CallRecord(self.id, self.sdk, self.entered, self.returned, backoffs, self.parent, self.delivered)


@dataclass(slots=True)
class Entry:
    """The SDK was entered; which call that is turns out when the first model request leaves it, if one does."""

    sdk: str
    entered: Ns
    call: OpenCall | None = None
    transport: str = ""
    """Class of the HTTP transport that the SDK's client will use, for the message when nothing is seen of it."""
    shadowed: bool = False
    """Another recorder stood before this one."""


entry: ContextVar[Entry | None] = ContextVar("agentlatency_entry", default=None)
"""The SDK call on whose behalf this context runs."""
tool_in_progress: ContextVar[int | None] = ContextVar("agentlatency_tool", default=None)
"""Id of the tool whose body this context runs."""
_made_here: ContextVar[OpenCall | None] = ContextVar("agentlatency_call", default=None)
"""The call that this context made last."""


class Recorder:
    """Everything observed of one run, from any thread or task."""

    def __init__(self, read_clock: Callable[[], Ns] = clock.now) -> None:
        """`read_clock` gives nanoseconds from an arbitrary origin; the run's clock starts now."""
        self._read = read_clock
        self._origin = read_clock()
        self._lock = threading.Lock()
        self._attempts: list[OpenAttempt] = []
        self._calls: list[OpenCall] = []
        self._tools: list[ToolRecord] = []
        self._next_tool = 1
        self._pauses: list[Pause] = []
        self.bounds: tuple[Ns, Ns] | None = None
        self.entries: list[Entry] = []
        self.results: ToolResults | None = None
        """What tools are given in place of running; None: they run."""
        self.handed_over_early = False
        """The agent handed an output on before it made a call."""

    def now(self) -> Ns:
        """Nanoseconds on the run's clock."""
        return Ns(self._read() - self._origin)

    def enter(self, sdk: str, transport: str) -> Entry:
        """An SDK call begins."""
        opened = Entry(sdk, self.now(), transport=transport)
        with self._lock:
            self.entries.append(opened)
        return opened

    def open_call(self) -> OpenCall:
        """The call that a model request about to leave belongs to: the SDK call in progress, or one of its own."""
        current = entry.get()
        with self._lock:
            if current is not None and current.call is not None:
                return current.call
            opened = OpenCall(len(self._calls) + 1, parent=tool_in_progress.get())
            if current is not None:
                opened.sdk, opened.entered, current.call = current.sdk, current.entered, opened
            self._calls.append(opened)
            _made_here.set(opened)
            return opened

    def open_attempt(self, call: OpenCall, request: Request) -> OpenAttempt:
        """A model request is about to leave."""
        opened = OpenAttempt(self, call.id, request, self.now())
        with self._lock:
            self._attempts.append(opened)
        return opened

    @contextmanager
    def tool(self, name: str) -> Generator["OpenTool"]:
        """Time a tool's execution; calls and tools inside become its children."""
        with self._lock:
            opened = OpenTool(self._next_tool, name, tool_in_progress.get(), self.now())
            self._next_tool += 1
        token = tool_in_progress.set(opened.id)
        try:
            yield opened
        except BaseException:
            opened.error = True
            raise
        finally:
            tool_in_progress.reset(token)
            with self._lock:
                self._tools.append(opened.record(self.now()))

    @contextmanager
    def pause(self, reason: str) -> Generator[None]:
        """Take the time of the block out of every figure."""
        start = self.now()
        try:
            yield
        finally:
            with self._lock:
                self._pauses.append(Pause(start, self.now(), reason))

    def deliver(self) -> None:
        """The agent hands its first output of the turn on to its user, here and now; the first word of a turn counts.

        The turn is that of the latest call of the same body, the agent's or a tool's. Of agents side by side it is the
        context's own, while it streams.
        """
        moment = self.now()
        with self._lock:
            call = self._handing_over()
            if call is None:
                self.handed_over_early = True
            elif call.delivered is None:
                call.delivered = moment

    def _handing_over(self) -> OpenCall | None:
        own, body = _made_here.get(), tool_in_progress.get()
        if any(each.end is None and own is self._calls[each.call - 1] for each in self._attempts):
            return own
        latest = self._calls[-1] if self._calls else None
        return next((each for each in reversed(self._calls) if each.parent == body), latest)

    @property
    def handed_over(self) -> frozenset[int]:
        """Ids of the calls at whose turn the agent handed its output on."""
        return frozenset(each.id for each in self._calls if each.delivered is not None)

    @property
    def events(self) -> tuple[int, ...]:
        """Something that is equal as long as nothing new was observed."""
        done = sum(len(each.chunks) + (each.end is not None) for each in self._attempts)
        returned = sum(each.returned is not None for each in self._calls)
        tools, pauses, handed_over = len(self._tools), len(self._pauses), len(self.handed_over)
        return len(self._attempts), done, returned, tools, pauses, handed_over, hash(self.bounds)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The model requests seen so far, attempt by attempt."""
        return tuple(each.request for each in self._attempts)

    @property
    def observed_calls(self) -> int:
        """Model calls seen so far."""
        return len(self._calls)

    def unseen_transports(self) -> tuple[str, ...]:
        """Transports of SDK calls from which no model request was seen to leave."""
        return tuple(dict.fromkeys(each.transport for each in self.entries if each.call is None and each.transport))

    def recording(self, facts: Facts) -> Recording:
        """Everything observed so far, as values."""
        with self._lock:
            return Recording(
                attempts=tuple(each.attempt() for each in self._attempts),
                calls=tuple(each.record() for each in self._calls),
                tools=tuple(sorted(self._tools, key=lambda tool: tool.id)),
                pauses=tuple(self._pauses),
                bounds=self.bounds,
                facts=facts,
            )


@dataclass(slots=True)
class OpenTool:
    """A tool while it runs."""

    id: int
    name: str
    parent: int | None
    start: Ns
    body: tuple[Ns, Ns] | None = None
    error: bool = False
    split: bool = False
    """The body is told from the validation around it, so that an error without a body is a rejection."""

    def record(self, end: Ns) -> ToolRecord:
        """The finished execution."""
        rejected = self.split and self.error and self.body is None
        return ToolRecord(self.id, self.name, self.start, end, self.body, self.parent, self.error, rejected)

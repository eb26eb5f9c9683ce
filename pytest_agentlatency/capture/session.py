"""One run under observation: everything that stands in its way is put in place here, and taken away again.

Owns the order in which the seams are installed and what makes a run untrustworthy. Knows no file and no test framework.
"""

import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import Self

from pytest_agentlatency.analysis import assembly, drift, retiming
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.drift import LiveCall, Replayed
from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.analysis.retiming import Retimed
from pytest_agentlatency.capture import active, delivery, guard, transport
from pytest_agentlatency.capture.eventstreams import interactions, is_open
from pytest_agentlatency.capture.pricing import price
from pytest_agentlatency.capture.recorder import Entry, Recorder
from pytest_agentlatency.capture.sdk import Hooks
from pytest_agentlatency.capture.toolreplay import ToolResults
from pytest_agentlatency.capture.traffic import Observer, Played, Player, RunFailedError
from pytest_agentlatency.capture.virtual_time import VirtualTime
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.interactions import Interaction, Seen
from pytest_agentlatency.cassette.masks import Masks
from pytest_agentlatency.cassette.matching import Matcher, Unmatched
from pytest_agentlatency.cassette.redaction import Redaction
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.vcr import OtherHTTP, foreign_cassette_active
from pytest_agentlatency.model import clock
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.recording import Facts, Recording, Request
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.wire import registry

_SHADOWED = (
    "a cassette of vcrpy's own is in place around the model calls (a use_cassette, or the fixture vcr of "
    "pytest-recording): it would answer or buffer them before they are seen.\nTake it off: agent_latency records "
    "the test's other HTTP as well, and one run has one recording."
)
_NOTED_VERSIONS = ("pytest-agentlatency", "anthropic", "openai", "httpx", "httpx2")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session needs to know before it begins."""

    mode: Mode
    test: str
    """Node id of the test."""
    counter: Counter
    document: Document = Document(Recording())
    """What is replayed."""
    masks: Masks = Masks()
    strict: bool = False
    """A drifted call is a failure."""
    replay_tools: bool = False
    """In replay, tools are given their recorded results in place of running."""
    redaction: Redaction = Redaction()
    """What of an exchange isn't stored."""
    allow_hosts: tuple[str, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    """Latency models from sweeps, for recordings whose own calls don't tell what a token costs."""
    kv_specs: Mapping[str, KvSpec] = field(default_factory=dict[str, KvSpec])
    """What decides the KV-cache memory of models whose configuration the user gives, by model name."""
    stopping: Callable[[str], RunFailedError] = RunFailedError
    """Makes the exception that stops a run; a test framework may want one of its own kind."""


class Session:
    """A context manager around a run. While it is entered, every model call of the process belongs to it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.recorder = Recorder()
        self._stack = ExitStack()
        self._barrier: guard.Barrier | None = None
        self._recorded_at = clock.utc_ns()
        self._told: tuple[tuple[int, ...], Replayed] | None = None
        replaying = plan.mode is Mode.REPLAY
        learned = Learned()
        self._player = Player(
            self.recorder,
            Matcher(plan.document.recording, masks=plan.masks, strict=plan.strict, learned=learned),
            VirtualTime(),
            learned,
            stopping=plan.stopping,
            redaction=plan.redaction,
            price=self._price,
        )
        if replaying and plan.replay_tools:
            self.recorder.results = ToolResults(plan.document.recording, self._player.matcher.recorded)
        self._player.open_streams.recorded += [each for each in plan.document.others if is_open(each)]
        self._observer = Observer(self.recorder, event_streams=[] if plan.mode is Mode.RECORD else None)
        self._traffic: Observer | Player = self._player if replaying else self._observer
        self._others = OtherHTTP(
            tuple(each for each in plan.document.others if not is_open(each)) if replaying else (),
            record=not replaying,
            hooks=plan.redaction.config,
            learned=self._traffic.learned,
            refuse=self._refused,
            models=self._model_urls(),
            called=lambda: (played.request.url for played in self._player.played),
        )

    def __enter__(self) -> Self:
        replaying = self.plan.mode is Mode.REPLAY
        if not replaying and foreign_cassette_active():
            self._player.fail(_SHADOWED)
        active.begin(self.recorder)
        self._traffic.origin.begin()
        self._stack.callback(active.end, self.recorder)
        try:
            originals = transport.leaves()
            # Measuring live, the agent's other HTTP is nobody's business: no vcrpy in its way.
            self._stack.enter_context(self._others if self.plan.mode is not Mode.LIVE else nullcontext())
            transport.install(self._traffic, originals, self._stack)
            Hooks(self.recorder, self._stack, _RecordedBackoff(self._player) if replaying else None)
            if replaying:
                self._player.time.install(self._stack)
                self._barrier = guard.install(self._player.fail, self._model_urls(), self.plan.allow_hosts)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _price(self, miss: Unmatched) -> str:
        plan = self.plan
        recorded = self._player.matcher.recorded
        return price(miss, plan.document.recording, recorded, plan.counter, plan.calibrations)

    def close(self) -> None:
        """Take everything away. Harmless when it has been done; what was observed can still be asked.

        What a replay left at work (a thread that goes on after its test) stays cut off from the model.
        """
        if self._barrier is not None:
            self._barrier.remove(self._traffic.origin.left(), partial(_left_over, self.plan.test))
            self._barrier = None
        self._stack.close()

    @property
    def learned(self) -> Learned:
        """Credentials that the agent sent."""
        return self._traffic.learned

    def _model_urls(self) -> Iterator[str]:
        return (attempt.request.url for attempt in self.plan.document.recording.attempts)

    def told(self) -> Replayed:
        """The run so far. Live and recording: as measured. Replay: as recorded, with the live requests in it."""
        if self.plan.mode is Mode.REPLAY:
            return self._replayed()
        recording = self.recording()
        readings = assembly.read(recording)
        return Replayed(assembly.from_readings(readings, recording), readings, readings, recording)

    def _replayed(self) -> Replayed:
        # Every request is read again from its first message: once for a test that asks for figures and is then judged.
        seen = self.recorder.events
        if self._told is None or self._told[0] != seen:
            self._told = seen, drift.replayed(self.plan.document.recording, self._live_calls(), self.plan.counter)
        return self._told[1]

    def retimed(self) -> Retimed:
        """The run so far, the times of changed requests projected."""
        return retiming.by_fits(self.told(), self.plan.calibrations)

    def _live_calls(self) -> tuple[LiveCall, ...]:
        calls: dict[int, Played] = {}
        for played in self._player.played:
            calls.setdefault(played.live_call, played)
        return tuple(
            LiveCall(each.match.record.id, each.request, each.match.verdict, each.match.difference)
            for each in calls.values()
        )

    def recording(self) -> Recording:
        """Everything observed so far, dated and with the versions of what took part."""
        return self.recorder.recording(
            Facts(
                test=self.plan.test,
                recorded=datetime.fromtimestamp(self._recorded_at // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                counter=self.plan.counter.id,
                versions={"python": platform.python_version(), **_versions()},
            )
        )

    def document(self) -> Document:
        """What a cassette of this run holds. RedactionError when a user's hook takes away what a replay needs."""
        return Document(self.plan.redaction.recording(self.recording()), self.others)

    @property
    def others(self) -> tuple[Interaction, ...]:
        """HTTP of the run so far that is no model call."""
        streams = interactions(self._observer.event_streams or (), self.plan.redaction.config)
        return (*self._others.interactions, *streams)

    def asked(self) -> tuple[tuple[int, Request], ...]:
        """Model calls and their requests, as a replay would ask for them."""
        attempts = self.recording().attempts
        return tuple((each.call, self.plan.redaction.request(each.request, each.call)) for each in attempts)

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many live calls ended as each verdict."""
        return self._player.verdicts

    def problems(self) -> tuple[str, ...]:
        """Why this run can't be trusted; empty when it can. One message each, the first is the cause."""
        told = [_SHADOWED] if any(each.shadowed and each.call is None for each in self.recorder.entries) else []
        told += [str(failure) for failure in self._player.failures]
        told += self._traffic.strangers if isinstance(self._traffic, Observer) else []
        told += self._bypassing()
        if not told and not self.recorder.observed_calls:
            told.append(self._nothing_seen())
        return tuple(dict.fromkeys(told))

    def _refused(self, miss: Seen) -> RunFailedError:
        return self._player.fail(
            f"{miss.stack} asked for {miss.method} {miss.url}, which the cassette doesn't hold.\n"
            "In a replay nothing goes out. Record the run again with --latency-mode=record."
        )

    def _bypassing(self) -> Iterator[str]:
        """Model calls that went past the seam through another HTTP stack, where vcrpy saw them buffered."""
        for interaction in self._others.interactions if self.plan.mode is Mode.RECORD else ():
            asked = interaction["request"]
            body = asked.get("body") or b""
            url = str(asked["uri"])
            request = Request(str(asked["method"]), url, (), body.encode() if isinstance(body, str) else body)
            if registry.recognise(request) is not None:
                stack = self._others.stack(url)
                yield (
                    f"a model call to {url} went through {stack}, an HTTP stack that can't be timed.\n"
                    "Chunks are only seen in httpx and httpx2: give the agent's client one of these."
                )

    def _nothing_seen(self) -> str:
        unseen = self.recorder.unseen_transports()
        if unseen:
            return (
                f"no model call was observed, though an SDK was called: its client sends through {unseen[0]}, which "
                "is not seen.\nGive it a transport of httpx or httpx2, or one that wraps one."
            )
        return (
            "no model call was observed during the test.\nEither the agent made none, or it uses an HTTP stack other "
            "than httpx and httpx2 (a subprocess, gRPC, one of its own). Remove the marker, or give its client httpx."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of a run that is none the worse for it."""
        tools = self.recorder.results.notes if self.recorder.results is not None else ()
        early = (delivery.EARLY,) if self.recorder.handed_over_early else ()
        return (*tools, *early, *delivery.notes(self.recorder.handed_over, self._player.played))

    def unused(self) -> int:
        """How many recorded calls the agent didn't make."""
        return len(tuple(self._player.matcher.unused())) if self.plan.mode is Mode.REPLAY else 0


@dataclass(frozen=True, slots=True)
class _RecordedBackoff:
    """An SDK's sleep between attempts in a replay: no time for a lone agent, the recorded time among several."""

    player: Player

    def skip(self, entered: Entry | None) -> None:
        """Go on at once."""

    async def skip_async(self, entered: Entry | None) -> None:
        """Let virtual time pass as long as the recorded sleep took."""
        await self.player.time.pace().until_async(self._recorded(entered))

    def _recorded(self, entered: Entry | None) -> int:
        live = entered.call.id if entered is not None and entered.call is not None else 0
        attempts = [each for each in self.player.played if each.live_call == live]
        sleeps: Sequence[tuple[int, int]] = attempts[-1].match.record.backoffs if attempts else ()
        if len(sleeps) < len(attempts):
            return 0
        start, end = sleeps[len(attempts) - 1]
        return end - start


def _left_over(test: str, message: str) -> RunFailedError:
    thread = threading.current_thread().name
    return RunFailedError(f"{message}\nIt is the thread {thread!r}, which {test} left at work: end it in the test.")


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _NOTED_VERSIONS:
        # Only what takes part: an installed SDK that the run never imported says nothing about it.
        if name.replace("-", "_") in sys.modules or name.replace("-", "_").startswith("pytest_agent"):
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
    return found

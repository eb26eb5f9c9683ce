"""A second pass: the same session again in processes of their own, under another clock and other hash seeds.

Owns what the passes change, how they hand over what was sent, and which of the changes a difference is put down to.
Refuses to know pytest: the caller gives the command, and says which tests are wanted.
"""

import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.breaks import Break
from pytest_agentlatency.analysis.counters import Counter
from pytest_agentlatency.analysis.prefix import Sent, Stability, differences
from pytest_agentlatency.capture import shifted_clock
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import Missing
from pytest_agentlatency.model import clock
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.run import Run

_S = 1_000_000_000
_HOUR, _DAY = 3600 * _S, 86_400 * _S
_SHIFT = 401 * _DAY + 13 * _HOUR + (7 * 60 + 11) * _S
"""Another year, month, day, weekday, hour (of 12 and of 24), minute and second."""
_PATIENCE = 600  # seconds; offline, a session is done in a fraction of it
_FORCED = ("--latency-mode=replay", "--latency-drift=retime", "--maxfail=0")
_TAIL = 12  # lines of a failed pass's output

CLOCK, HASHES, ANY = "another clock", "another hash seed", "any second run"


@dataclass(frozen=True, slots=True)
class _Pass:
    name: str
    seed: int
    """PYTHONHASHSEED. Two seeds beside the first: a set of two keeps its order under every other one."""
    shift: int = 0


_PLAIN, _CLOCK = _Pass("plain", 1), _Pass("clock", 1, _SHIFT)
_SEEDS = (_Pass("seed 2", 2), _Pass("seed 3", 3))


class PassError(Exception):
    """A test could not be passed a second time: why, with the end of what the pass printed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in the requests that depends on the day, the process or chance."""

    cause: str
    """`another clock`, `another hash seed`, or `any second run` when nothing had to be changed for it."""
    broken: Break
    """At the first turn that shows it; `detail` names the cause."""
    turns: tuple[int, ...]
    """Every turn that does."""
    lane: int = 1


# --- in the process of a pass


def enter(folder: Path) -> None:
    """Move this process's clock as the pass wants it. To be called before the agent is imported."""
    shifted_clock.move_to(int((folder / "clock").read_text(encoding="ascii")))


def wanted(folder: Path) -> Collection[str]:
    """Node ids of the tests that the pass is for."""
    return frozenset((folder / "wanted").read_text(encoding="utf-8").splitlines())


def leave(folder: Path, test: str, run: Run) -> None:
    """Hand over what a test sent, without the headers: they hold the key, and no prompt."""
    last = [call.attempts[-1] for call in run.calls if call.attempts]
    attempts = tuple(replace(each, request=replace(each.request, headers=())) for each in last)
    store.save(_file(folder, test), Document(Recording(attempts, tuple(call.record for call in run.calls))))


def _file(folder: Path, test: str) -> Path:
    return folder / f"{sha256(test.encode()).hexdigest()[:32]}.yaml"


# --- in the process that asks for it


@dataclass(frozen=True, slots=True)
class Passed:
    """What each pass sent, by test."""

    sent: Mapping[str, Mapping[str, Recording]]
    """Node id -> name of the pass -> its requests."""
    printed: str = ""

    def findings(self, test: str, counter: Counter) -> tuple[Finding, ...]:
        """What depends on clock, hash seed or chance in a test's requests.

        PassError when the passes made different numbers of calls, or none: there is nothing to compare then.
        """
        sent = self.sent[test]
        calls = {name: len(recording.attempts) for name, recording in sent.items()}
        if len(set(calls.values())) > 1 or not any(calls.values()):
            made = ", ".join(f"{name} {count}" for name, count in calls.items())
            msg = f"no second pass of {test}: calls made: {made}. It printed:\n{self.printed or 'nothing'}"
            raise PassError(msg)
        lanes = {name: _lanes(recording) for name, recording in sent.items()}
        shared = [lane for lane in lanes[_PLAIN.name] if all(lane in each for each in lanes.values())]
        return tuple(
            finding
            for lane in shared
            for finding in _findings({name: each[lane] for name, each in lanes.items()}, lane, counter)
        )


@dataclass(frozen=True, slots=True)
class Command:
    """A pytest session as it was started."""

    arguments: Sequence[str]
    where: Path
    environment: Mapping[str, str]
    caches: bool = True
    """pytest's own cache is in use: a pass must have another one."""


class SecondPass:
    """The second pass of a session, done when the first test asks for it."""

    def __init__(self, command: Command, tests: Sequence[str], *, apart: bool) -> None:
        """`apart`: of one test at a time, for a worker that has a share of the session."""
        self._command, self._tests, self._apart = command, tests, apart
        self._passed: dict[str, Passed] = {}

    def findings(self, test: str, counter: Counter) -> tuple[Finding, ...]:
        """What depends on clock, hash seed or chance in a test's requests. PassError as `Passed.findings`."""
        key = test if self._apart else ""
        if key not in self._passed:
            self._passed[key] = again(self._command, [test] if self._apart else self._tests)
        return self._passed[key].findings(test, counter)


def again(command: Command, tests: Sequence[str]) -> Passed:
    """Run a session once for each pass, side by side, and gather what the tests sent."""
    with TemporaryDirectory(prefix="latency-passes-") as temporary:
        every = (_PLAIN, _CLOCK, *_SEEDS)
        folders = {each.name: Path(temporary) / each.name.replace(" ", "") for each in every}
        # The same time of day for each, away from the edges of a minute, an hour and a month.
        start = clock.utc_ns() // (28 * _DAY) * 28 * _DAY + 3 * _HOUR + (17 * 60 + 20) * _S
        started = [_start(each, folders[each.name], command, tests, start) for each in every]
        printed = [_ended(process) for process in started]
        sent = {test: {name: _read(_file(folder, test)) for name, folder in folders.items()} for test in tests}
        return Passed(sent, next(filter(None, printed), ""))


def _start(pass_: _Pass, folder: Path, command: Command, tests: Sequence[str], start: int) -> "subprocess.Popen[str]":
    folder.mkdir()
    (folder / "clock").write_text(str(start + pass_.shift), encoding="ascii")
    (folder / "wanted").write_text("\n".join(tests), encoding="utf-8")
    own = [f"--latency-probe-pass={folder}", f"--basetemp={folder}/temporary"]
    own += ["-o", f"cache_dir={folder}/cache"] if command.caches else []
    return subprocess.Popen(  # noqa: S603  # this interpreter, the arguments of this session
        [sys.executable, "-m", "pytest", *command.arguments, *_FORCED, *own],
        cwd=command.where,
        env={**command.environment, "PYTHONHASHSEED": str(pass_.seed)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _ended(process: "subprocess.Popen[str]") -> str:
    """The end of what a pass printed, when it didn't end well."""
    try:
        printed, _ = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"nothing after {_PATIENCE} seconds, and was ended"
    return "\n".join(printed.splitlines()[-_TAIL:]) if process.returncode else ""


def _read(path: Path) -> Recording:
    """What a test sent; nothing when it didn't come so far."""
    try:
        return store.load(path).recording
    except Missing:
        return Recording()


# --- what the differences mean


def _lanes(recording: Recording) -> Mapping[int, Sequence[Reading]]:
    lanes: dict[int, list[Reading]] = {}
    for reading in assembly.read(recording):
        lanes.setdefault(reading.lane, []).append(reading)
    return lanes


def _findings(sent: Mapping[str, Sequence[Reading]], lane: int, counter: Counter) -> Iterator[Finding]:
    by_clock = _differences(sent, (_CLOCK,), counter)
    by_hash = _differences(sent, _SEEDS, counter)
    found: dict[tuple[str, str, str], list[Break]] = {}
    for turn, path in sorted(by_clock.keys() | by_hash.keys()):
        one, other = by_clock.get((turn, path)), by_hash.get((turn, path))
        broken = one or other
        if broken is not None:
            cause = ANY if one and other else CLOCK if one else HASHES
            found.setdefault((cause, path, broken.detail), []).append(broken)
    for (cause, _, detail), breaks in found.items():
        first = replace(breaks[0], detail=f"{detail} with {cause}")
        yield Finding(cause, first, tuple(each.turn for each in breaks), lane)


def _differences(
    sent: Mapping[str, Sequence[Reading]], passes: Sequence[_Pass], counter: Counter
) -> Mapping[tuple[int, str], Break]:
    plain = list(map(_sent, sent[_PLAIN.name]))
    found: dict[tuple[int, str], Break] = {}
    for each in passes:
        for broken in differences(plain, map(_sent, sent[each.name]), counter):
            found.setdefault((broken.turn, broken.path), broken)
    return found


def _sent(reading: Reading) -> Sent:
    return Sent(reading.prompt, reading.call.attempts[-1].request.body, reading.call.usage.context)


def unstable(
    stability: Stability, findings: Sequence[Finding], except_turns: Collection[int], lane: int = 1
) -> Stability:
    """A lane's stability with what the second pass found of that lane, where the turns aren't excepted."""
    counted = [each for each in findings if each.lane == lane and not set(each.turns) <= set(except_turns)]
    return replace(stability, breaks=(*stability.breaks, *(each.broken for each in counted)))

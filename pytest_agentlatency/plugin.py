"""The pytest plugin: options, markers, the fixture, hooks; each one call into a room below.

Imports nothing but pytest and the settings: a session without a marked test pays for no more.
"""

import argparse
import functools
import inspect
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentlatency import settings as settings_
from pytest_agentlatency.settings import DriftPolicy, Settings, SettingsError

if TYPE_CHECKING:
    from pytest_agentlatency.agent_run import AgentRun
    from pytest_agentlatency.capture.passes import SecondPass
    from pytest_agentlatency.capture.traffic import RunFailedError
    from pytest_agentlatency.case import Case, Identity, Outcome

_SETTINGS = pytest.StashKey[Settings]()
_CASE = pytest.StashKey["Case"]()
_OUTCOME = pytest.StashKey["Outcome"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and ini values."""
    group = parser.getgroup("latency", "latency of LLM agents")
    group.addoption(
        settings_.OPTIONS["mode"],
        dest="agentlatency_mode",
        metavar="MODE",
        help="replay (default: offline, from the cassette), record (call the model, replace the cassette when the test "
        "passes), once (record only where there is no cassette), live (call the model, write nothing)",
    )
    group.addoption(
        settings_.OPTIONS["drift"],
        dest="agentlatency_drift",
        metavar="POLICY",
        help=f"what a changed request does: {' or '.join(DriftPolicy)} (default: retime)",
    )
    group.addoption(
        settings_.OPTIONS["allow_live"],
        dest="agentlatency_allow_live",
        action="store_true",
        help="allow record, once and live although CI is set",
    )
    group.addoption(
        settings_.OPTIONS["probe_prefix"],
        dest="agentlatency_probe_prefix",
        action="store_true",
        help="replay each test again under another clock and other hash seeds, and compare what it sends",
    )
    group.addoption(settings_.OPTIONS["probe_pass"], dest="agentlatency_probe_pass", help=argparse.SUPPRESS)
    group.addoption(
        settings_.OPTIONS["update"],
        dest="agentlatency_update",
        action="store_true",
        help="accept the figures of replays: shows old and new, refuses what is worse, keeps them beside the cassette",
    )
    group.addoption(
        settings_.OPTIONS["loosen"],
        dest="agentlatency_loosen",
        action="store_true",
        help="accept worse figures too (implies --latency-update)",
    )
    group.addoption(
        settings_.OPTIONS["require_budget"],
        dest="agentlatency_require_budget",
        action="store_true",
        help="fail tests that have no budget and read no figure, and suggest budgets for them",
    )
    parser.addini(settings_.INI["mode"], "default of --latency-mode")
    parser.addini(settings_.INI["drift"], "default of --latency-drift")
    parser.addini(settings_.INI["counter"], "token counter: chars, tiktoken, claude, or another package's")
    parser.addini(settings_.INI["volatile"], "regular expressions of spans that matching ignores", type="linelist")
    parser.addini(settings_.INI["allow_hosts"], "hosts that a replay may connect to", type="args")
    parser.addini(settings_.INI["strict_growth"], "an inconclusive budget fails", type="bool", default=False)
    parser.addini(settings_.INI["require_budget"], "as --latency-require-budget", type="bool", default=False)
    parser.addini(
        settings_.INI["calibrations"], "folders of calibration files (default: latency-calibrations)", type="paths"
    )
    parser.addini(
        settings_.INI["kv_configs"], "models and their config.json, as lines of model = path", type="linelist"
    )
    parser.addini(settings_.INI["max_drift"], "how far a request may drift before only a recording will do: 30%")
    parser.addini(
        settings_.INI["replay_tools"],
        "in a replay, tools are given their recorded results in place of running",
        type="bool",
        default=False,
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """In the process of a second pass, move the clock before any code of the user's is imported."""
    folder = early_config.known_args_namespace.agentlatency_probe_pass
    if folder:
        from pytest_agentlatency.capture import passes  # noqa: PLC0415

        passes.enter(Path(folder))


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, check the settings."""
    config.addinivalue_line(
        "markers",
        "agent_latency(cassette=..., mode=..., drift=..., replay_tools=...): record this test's model calls once, "
        "replay them ever after",
    )
    config.addinivalue_line("markers", "latency_budget(*phrases): what the run must keep, as phrases")
    config.addinivalue_line(
        "markers", "moves_cache_prefix(reason=...): this test can't keep 'prefix stable'; the reason says why"
    )
    try:
        config.stash[_SETTINGS] = settings_.from_sources(
            {name: getattr(config.option, f"agentlatency_{name}", None) for name in settings_.OPTIONS},
            {name: config.getini(ini) for name, ini in settings_.INI.items()} | {"calibrations": _folders(config)},
            base=config.inipath.parent if config.inipath else config.rootpath,
        )
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(), "agentlatency-summary")


def _folders(config: pytest.Config) -> list[Path]:
    named: list[Path] = config.getini(settings_.INI["calibrations"])
    return named or [config.rootpath / settings_.CALIBRATIONS]


@pytest.hookimpl(trylast=True)  # after what was deselected is gone: it neither runs nor writes
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each marked test its case. UsageError, naming the test and the marker, for a marker that can't be used."""
    try:
        _give_cases(config, items)
    except pytest.UsageError as error:
        if not hasattr(config, "workerinput"):
            raise
        # A worker of xdist that stops here is taken for crashed, and its words are lost: a report crosses over.
        items.clear()
        report = pytest.CollectReport("agent_latency", "failed", longrepr=str(error), result=[])
        config.hook.pytest_collectreport(report=report)


def _give_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if _is_marked(item)]
    if config.stash[_SETTINGS].probe_pass:
        from pytest_agentlatency.capture import passes  # noqa: PLC0415

        tests = passes.wanted(Path(config.stash[_SETTINGS].probe_pass))
        items[:] = marked = [item for item in marked if item.nodeid in tests]
    if not marked:
        return
    second = _second_pass(config, [item.nodeid for item in marked])
    from pytest_agentlatency import case as cases  # noqa: PLC0415  # only suites with marked tests pay for it
    from pytest_agentlatency.cassette.errors import CassetteError  # noqa: PLC0415

    for item in marked:
        try:
            item.stash[_CASE] = case = _case(item, config.stash[_SETTINGS])
            case.second_pass = functools.partial(second.findings, item.nodeid) if second else None
        except (ValueError, SettingsError, CassetteError) as error:
            msg = f"{item.nodeid}: {error}"
            raise pytest.UsageError(msg) from None
        names = _fixture_names(item)
        _take_off_vcr(item, names)
        if "agent_run" in names:
            names.remove("agent_run")
        names.insert(_own(item, names), "agent_run")
    shared = cases.shared_paths([item.stash[_CASE] for item in marked])
    if shared:
        raise pytest.UsageError(shared)


def _take_off_vcr(item: pytest.Item, names: list[str]) -> None:
    """One run has one recording: pytest-recording's fixture is not for a test that is ours."""
    if "vcr" not in names or item.get_closest_marker("vcr") is None:
        return
    if "vcr" in inspect.signature(item.function).parameters:  # type: ignore[attr-defined]
        msg = (
            f"{item.nodeid} is marked agent_latency, which records all of its HTTP, and asks for vcr, whose cassette "
            "there then isn't. Take the argument away, or the marker."
        )
        raise pytest.UsageError(msg)
    names.remove("vcr")


def _fixture_names(item: pytest.Item) -> list[str]:
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is None:
        msg = (
            f"{item.nodeid}: agent_latency can't be used on a {type(item).__name__}, which takes no fixtures. "
            "Mark test functions, their classes or modules only."
        )
        raise pytest.UsageError(msg)
    return names


def _own(item: pytest.Item, names: list[str]) -> int:
    """Where the test's own fixtures begin: what they do is part of the run, what wider ones do is several tests'."""
    # pytest sorts them by scope, and tells the scope nowhere else.
    known = cast("dict[str, Any]", item._fixtureinfo.name2fixturedefs)  # type: ignore[attr-defined]  # noqa: SLF001
    own = (at for at, name in enumerate(names) if name in known and known[name][-1].scope == "function")
    return next(own, len(names))


def _is_marked(item: pytest.Item) -> bool:
    if item.get_closest_marker("agent_latency") is not None:
        return True
    if item.get_closest_marker("latency_budget") is not None:
        msg = (
            f"{item.nodeid}: a latency_budget needs a run to judge. "
            "Add @pytest.mark.agent_latency to the test, its class or its module."
        )
        raise pytest.UsageError(msg)
    return False


def _case(item: pytest.Item, session: Settings) -> "Case":
    from pytest_agentlatency import case as cases  # noqa: PLC0415

    marker = item.get_closest_marker("agent_latency")
    asked = settings_.marker(marker.args, marker.kwargs) if marker else settings_.Marker()
    identity = _identity(item)
    return cases.Case(
        identity,
        settings_.for_test(session, asked),
        tuple(_phrases(item)),
        cases.cassette_path(identity, asked.cassette),
        named=asked.cassette is not None,
        moves_prefix=_moves_prefix(item),
    )


def _moves_prefix(item: pytest.Item) -> str:
    marker = item.get_closest_marker("moves_cache_prefix")
    if marker is None:
        return ""
    reason = marker.kwargs.get("reason")
    if marker.args or set(marker.kwargs) != {"reason"} or not isinstance(reason, str) or not reason.strip():
        msg = f"moves_cache_prefix takes a reason and nothing else, got {marker.args!r} {marker.kwargs!r}: reason='...'"
        raise SettingsError(msg)
    return reason


def _identity(item: pytest.Item) -> "Identity":
    from pytest_agentlatency import case as cases  # noqa: PLC0415

    owner = item.getparent(pytest.Class)
    return cases.Identity(item.nodeid, f"{owner.name}.{item.name}" if owner else item.name, Path(item.path))


def _phrases(item: pytest.Item) -> Iterator[Any]:
    """The budgets of a test, those of its module and class first."""
    from pytest_agentlatency.budgets.phrase import parse  # noqa: PLC0415

    for marker in reversed(list(item.iter_markers("latency_budget"))):
        if marker.kwargs or not marker.args:
            found = f"{next(iter(marker.kwargs))}=..." if marker.kwargs else "none"
            msg = f"latency_budget takes phrases, as strings; found {found}. For example: 'turns at most 8'"
            raise SettingsError(msg)
        for text in marker.args:
            if not isinstance(text, str):
                msg = f"latency_budget takes phrases, as strings; found {text!r}. For example: 'turns at most 8'"
                raise SettingsError(msg)
            yield parse(text)


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> Iterator["AgentRun"]:
    """The run of a test marked with `agent_latency`: figures, `tool(...)`, `pause(...)`."""
    case = request.node.stash.get(_CASE, None)
    if case is None:
        msg = f"{request.node.nodeid} asks for agent_run, but is not marked: add @pytest.mark.agent_latency"
        raise _failed(msg)
    case.hooks = _vcr_config(request)
    try:
        yield case.open(_stopped())
    finally:
        case.close()


def _vcr_config(request: pytest.FixtureRequest) -> dict[str, Any]:
    """pytest-recording's configuration of vcrpy, whether or not it is installed: the fixture's, then the markers'."""
    try:
        config: dict[str, Any] = dict(request.getfixturevalue("vcr_config"))
    except pytest.FixtureLookupError:
        config = {}
    for marker in reversed(list(request.node.iter_markers("vcr"))):
        config.update(marker.kwargs)
    return config


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Let a run that was stopped in a fixture say why, not where."""
    case = item.stash.get(_CASE, None)
    if case is None:
        return (yield)
    case.prepare(_stopped())
    try:
        return (yield)
    except BaseException as error:
        if _is_ours(error):
            raise _failed(case.stopped()) from None
        raise
    finally:
        case.prepared()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Tell what went on after the verdict, also where a fixture's clean-up swallowed it."""
    case = item.stash.get(_CASE, None)
    try:
        result = yield
    except BaseException as error:
        if case is not None and case.late and _is_ours(error):
            raise _failed(case.late) from None
        raise
    if case is not None and case.late:
        pytest.fail(case.late, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge a marked test's run after its body; its own failure is never masked."""
    case = item.stash.get(_CASE, None)
    if case is None:
        return (yield)
    if case.fatal:
        pytest.fail(case.fatal, pytrace=False)
    try:
        result = yield
    except BaseException as error:
        if _skips(error):
            _forget(item)
            raise
        outcome = _finish(item, case, passed=False)
        if outcome.failure and _is_ours(error):
            raise _failed(outcome.failure) from None
        if outcome.failure:
            item.add_report_section("call", "latency", outcome.failure)
        raise
    outcome = _finish(item, case, passed=True)
    if outcome.failure:
        pytest.fail(outcome.failure, pytrace=False)
    return result


def _skips(error: BaseException) -> bool:
    """Whether pytest will call the test skipped: then nothing is judged, written or rejected."""
    from unittest import SkipTest  # noqa: PLC0415

    return isinstance(error, (pytest.skip.Exception, SkipTest))


def _forget(item: pytest.Item) -> None:
    """Of a test that is run again, what its run before came to is no news."""
    if _OUTCOME in item.stash:
        del item.stash[_OUTCOME]


def _failed(message: str) -> BaseException:
    """A failure in place of the exception that says the same: raised `from None`, it is told once."""
    failed: Any = pytest.fail.Exception
    failure: BaseException = failed(message, pytrace=False)
    return failure


@functools.cache
def _stopped() -> "type[RunFailedError]":
    """The exception that stops a run, as pytest's own kind: after any other, pytest skips the rest of a teardown."""
    from pytest_agentlatency.capture.traffic import RunFailedError  # noqa: PLC0415

    failed: Any = pytest.fail.Exception

    class StoppedError(RunFailedError, failed):  # type: ignore[misc]  # pytest gives the class by an attribute only
        """The run can't go on: its message is all there is to show."""

        def __init__(self, message: str) -> None:
            failed.__init__(self, message, pytrace=False)

    return StoppedError


def _is_ours(error: BaseException) -> bool:
    """Whether a test failed because the run was stopped, alone or among the failures of a task group."""
    from pytest_agentlatency.capture.traffic import RunFailedError  # noqa: PLC0415

    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_ours, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    return isinstance(error, RunFailedError)


def _finish(item: pytest.Item, case: "Case", *, passed: bool) -> "Outcome":
    outcome = case.finish(passed=passed)
    if case.settings.probe_pass:
        return _leave(case.settings.probe_pass, item, outcome)
    item.stash[_OUTCOME] = outcome
    for title, text in outcome.sections:
        item.add_report_section("call", title, text)
    if outcome.run is not None:
        others = [each for each in item.user_properties if not each[0].startswith("agentlatency_")]
        item.user_properties[:] = [*others, *_properties(outcome)]  # a test that is run again has its last figures
    return outcome


def _properties(outcome: "Outcome") -> Iterator[tuple[str, object]]:
    """Flat numbers for JUnit's file."""
    run = outcome.run
    if run is None or not run.lanes:
        return
    yield "agentlatency_turns", len(run.all_turns)
    yield "agentlatency_provenance", str(run.provenance)
    if run.duration is not None:
        yield "agentlatency_duration_ms", round(run.duration / 1e6, 3)
        for phase, time in run.phases.items():
            yield f"agentlatency_{phase}_ms", round(time / 1e6, 3)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the run's entry on the report: it crosses from an xdist worker by itself."""
    report = yield
    outcome = item.stash.get(_OUTCOME, None)
    if report.when == "call" and outcome is not None and outcome.entry is not None:
        report.agentlatency = outcome.entry.to_json()  # type: ignore[attr-defined]
    return report


def _second_pass(config: pytest.Config, tests: list[str]) -> "SecondPass | None":
    """The session again, as it was started, nothing of it in parallel; None when nobody asked for it."""
    if not config.stash[_SETTINGS].probe_prefix:
        return None
    from pytest_agentlatency.capture.passes import Command, SecondPass  # noqa: PLC0415

    worker, plugins = getattr(config, "workerinput", None), config.pluginmanager
    arguments = worker["mainargv"][1:] if worker else config.invocation_params.args
    command = Command(
        [*map(str, arguments), *(["-n0"] if plugins.hasplugin("xdist") else [])],
        config.invocation_params.dir,
        dict(os.environ),
        caches=plugins.hasplugin("cacheprovider"),
    )
    return SecondPass(command, tests, apart=worker is not None)


def _leave(folder: str, item: pytest.Item, outcome: "Outcome") -> "Outcome":
    """In a pass, hand over what the test sent; whether it passed is the first pass's affair."""
    from pytest_agentlatency.capture import passes  # noqa: PLC0415
    from pytest_agentlatency.case import Outcome  # noqa: PLC0415

    if outcome.run is not None:
        passes.leave(Path(folder), item.nodeid, outcome.run)
    return Outcome()


class _Summary:
    """The block at the end of a session; in the process that prints."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, object]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect; of a test that was run again, the last run counts."""
        entry = getattr(report, "agentlatency", None)
        if entry is not None:
            self._entries[report.nodeid] = entry

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a few lines, when there was a run."""
        if not self._entries:
            return
        from pytest_agentlatency.report import summary  # noqa: PLC0415

        entries = [summary.Entry.from_json(each) for each in self._entries.values()]
        terminalreporter.section("agent latency")
        for line in summary.lines(entries, terminalreporter.config.get_verbosity()):
            terminalreporter.write_line(line)

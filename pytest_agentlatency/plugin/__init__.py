"""The pytest plugin: the hooks and the fixture, each one call into a room below.

Imports nothing but pytest and the settings: a session without a marked test pays for no more.
"""

import functools
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentlatency.plugin import marked as markers
from pytest_agentlatency.plugin import options
from pytest_agentlatency.settings import Settings, SettingsError

if TYPE_CHECKING:
    from pytest_agentlatency.agent_run import AgentRun
    from pytest_agentlatency.capture.passes import SecondPass
    from pytest_agentlatency.capture.traffic import RunFailedError
    from pytest_agentlatency.case import Case, Outcome

_SETTINGS = pytest.StashKey[Settings]()
_CASE = pytest.StashKey["Case"]()
_OUTCOME = pytest.StashKey["Outcome"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and ini values."""
    options.declare(parser)


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
    config.stash[_SETTINGS] = options.settings(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(), "agentlatency-summary")


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
    marked = [item for item in items if markers.is_marked(item)]
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
            item.stash[_CASE] = case = markers.case_of(item, config.stash[_SETTINGS])
            case.second_pass = functools.partial(second.findings, item.nodeid) if second else None
        except (ValueError, SettingsError, CassetteError) as error:
            msg = f"{item.nodeid}: {error}"
            raise pytest.UsageError(msg) from None
        markers.put_in_place(item)
    shared = cases.shared_paths([item.stash[_CASE] for item in marked])
    if shared:
        raise pytest.UsageError(shared)


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

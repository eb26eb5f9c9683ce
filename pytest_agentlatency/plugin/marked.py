"""From a collected item to its case: what its markers say, and in which order its fixtures run.

Owns the complaints about a marker that can't be used. Imports the case only when there is a marked test.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentlatency import settings as settings_
from pytest_agentlatency.settings import Settings, SettingsError

if TYPE_CHECKING:
    from pytest_agentlatency.case import Case, Identity


def is_marked(item: pytest.Item) -> bool:
    """Whether a test is ours. UsageError for budgets without the marker that gives them a run."""
    if item.get_closest_marker("agent_latency") is not None:
        return True
    if item.get_closest_marker("latency_budget") is not None:
        msg = (
            f"{item.nodeid}: a latency_budget needs a run to judge. "
            "Add @pytest.mark.agent_latency to the test, its class or its module."
        )
        raise pytest.UsageError(msg)
    return False


def case_of(item: pytest.Item, session: Settings) -> "Case":
    """The case of a marked test. SettingsError, CassetteError or PhraseError for a marker that can't be used."""
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


def put_in_place(item: pytest.Item) -> None:
    """Let the run begin where the test's own fixtures do, and nobody else record it."""
    names = _fixture_names(item)
    _take_off_vcr(item, names)
    if "agent_run" in names:
        names.remove("agent_run")
    names.insert(_own(item, names), "agent_run")


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

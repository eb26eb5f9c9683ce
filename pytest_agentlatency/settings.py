"""Options, ini values, environment and marker arguments as one frozen value, each bad one refused with its source.

Owns names, defaults and precedence: command line, then marker, then ini, then default. Knows no test framework: values
come in as plain mappings.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar, cast

from pytest_agentlatency.model.mode import Mode

Kind = TypeVar("Kind", bound=StrEnum)


class SettingsError(Exception):
    """A value that can't be used: what it is, where it was set, what is allowed."""


class DriftPolicy(StrEnum):
    """What a drifted call does to its test."""

    RETIME = "retime"
    """It is played on, its tokens judged as they are now, its times projected."""
    STRICT = "strict"
    """It fails the test."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, resolved."""

    mode: Mode = Mode.REPLAY
    mode_source: str = "default"
    drift: DriftPolicy = DriftPolicy.RETIME
    counter: str = "chars"
    volatile: tuple[str, ...] = ()
    """Regular expressions of spans that matching ignores."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that a replay may connect to."""
    replay_tools: bool = False
    """In a replay, tools are given their recorded results in place of running."""
    strict_growth: bool = False
    """An inconclusive budget fails."""
    require_budget: bool = False
    """A test without a budget fails, unless it reads a figure itself."""
    calibrations: tuple[str, ...] = ()
    """Folders of calibration files."""
    update: bool = False
    """Accept the figures of this session's replays."""
    loosen: bool = False
    """Accept worse ones too."""
    kv_configs: tuple[tuple[str, Path], ...] = ()
    """Models, and the `config.json` of each: what their KV cache takes."""
    max_drift: float | None = None
    """How far a request may be from the recorded one, as a fraction of its context; None: no bound."""
    allow_live: bool = False
    """Recording is allowed under CI."""
    ci: bool = False
    probe_prefix: bool = False
    """Each replay is done again under another clock and other hash seeds, and the requests are compared."""
    probe_pass: str = ""
    """The folder of such a pass, in the process that does it."""


CALIBRATIONS = "latency-calibrations"
"""Default folder of calibration files, beside the ini file."""
OPTIONS = {
    "mode": "--latency-mode",
    "drift": "--latency-drift",
    "allow_live": "--latency-allow-live",
    "update": "--latency-update",
    "loosen": "--latency-loosen",
    "require_budget": "--latency-require-budget",
    "probe_prefix": "--latency-probe-prefix",
    "probe_pass": "--latency-probe-pass",
}
INI = {
    "mode": "latency_mode",
    "drift": "latency_drift",
    "counter": "latency_counter",
    "volatile": "latency_volatile",
    "allow_hosts": "latency_allow_hosts",
    "strict_growth": "latency_strict_growth",
    "require_budget": "latency_require_budget",
    "calibrations": "latency_calibrations",
    "kv_configs": "latency_kv_configs",
    "max_drift": "latency_max_drift",
    "replay_tools": "latency_replay_tools",
}
"""Field of Settings -> ini name."""
MARKER = ("cassette", "mode", "drift", "replay_tools")
"""Keyword arguments of the marker `agent_latency`."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The arguments of one `agent_latency` marker."""

    cassette: str | None = None
    mode: Mode | None = None
    drift: DriftPolicy | None = None
    replay_tools: bool | None = None


def from_sources(
    options: Mapping[str, object],
    ini: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
    base: Path = Path(),
) -> Settings:
    """Settings of a session, before any marker. SettingsError on a bad value, naming its source.

    `options` by field name, None for what wasn't given; `ini` by field name, empty for what isn't there. `base`: where
    relative paths in ini values begin.
    """
    env = os.environ if environment is None else environment
    found = Settings(
        mode=_choice(Mode, ini.get("mode"), f"ini value {INI['mode']}") or Mode.REPLAY,
        mode_source=f"ini value {INI['mode']}" if ini.get("mode") else "default",
        drift=_choice(DriftPolicy, ini.get("drift"), f"ini value {INI['drift']}") or DriftPolicy.RETIME,
        counter=_counter(ini.get("counter")),
        volatile=_patterns(ini.get("volatile")),
        allow_hosts=_words(ini.get("allow_hosts")),
        strict_growth=bool(ini.get("strict_growth")),
        require_budget=bool(options.get("require_budget") or ini.get("require_budget")),
        calibrations=_words(ini.get("calibrations")),
        kv_configs=_models(ini.get("kv_configs"), base),
        max_drift=_fraction(ini.get("max_drift"), f"ini value {INI['max_drift']}"),
        replay_tools=bool(ini.get("replay_tools")),
        allow_live=bool(options.get("allow_live")),
        update=bool(options.get("update") or options.get("loosen")),
        loosen=bool(options.get("loosen")),
        probe_prefix=bool(options.get("probe_prefix")) and not options.get("probe_pass"),
        probe_pass=str(options.get("probe_pass") or ""),
        ci=env.get("CI", "").lower() not in {"", "0", "false", "no"},
    )
    mode = _choice(Mode, options.get("mode"), OPTIONS["mode"])
    drift = _choice(DriftPolicy, options.get("drift"), OPTIONS["drift"])
    found = replace(found, drift=drift or found.drift)
    found = replace(found, mode=mode, mode_source=OPTIONS["mode"]) if mode else found
    return _allowed(found)


def for_test(session: Settings, marker: Marker) -> Settings:
    """Settings of one test: the marker's word counts unless the command line said otherwise."""
    found = session
    if marker.mode is not None and session.mode_source != OPTIONS["mode"]:
        found = replace(found, mode=marker.mode, mode_source="marker agent_latency")
    if marker.drift is not None:
        found = replace(found, drift=marker.drift)
    if marker.replay_tools is not None:
        found = replace(found, replay_tools=marker.replay_tools)
    return _allowed(found)


def _allowed(settings: Settings) -> Settings:
    """Recording by accident in CI costs money and replaces what was reviewed."""
    if settings.ci and settings.mode in {Mode.RECORD, Mode.ONCE, Mode.LIVE} and not settings.allow_live:
        msg = (
            f"mode {settings.mode.value!r} (from {settings.mode_source}) is refused because CI is set: it calls the "
            "model for real. Record locally and commit the cassette, or pass --latency-allow-live."
        )
        raise SettingsError(msg)
    return settings


def marker(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Marker:
    """The arguments of an `agent_latency` marker. SettingsError on one that it doesn't take."""
    if args:
        msg = f"agent_latency takes no positional argument, got {args[0]!r}: allowed are {_named(MARKER)}"
        raise SettingsError(msg)
    unknown = [name for name in kwargs if name not in MARKER]
    if unknown:
        msg = f"agent_latency doesn't take {unknown[0]!r}: allowed are {_named(MARKER)}"
        raise SettingsError(msg)
    cassette = kwargs.get("cassette")
    if cassette is not None and not isinstance(cassette, str | os.PathLike):
        msg = f"agent_latency(cassette=...) takes a file name, got {cassette!r}"
        raise SettingsError(msg)
    replay_tools = kwargs.get("replay_tools")
    if replay_tools is not None and not isinstance(replay_tools, bool):
        msg = f"agent_latency(replay_tools=...) takes True or False, got {replay_tools!r}"
        raise SettingsError(msg)
    return Marker(
        cassette=None if cassette is None else os.fspath(cassette),
        mode=_choice(Mode, kwargs.get("mode"), "agent_latency(mode=...)"),
        drift=_choice(DriftPolicy, kwargs.get("drift"), "agent_latency(drift=...)"),
        replay_tools=replay_tools,
    )


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name}=..." for name in names)


def _choice(kind: type[Kind], value: object, source: str) -> Kind | None:
    if value is None or value == "":
        return None
    try:
        return kind(str(value))
    except ValueError:
        msg = f"{source} is {value!r}: allowed are {', '.join(repr(each.value) for each in kind)}"
        raise SettingsError(msg) from None


def _counter(value: object) -> str:
    name = str(value or "chars")
    if name == "chars":
        return name
    from pytest_agentlatency.analysis import counters  # noqa: PLC0415  # only who names one pays for the look-up

    if name.partition(":")[0] not in counters.names():
        msg = f"ini value {INI['counter']} is {name!r}: allowed are {', '.join(map(repr, counters.names()))}"
        raise SettingsError(msg)
    return name


def _fraction(value: object, source: str) -> float | None:
    """A number of 0 or more, written `0.3` or `30%`; None when nothing is written."""
    text = str(value or "").strip()
    if not text:
        return None
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        msg = f"{source} is {value!r}: allowed is a fraction of the context, such as 0.3 or 30%"
        raise SettingsError(msg)
    return found


def _models(value: object, base: Path) -> tuple[tuple[str, Path], ...]:
    """Lines of `model = path/to/config.json`."""
    found: list[tuple[str, Path]] = []
    lines = map(str, cast("Sequence[object]", value)) if isinstance(value, list | tuple) else ()
    for line in lines:
        model, equals, path = (part.strip() for part in line.partition("="))
        if not (model and equals and path):
            msg = f"ini value {INI['kv_configs']} holds {line!r}: allowed are lines of model = path/to/config.json"
            raise SettingsError(msg)
        found.append((model, base / path))
    return tuple(found)


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value.split() if isinstance(value, str) else _listed(value)))


def _listed(value: object) -> Iterable[object]:
    return cast("Iterable[object]", value) if isinstance(value, list | tuple) else ()


def _patterns(value: object) -> tuple[str, ...]:
    found = tuple(str(each) for each in _listed(value) if str(each).strip())
    for pattern in found:
        try:
            re.compile(pattern)
        except re.error as error:
            msg = f"ini value {INI['volatile']} holds {pattern!r}, which is no regular expression: {error}"
            raise SettingsError(msg) from None
    return found

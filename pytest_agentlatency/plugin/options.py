"""The flags and ini values: declared to pytest, and read back as settings.

Owns the help texts. What a value means, and which ones are allowed, is `settings`'.
"""

import argparse
from pathlib import Path

import pytest

from pytest_agentlatency import settings as settings_
from pytest_agentlatency.settings import DriftPolicy, Settings, SettingsError


def declare(parser: pytest.Parser) -> None:
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


def settings(config: pytest.Config) -> Settings:
    """What they were set to. UsageError for a bad value, naming its source."""
    try:
        return settings_.from_sources(
            {name: getattr(config.option, f"agentlatency_{name}", None) for name in settings_.OPTIONS},
            {name: config.getini(ini) for name, ini in settings_.INI.items()} | {"calibrations": _folders(config)},
            base=config.inipath.parent if config.inipath else config.rootpath,
        )
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None


def _folders(config: pytest.Config) -> list[Path]:
    named: list[Path] = config.getini(settings_.INI["calibrations"])
    return named or [config.rootpath / settings_.CALIBRATIONS]

"""A user's suite whose cassettes are built, not recorded: an agent of a few lines sends the bodies in them again."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.recording import Recording

ROOT = Path(__file__).parents[2]
INI = """\
[pytest]
addopts = -p no:randomly
asyncio_default_fixture_loop_scope = function
"""
HEAD = """\
import json
import os
import time
from datetime import date, datetime
from pathlib import Path
import httpx
import pytest

def run(name, change=lambda body: None):
    for body in json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")):
        change(body)
        httpx.post("http://127.0.0.1:8000/v1/messages", json=body)
"""
TEST = """
@pytest.mark.agent_latency
@pytest.mark.latency_budget(PHRASES)
MARKS
def NAME(agent_run):
    run("NAME", CHANGE)
"""


def marked(name: str, *phrases: str, change: str = "lambda body: None", marks: str = "") -> str:
    """The source of a test: its budgets, and what its agent does to each body before it sends it."""
    words = {"NAME": name, "PHRASES": ", ".join(map(repr, phrases)), "CHANGE": change, "MARKS": marks}
    source = TEST if phrases else TEST.replace("@pytest.mark.latency_budget(PHRASES)\n", "")
    for word, text in words.items():
        source = source.replace(word, text)
    return source


def prepare(folder: Path, name: str, observed: Recording) -> None:
    """Write the cassette of a test in the module `test_agent`, and the bodies that its agent sends."""
    bodies = [json.loads(attempt.request.body) for attempt in observed.attempts]
    (folder / f"{name}.json").write_text(json.dumps(bodies), encoding="utf-8")
    whole = replace(observed, facts=replace(observed.facts, test=f"test_agent.py::{name}"))
    store.save(folder / "cassettes" / "test_agent" / f"{name}.yaml", Document(whole))


def names(tests: Iterable[str]) -> list[str]:
    """Names of the tests in these sources that have an agent."""
    return re.findall(r'run\("(\w+)"', "".join(tests))


def write_suite(folder: Path, tests: Iterable[str], observed: Mapping[str, Recording]) -> None:
    """Write a suite of tests, each with its cassette."""
    (folder / "pytest.ini").write_text(INI, encoding="utf-8")
    (folder / "test_agent.py").write_text(HEAD + "".join(tests), encoding="utf-8")
    for name, recording in observed.items():
        prepare(folder, name, recording)


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, as a user does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("COLUMNS", "80")
        # Under CI pytest doesn't cut its summary, and what a test printed of other sessions would stand in it.
        for name in ("CI", "BUILD_NUMBER"):
            patch.delenv(name, raising=False)
        command = [sys.executable, "-m", "pytest", *options]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


class Told:
    """What a session with `-rA` printed, test by test."""

    def __init__(self, output: str) -> None:
        self.output = output

    def passed(self, name: str) -> bool:
        """Whether a test passed."""
        return f"PASSED test_agent.py::{name}\n" in self.output.rpartition("short test summary info")[2]

    def of(self, name: str) -> str:
        """What the report says of one test."""
        found = re.search(rf"^_+ {name} _+$(.*?)(?=^_+ test_|^=)", self.output, re.MULTILINE | re.DOTALL)
        return found[1] if found else ""

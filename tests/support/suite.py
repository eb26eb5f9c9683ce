"""A user's test suite in a temporary folder: an agent on the real SDK, a simulated model, and pytest runs over them.

The runs share this process, so that the SDKs are imported once; the model listens in every mode, so that a test can say
that nothing arrived.
"""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.testing import SimulatedModel
from tests.support.agents import loop, loop_async, searches
from tests.support.sessions import PLAN

ROOT = Path(__file__).parents[2]
INI = """\
[pytest]
addopts = -p no:cacheprovider -p no:hypothesispytest
asyncio_default_fixture_loop_scope = function
"""
CONFTEST = """\
import os
import pytest

@pytest.fixture(scope="session")
def url():
    return os.environ["MODEL_URL"]
"""
HEAD = """\
import asyncio
import pytest
from tests.support.agents import ask, loop, loop_async
"""
AGENT = """
@pytest.mark.agent_latency
def test_agent(agent_run, url):
    assert loop(url) == "It was found."
"""
KEPT = (
    "aiohttp",
    "anyio",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "requests",
    "trio",
    "pytest_agentlatency.case",
    "pytest_agentlatency.budgets.grammar",
)


def warm_up() -> None:
    """Import here what runs import lazily: pytester forgets every module that one of its runs imported."""
    for name in KEPT:
        import_module(name)
    with SimulatedModel(searches(2)) as model, Session(PLAN):
        loop(model.url)
        asyncio.run(loop_async(model.url))


class Suite:
    """The folder of one user's suite."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.path = pytester.path
        self._pytester, self._monkeypatch, self._stack = pytester, monkeypatch, stack
        monkeypatch.delenv("CI", raising=False)
        monkeypatch.setenv("COLUMNS", "80")
        pytester.makeini(INI)
        pytester.makeconftest(CONFTEST)
        self.model = self.serve(searches(3))

    def serve(self, script, **options) -> SimulatedModel:
        """Start another model, and point the agent at it."""
        self.model = self._stack.enter_context(SimulatedModel(script, **options))
        self._monkeypatch.setenv("MODEL_URL", self.model.url)
        return self.model

    def ini(self, *lines: str) -> None:
        """Add ini values."""
        self._pytester.makeini(INI + "\n".join(lines))

    def setenv(self, name: str, value: str) -> None:
        """Set an environment variable for the runs."""
        self._monkeypatch.setenv(name, value)

    def write(self, source: str = AGENT, name: str = "test_agent") -> None:
        """Write a test module, in place of the one of that name."""
        (self.path / f"{name}.py").write_text(HEAD + source, encoding="utf-8")

    def run(self, *options: str) -> pytest.RunResult:
        """Run the suite in this process."""
        return self._pytester.runpytest_inprocess("-p", "no:randomly", *options)

    def record(self, *options: str) -> pytest.RunResult:
        """Record the suite, which must pass."""
        result = self.run("--latency-mode=record", *options)
        assert result.ret == 0, result.stdout.str()
        return result

    def written(self, source: str = AGENT) -> Path:
        """Write a module of one test `test_agent`, record it, and give its cassette's path."""
        self.write(source)
        self.record()
        return self.cassette()

    def cassette(self, test: str = "test_agent", module: str = "test_agent") -> Path:
        """Where a test's cassette is."""
        return self.path / "cassettes" / module / f"{test}.yaml"

    def files(self) -> list[str]:
        """What stands in the cassette folder."""
        found = (self.path / "cassettes").rglob("*") if (self.path / "cassettes").exists() else ()
        return sorted(str(each.relative_to(self.path / "cassettes")) for each in found if each.is_file())

    @property
    def received(self) -> int:
        """How many requests the model received."""
        return len(self.model.requests)

    def in_a_process(
        self, *options: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the suite in a process of its own."""
        command = [sys.executable, "-m", "pytest", *options]
        with self._monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            return subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)  # noqa: S603


def interactions(cassette: Path) -> list[dict]:
    """What a cassette holds, as any reader of YAML sees it."""
    return yaml.safe_load(cassette.read_text(encoding="utf-8"))["interactions"]

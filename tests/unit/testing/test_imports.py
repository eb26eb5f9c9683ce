import subprocess
import sys

import pytest

HEAVY = ("anthropic", "openai", "httpx", "httpx2", "vcr", "numpy", "tiktoken", "hypothesis", "pytest")


@pytest.mark.parametrize("module", ["testing", "testing.builders"])
def test_the_harness_runs_on_the_standard_library(module):
    """A user's conftest may import it without paying for an SDK, and without hypothesis installed."""
    code = f"import sys, pytest_agentlatency.{module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"

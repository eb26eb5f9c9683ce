"""Other people's pytest plugins, installed into a cache beside the environment, for a process that starts with them.

pip installs (so an index, mirror or proxy that it is configured for is honoured), at the versions pinned here.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = "AGENTLATENCY_NEIGHBOURS_CACHE"
"""Environment variable: directory for the packages; the user's cache directory when unset."""
PINNED = (
    "pytest-recording==0.14.1",
    "syrupy==7.0.2",
    "inline-snapshot==0.36.1",
    "asttokens==3.0.2",  # inline-snapshot needs it
    "executing==2.3.0",  # and this
    "pytest-benchmark==5.3.1",
    "py-cpuinfo2==10.1.1",  # pytest-benchmark needs it
    "pytest-httpx==0.36.2",
    "respx==0.23.1",
    "pytest-mockllm==0.4.0",
    "pytest-rerunfailures==16.7",
)


def installed() -> Path:
    """The directory that holds them, from the cache or the package index; AssertionError, with what to do, if not."""
    key = hashlib.sha256("\n".join((sys.version, *PINNED)).encode()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-agentlatency" / "neighbours"
    target = Path(os.environ.get(CACHE) or base) / key
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _install(target)
    return target


def _install(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        place = Path(folder, "packages")
        # Without dependencies: the environment has them, and another pytest in the way of its own would be no test.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), *PINNED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        assert done.returncode == 0, (
            "the neighbours can't be installed: this test needs a package index (pip's configuration is used), or "
            f"its packages in ${CACHE}.\n{done.stderr[-2000:]}"
        )
        place.replace(target)

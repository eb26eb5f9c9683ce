"""Public recordings, out of source distributions that anybody can download. Nothing of them is kept in this project.

pip downloads (so an index, mirror or proxy that it is configured for is honoured) and checks each file against the
hash below, before anything in it is looked at. The archives stay in a cache; recordings are read from them in memory.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CACHE = "AGENTLATENCY_CORPUS_CACHE"
"""Environment variable: directory for the archives; the user's cache directory when unset."""


@dataclass(frozen=True, slots=True)
class Release:
    """One pinned source distribution."""

    name: str
    version: str
    sha256: str
    files: int
    """How many recordings it holds."""

    @property
    def archive(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}.tar.gz"


RELEASES = (
    Release("crewai", "1.15.30", "17de4b7cc3f2c207033e9f82be4f7d749e540b0e415a3885a8d97bb43a90a318", 593),
    Release("chatlas", "0.23.0", "4392b1ae91e8fb02841e5dfa70a9559a4c9a602f6dc40897fcee4f5215038446", 192),
    Release(
        "opentelemetry-instrumentation-openai",
        "0.62.4",
        "a2c03cf4b8c18ed5e53d4a59b3299df39858640e41b91379ca72153a3f85a716",
        192,
    ),
    Release("magentic", "0.41.1", "91e9fde3455c53891d43301cc15ca6dfd5bb5670a1e9ebb173c0ec880187fbad", 158),
    Release("langchain-openai", "1.7.4", "8fd90e41588526d990f32262447adf8e130d7ce28ed66cefa315e64cc9dd12ce", 102),
    Release(
        "opentelemetry-instrumentation-anthropic",
        "0.62.4",
        "861d893c0e20022fa5bee6134cc36c1b5bf847cf831ec0d8b78b0a8267e2a21b",
        74,
    ),
    Release("ecologits", "0.11.3", "8887d7ac04a8368e73363f911a814f3a643e51bc0ead9da31179bd2cc03f5964", 41),
    Release("langchain-anthropic", "1.7.10", "72869686960b3d6665f99e7c91c9f6dd4a1d9ccf73d23edd8702eb603cc2e498", 24),
)
"""37 MB. pydantic-ai 1.17.0 holds 401 more in 100 MB, and is left out for its size."""


def recordings(release: Release) -> Iterator[tuple[str, bytes]]:
    """Path inside the distribution and bytes of each recording, in order of path."""
    with tarfile.open(archive(release)) as tar:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            if member.isfile() and _is_recording(member.name):
                file = tar.extractfile(member)
                assert file is not None
                yield member.name.partition("/")[2], file.read()


def _is_recording(name: str) -> bool:
    folders, _, last = name.rpartition("/")
    return ("cassettes" in folders or "/_vcr" in folders) and last.endswith((".yaml", ".yaml.gz"))


def archive(release: Release) -> Path:
    """The archive, from the cache or the package index; its hash is right; AssertionError, with what to do, if not."""
    path = _cache() / release.archive
    if not path.exists():
        _download(release, path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found == release.sha256, (
        f"{path} has sha256 {found}, pinned is {release.sha256}: delete the file and run again; if it stays different, "
        "the release was changed, and nothing of it may be trusted"
    )
    return path


def _cache() -> Path:
    chosen = os.environ.get(CACHE)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = Path(chosen) if chosen else base / "pytest-agentlatency" / "corpus"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _download(release: Release, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as empty:
        pinned = Path(empty, "pinned.txt")
        pinned.write_text(f"{release.name}=={release.version} --hash=sha256:{release.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", release.name]
        command += ["--require-hashes", "--quiet", "--dest", empty, "--requirement", str(pinned)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        assert done.returncode == 0, (
            f"{release.name} {release.version} can't be downloaded: the corpus test needs a package index (pip's "
            f"configuration is used) or the archive in ${CACHE}.\n{done.stderr[-2000:]}"
        )
        Path(empty, release.archive).replace(path)

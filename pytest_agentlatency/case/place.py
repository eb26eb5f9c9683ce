"""Which test a case is about, and where its cassette is.

Owns the layout on disk, which is pytest-recording's, and the command that records a test.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from pytest_agentlatency.cassette import store

_FORBIDDEN = r"<>?%*:|\"'/\\"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which test this is."""

    nodeid: str
    name: str
    """Function name with parameters, behind its class: `TestSupport.test_parcel[de]`."""
    file: Path

    @property
    def record_command(self) -> str:
        """What records this test."""
        return f"pytest {shlex.quote(self.nodeid)} --latency-mode=record"

    def same_as(self, nodeid: str) -> bool:
        """Whether a node id is this test's, wherever pytest was started."""
        return _short(self.nodeid) == _short(nodeid)


def default_name(name: str) -> str:
    """A test's name as pytest-recording turns it into a file name."""
    for character in _FORBIDDEN:
        name = name.replace(character, "-")
    return name


def cassette_path(identity: Identity, named: str | None) -> Path:
    """Where the cassette of a test is: beside its file, in pytest-recording's layout. Refused leads out of there."""
    directory = identity.file.parent / "cassettes"
    if named is not None:
        return store.path_for(directory, named)
    return store.path_for(directory / identity.file.stem, default_name(identity.name))


def _short(nodeid: str) -> str:
    """A node id without the folders, which depend on where pytest was started."""
    file, _, rest = nodeid.partition("::")
    return f"{Path(file).name}::{rest}"

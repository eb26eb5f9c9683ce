"""A file that the user named, opened: a cassette of ours, or anybody's recording.

Owns the order in which the readers are tried, and what a bad file does to a command: a message, and exit code 2.
"""

import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from pytest_agentlatency.analysis import counters
from pytest_agentlatency.analysis.counters import Counter, CounterError
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError, Truncated, Unreadable
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.provenance import Provenance

OURS = "agentlatency"


class BadInput(click.ClickException):
    """The command can't be done with what it was given. Ends with exit code 2, as a wrong option does."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Opened:
    """What a file holds."""

    path: Path
    document: Document
    container: str = OURS
    """`agentlatency`, or the name of a foreign container."""
    doubts: tuple[str, ...] = ()
    """What a reader of the figures must know; one sentence each."""
    to_headers: Mapping[int, Ns] = field(default_factory=dict[int, Ns])
    """Call id -> nanoseconds to the response headers, where the container times nothing else."""

    @property
    def provenance(self) -> Provenance:
        """Of the times: measured when the file was recorded, or not there at all."""
        timed = any(attempt.stamps is not None for attempt in self.document.recording.attempts)
        return Provenance.REPLAYED if timed else Provenance.UNKNOWN


@contextmanager
def uncollected() -> Generator[None]:
    """Reading makes values by the hundred thousand and no cycles: looking for these would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def opened(path: Path) -> Opened:
    """Read a recording of any known kind. BadInput, with the file, the fault and what to do, when it is none."""
    try:
        return _opened(path)
    except CassetteError as error:
        raise BadInput(str(error)) from None


def _opened(path: Path) -> Opened:
    fault: CassetteError | None = None
    try:
        document = store.load(path)
    except Unreadable as error:
        fault = error
    else:
        if document.recording.attempts:
            return Opened(path, document)
    from pytest_agentlatency.cassette import foreign  # noqa: PLC0415 - most files are ours, and need none of it

    try:
        found = foreign.read(path)
    except Unreadable:
        if isinstance(fault, Truncated):
            raise fault from None
        raise
    return Opened(path, found.document, found.container, tuple(map(str, found.warnings)), found.to_headers)


def counter(name: str) -> Counter:
    """The token counter of that name. BadInput when it isn't to be had."""
    try:
        return counters.counter(name)
    except CounterError as error:
        raise BadInput(str(error)) from None

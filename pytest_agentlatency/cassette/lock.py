"""A file that one writer holds. The system lets go of it when the writer dies, so no lock is ever stale.

Owns the lock file. Refuses to know what it protects.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_agentlatency.cassette.errors import TwoWriters

_BYTES = 1024  # of the owner's name
_TRIES = 20


@contextmanager
def held(path: Path, what: str, owner: str) -> Generator[None]:
    """Hold the lock file while the block runs. Raises TwoWriters, which names the holder."""
    descriptor = _acquire(path, what, owner)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path, what: str, owner: str) -> int:
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(descriptor):
            holder = os.pread(descriptor, _BYTES, 0).decode("utf-8", "replace") if hasattr(os, "pread") else ""
            os.close(descriptor)
            msg = f"{what} is being written by {holder or 'another process'}; give each test a cassette of its own"
            raise TwoWriters(msg)
        if _is_at(descriptor, path):
            _sign(descriptor, owner)
            return descriptor
        os.close(descriptor)  # its holder removed the file between our open and our lock
    msg = f"{what}: its lock {path} keeps being taken; give each test a cassette of its own"
    raise TwoWriters(msg)


def _sign(descriptor: int, owner: str) -> None:
    os.ftruncate(descriptor, 0)
    name = f"{owner or 'a test'} (process {os.getpid()})"
    os.write(descriptor, name.encode("utf-8", "replace")[:_BYTES])


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        """Lock a byte far behind the owner's name, which others must be able to read."""
        os.lseek(descriptor, _BYTES * _BYTES, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

    def alive(process: int) -> bool:
        """Whether the process may still run; it can't be told here without ending it."""
        return process >= 0
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def alive(process: int) -> bool:
        """Whether a process of this number runs."""
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

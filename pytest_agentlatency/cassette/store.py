"""Cassettes on disk: found by name, read within bounds, replaced whole or not at all, written by one at a time.

Owns paths, atomicity and the lock. Refuses to know what a document says.
"""

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath, PureWindowsPath
from uuid import uuid4

from pytest_agentlatency.cassette import document as documents
from pytest_agentlatency.cassette import lock
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import Missing, Refused, Unreadable, Unwritable
from pytest_agentlatency.cassette.limits import DEFAULT, Limits, check

SUFFIX = ".yaml"
_LONGEST = 200  # bytes of a file name; systems allow 255, and `.rejected` or a temporary name is longer


def path_for(directory: Path, name: str) -> Path:
    """The path of a cassette inside a directory. Raises Refused for a name that leads out of it, by `..` or a link."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or PureWindowsPath(name).drive
    if absolute or ".." in parts or not parts or "\0" in name:
        msg = f"cassette name {name!r}: a relative path below {directory} without '..' is allowed; rename it"
        raise Refused(msg)
    path = directory.joinpath(*parts[:-1], _file_name(parts[-1]))
    if not path.resolve().is_relative_to(directory.resolve()):
        msg = f"cassette {path} is a link to {path.resolve()}, outside {directory}; move the file into the directory"
        raise Refused(msg)
    return path


def _file_name(name: str) -> str:
    stem = name.removesuffix(SUFFIX)
    encoded = os.fsencode(stem)
    if len(encoded) > _LONGEST:
        stem = encoded[: _LONGEST - 9].decode("utf-8", "ignore") + "-" + sha256(encoded).hexdigest()[:8]
    return stem + SUFFIX


def load(path: Path, limits: Limits = DEFAULT) -> Document:
    """The cassette at a path. Raises Missing, Truncated, NewerVersion, Refused or Unreadable; changes nothing."""
    return documents.loads(read(path, limits), str(path), limits)


def read(path: Path, limits: Limits = DEFAULT) -> bytes:
    """The bytes of a regular file, its size checked before they are read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                msg = f"{path}: not a regular file; a cassette is one"
                raise Unreadable(msg)
            check(status.st_size, limits.file, "bytes", str(path))
            return file.read(limits.file + 1)
    except FileNotFoundError as error:
        msg = f"{path}: no such cassette"
        raise Missing(msg) from error
    except OSError as error:
        msg = f"{path}: can't be read: {error.strerror or error}"
        raise Unreadable(msg) from error


def save(path: Path, document: Document) -> None:
    """Write a cassette in place of the one at the path. At any moment the old or the new one is there, whole.

    Raises Unwritable.
    """
    replace(path, documents.dumps(document))


def reject(path: Path, document: Document) -> Path:
    """Keep a recording that must not become the cassette beside it, for reading; the cassette stays as it is."""
    rejected = path.with_name(path.name + ".rejected")
    replace(rejected, documents.dumps(document))
    return rejected


def replace(path: Path, data: bytes) -> None:
    """Put bytes in place of a file. At any moment the old or the new ones are there, whole. Raises Unwritable."""
    with _told(path):
        _replace(path.resolve(), data)


@contextmanager
def _told(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        msg = f"{path}: can't be written: {error.strerror or error}; nothing was changed. Mend that and do it again"
        raise Unwritable(msg) from error


def _replace(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{uuid4().hex[:8]}.tmp")
    try:
        _write(temporary, data, target)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _write(temporary: Path, data: bytes, target: Path) -> None:
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))


def _sync_directory(directory: Path) -> None:
    """Make the rename durable; not every system lets a directory be opened."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sweep(target: Path) -> None:
    """Remove what writers left that were killed."""
    for left in target.parent.glob(f".{_literal(target.name)}.*.tmp"):
        number = left.name.split(".")[-3]
        if number.isdecimal() and not lock.alive(int(number)):
            left.unlink(missing_ok=True)


def _literal(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


@contextmanager
def writing(path: Path, owner: str = "") -> Generator[None]:
    """Hold a cassette for writing. Raises Unwritable, or TwoWriters when another holds it; the dead hold nothing."""
    target = path.resolve()
    holding = lock.held(target.with_name(f".{target.name}.lock"), f"cassette {path}", owner)
    with ExitStack() as stack:
        with _told(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(holding)
        yield

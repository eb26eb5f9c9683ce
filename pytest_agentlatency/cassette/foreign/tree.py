"""A file's bytes to plain data: gzip, JSON or YAML, told apart by content, in bounded memory.

Owns opening a file and what is wrong with its text. Refuses to know what a recording is.
"""

import json
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import Any

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.foreign import coding, yamltree
from pytest_agentlatency.cassette.limits import Limits, check


def contents(source: str | os.PathLike[str] | bytes, limits: Limits) -> tuple[bytes, str]:
    """A file's bytes, decompressed, and the name under which messages speak of it.

    Unreadable when it can't be opened, isn't a regular file or is broken gzip; Refused over a limit.
    """
    name = "the given bytes" if isinstance(source, bytes) else repr(os.fspath(source))
    data = source if isinstance(source, bytes) else _read(Path(source), name, limits)
    check(len(data), limits.file, "bytes (or more)", name)
    return (_gunzipped(data, name, limits) if data.startswith(b"\x1f\x8b") else data), name


def parse(data: bytes, name: str, limits: Limits) -> Any:
    """Plain data of JSON or YAML text. Unreadable, with the fault and its place, when neither; Refused over a limit."""
    if not data.strip():
        msg = f"{name} is empty: no recorder writes that; restore it from version control, or record it again"
        raise Unreadable(msg)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}:
        return _json(data, name, limits)
    return yamltree.load(data, name, limits)


def _read(path: Path, name: str, limits: Limits) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            msg = f"{name} is not a regular file; give the path of a recording"
            raise Unreadable(msg)
        check(found.st_size, limits.file, "bytes", name)
        with path.open("rb") as file:
            return file.read(limits.file + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        msg = f"{name} can't be read: {getattr(error, 'strerror', None) or error}"
        raise Unreadable(msg) from error


def _gunzipped(data: bytes, name: str, limits: Limits) -> bytes:
    try:
        return coding.gunzip(data, limits.file)
    except zlib.error as error:
        msg = f"{name} is broken gzip ({error}); restore it from version control, or record it again"
        raise Unreadable(msg) from None
    except coding.TooLargeError:
        check(limits.file + 1, limits.file, "bytes (or more) once decompressed", name)
        raise


def _json(data: bytes, name: str, limits: Limits) -> Any:
    # An upper bound without parsing: a comma or bracket inside a body's text counts too, so the limit is doubled.
    check(data.count(b",") + data.count(b"[") + data.count(b"{"), 2 * limits.values, "commas and brackets", name)
    try:
        return json.loads(data)
    except RecursionError:
        check(limits.depth + 1, limits.depth, "nested collections (or more)", name)
        raise
    except json.JSONDecodeError as error:
        # YAML in flow style opens like JSON; only if it isn't that either is the JSON error the right one to show.
        try:
            return yamltree.load(data, name, limits)
        except Unreadable:
            raise _broken(name, f"{error.msg} (line {error.lineno:,}, column {error.colno:,})") from None
    except UnicodeError as error:
        raise _broken(name, f"it is not Unicode ({error})") from None
    except ValueError:
        check(sys.get_int_max_str_digits() + 1, sys.get_int_max_str_digits(), "digits (or more) in a number", name)
        raise


def _broken(name: str, fault: str) -> Unreadable:
    return Unreadable(f"{name} is broken JSON: {fault}; restore it from version control, or record it again")

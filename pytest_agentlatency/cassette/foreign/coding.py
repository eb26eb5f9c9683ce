"""Content codings of stored bodies: undone when the bytes really are coded, whatever the header says.

Recorders decode bodies and keep `content-encoding`, or drop the header and keep the compressed bytes; both are common.
Owns gzip and deflate, and brotli and zstandard when a package for them is there. Refuses to grow past a limit.
"""

import importlib
import zlib
from dataclasses import replace
from typing import Any

from pytest_agentlatency.cassette.foreign.exchange import Exchange
from pytest_agentlatency.cassette.limits import Limits, check
from pytest_agentlatency.model.recording import Headers, Response

_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_BROTLI_STEP = 16  # bytes fed at once: a brotli meta-block of a few bytes may unfold to 16 MiB


class TooLargeError(ValueError):
    """What was decompressed is over the limit given."""


class Decoder:
    """Decodes the bodies of one file; all of them together keep one limit, so that many small bombs are one."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name, self._left, self._limit = name, limits.file, limits.file

    def exchange(self, stored: Exchange) -> Exchange:
        """The exchange with both bodies decoded, and notes on those that couldn't be. Refused over the limit."""
        sent, fault = self._decode(stored.request.body, _header(stored.request.headers))
        notes = [fault] if fault else []
        response = stored.response
        if response is not None:
            response, fault = self._response(response)
            notes += [fault] if fault else []
        asked = stored.request if sent is None else replace(stored.request, body=sent)
        return replace(stored, request=asked, response=response, notes=(*stored.notes, *notes))

    def _response(self, stored: Response) -> tuple[Response, str]:
        """Headers that speak of the coding go with it, so that nobody decodes twice; the coding is noted beside."""
        named = _header(stored.headers)
        plain, fault = self._decode(stored.body, named)
        stale = set[str]() if fault else {"content-encoding"}
        if plain is not None:
            stale.add("content-length")
            stored = replace(stored, chunks=(plain,) if plain else ())
        kept = tuple(field for field in stored.headers if field[0].lower() not in stale)
        return replace(stored, headers=kept, coding=named or (shown(stored.body, "") if fault else "")), fault

    def _decode(self, body: bytes, named: str) -> tuple[bytes | None, str]:
        """The decoded body, None when it isn't coded, and why one that is can't be."""
        coding = shown(body, named)
        if not coding:
            return None, ""
        try:
            plain = _DECODERS[coding](body, self._left)
        except TooLargeError:
            check(self._limit + 1, self._limit, "bytes (or more) of decompressed bodies", self._name)
            raise
        except ModuleNotFoundError:
            return None, f"{coding} bodies are left compressed: install {_PACKAGES[coding]} to read them"
        except Exception as error:  # noqa: BLE001 - each codec package has an error class of its own
            return None, f"{coding} bodies can't be decompressed ({type(error).__name__})"
        self._left -= len(plain)
        return plain, ""


def gunzip(data: bytes, limit: int) -> bytes:
    """Decompress gzip members up to a limit in bytes; what follows them is ignored, as gzip itself does.

    TooLargeError over the limit, zlib.error when a member is broken or cut off.
    """
    out: list[bytes] = []
    left = limit
    while data.startswith(_GZIP):
        member = zlib.decompressobj(wbits=31)
        out.append(_inflate(member, data, left))
        left -= len(out[-1])
        data = member.unused_data
    return b"".join(out)


def shown(body: bytes, named: str) -> str:
    """The coding that the bytes show; the header only settles what the bytes can't. Empty: none."""
    if body.startswith(_GZIP):
        return "gzip"
    if body.startswith(_ZSTD):
        return "zstd"
    if named == "deflate" and body and not _is_text(body):
        return "deflate"
    return "br" if named == "br" and body and not _is_text(body) else ""


def _header(headers: Headers) -> str:
    return next((value.strip().lower() for name, value in headers if name.lower() == "content-encoding"), "")


def _is_text(body: bytes) -> bool:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _inflate(member: Any, data: bytes, limit: int) -> bytes:
    plain = member.decompress(data, limit + 1)
    if len(plain) > limit:
        raise TooLargeError
    if not member.eof:
        msg = "cut off"
        raise zlib.error(msg)
    return bytes(plain)


def _deflate(body: bytes, limit: int) -> bytes:
    # RFC 9110 means the zlib format; some servers send the bare stream.
    try:
        return _inflate(zlib.decompressobj(), body, limit)
    except zlib.error:
        return _inflate(zlib.decompressobj(wbits=-15), body, limit)


def _brotli(body: bytes, limit: int) -> bytes:
    decompressor = _package("brotli", "brotlicffi").Decompressor()
    out: list[bytes] = []
    size = 0
    for start in range(0, len(body), _BROTLI_STEP):
        out.append(decompressor.process(body[start : start + _BROTLI_STEP]))
        size += len(out[-1])
        if size > limit:
            raise TooLargeError
    if not decompressor.is_finished():
        msg = "cut off"
        raise ValueError(msg)
    return b"".join(out)


def _zstd(body: bytes, limit: int) -> bytes:
    decompressor = _package("compression.zstd", "backports.zstd").ZstdDecompressor()
    return _inflate(decompressor, body, limit)


def _package(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(names[0])


_DECODERS = {"gzip": gunzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd}
_PACKAGES = {"br": "brotli", "zstd": "backports.zstd"}

"""Content codings of a response body, applied frame by frame so that a coded stream still streams.

Owns finding an encoder. Refuses to know HTTP.
"""

import sys
import zlib
from importlib import import_module
from typing import Protocol


class Encoder(Protocol):
    """A running content coding."""

    def feed(self, data: bytes) -> bytes:
        """Encode data so that the receiver can decode it at once."""
        ...

    def finish(self) -> bytes:
        """What ends the coding."""
        ...


def encoder(coding: str) -> Encoder:
    """The encoder of a coding: `` (identity), `gzip`, `deflate`; with their packages `br` and `zstd`.

    The packages are brotli and backports.zstd; Python 3.14 has its own zstd.

    ValueError for another name; ImportError, from the package itself, when it is missing.
    """
    match coding:
        case "" | "identity":
            return _Identity()
        case "gzip":
            return _Zlib(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Zlib(zlib.MAX_WBITS)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
        case _:
            msg = f"content coding {coding!r} is not one of gzip, deflate, br, zstd"
            raise ValueError(msg)


class _Identity:
    def feed(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bytes:
        return b""


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._compressor = zlib.compressobj(wbits=wbits)

    def feed(self, data: bytes) -> bytes:
        return self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._compressor.flush()


class _Brotli:
    def __init__(self) -> None:
        self._compressor = import_module("brotli").Compressor()

    def feed(self, data: bytes) -> bytes:
        return bytes(self._compressor.process(data) + self._compressor.flush())

    def finish(self) -> bytes:
        return bytes(self._compressor.finish())


class _Zstd:
    def __init__(self) -> None:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
        self._compressor = zstd.ZstdCompressor()

    def feed(self, data: bytes) -> bytes:
        return bytes(self._compressor.compress(data, self._compressor.FLUSH_BLOCK))

    def finish(self) -> bytes:
        return bytes(self._compressor.flush(self._compressor.FLUSH_FRAME))

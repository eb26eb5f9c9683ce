"""Content codings: how a body's received pieces are decoded one by one, without what is needed being installed by us.

An agent announces a coding only when its HTTP library can decode it, so the decoder that is needed is there.
"""

import importlib
import zlib
from collections.abc import Callable
from typing import Any

from pytest_agentlatency.capture.openattempt import Decoder

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def decoder(coding: str) -> Callable[[], Decoder] | None:
    """A maker of decoders for a `content-encoding` value; None for identity.

    LookupError when a coding is unknown or the package that decodes it is missing.
    """
    names = [name.strip().lower() for name in coding.split(",") if name.strip().lower() not in {"", "identity"}]
    if not names:
        return None
    makers = [_maker(name) for name in reversed(names)]

    def make() -> Decoder:
        steps = [maker() for maker in makers]

        def decode(data: bytes) -> bytes:
            for step in steps:
                data = step(data)
            return data

        return decode

    return make


def _maker(name: str) -> Callable[[], Decoder]:
    if name in {"gzip", "x-gzip"}:
        return lambda: zlib.decompressobj(_GZIP_OR_ZLIB).decompress
    if name == "deflate":
        return _deflate
    if name == "br":
        return _brotli
    if name == "zstd":
        return _zstd
    msg = f"content coding {name!r} is unknown: gzip, deflate, br and zstd can be decoded"
    raise LookupError(msg)


def _deflate() -> Decoder:
    """`deflate` names zlib's format, but some servers send the raw stream without its two-byte head."""
    state = zlib.decompressobj()

    def decode(data: bytes) -> bytes:
        nonlocal state
        try:
            return state.decompress(data)
        except zlib.error:
            state = zlib.decompressobj(-zlib.MAX_WBITS)
            return state.decompress(data)

    return decode


def _brotli() -> Decoder:
    module = _first("brotli", "brotlicffi")
    state = module.Decompressor()
    found: Decoder = getattr(state, "decompress", None) or state.process
    return found


def _zstd() -> Decoder:
    module = _first("compression.zstd", "zstandard", "backports.zstd")
    state = module.ZstdDecompressor()
    found: Decoder = state.decompressobj().decompress if hasattr(state, "decompressobj") else state.decompress
    return found


def _first(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    msg = f"none of {', '.join(names)} is installed, so this body can't be decoded"
    raise LookupError(msg)

"""What an image costs: its pixels, read from the leading bytes, by the provider's published formula.

Owns no decoder: a header is enough. Refuses to look at how many bytes an image has; the model doesn't either.
"""

import math
import re
import struct
from typing import NamedTuple


class Pixels(NamedTuple):
    """Width and height of an image, in pixels."""

    width: int
    height: int


def dimensions(media: bytes) -> Pixels | None:
    """Width and height out of the leading bytes of a PNG, JPEG, GIF or WebP; None when they don't say."""
    try:
        return _png(media) or _gif(media) or _webp(media) or _jpeg(media)
    except (struct.error, IndexError):
        return None


def image_tokens(media: bytes, model: str = "") -> int | None:
    """Tokens of an image for a model; None when its dimensions can't be read.

    Claude: width x height / 750 after scaling to the model's largest image. Others: OpenAI's 512-pixel tiles at high
    detail, 85 + 170 a tile. Both from the providers' vision guides.
    """
    pixels = dimensions(media)
    if pixels is None:
        return None
    return _claude_tokens(pixels, model) if "claude" in model else _tile_tokens(pixels)


# Longest edge and token ceiling; from Opus 4.7 on, models take larger images.
_CLAUDE, _CLAUDE_LARGE = (1568, 1600), (2576, 4784)
_LARGE = re.compile(r"opus-4-[7-9]|claude-[a-z]+-[5-9]")


def _claude_tokens(pixels: Pixels, model: str) -> int:
    edge, ceiling = _CLAUDE_LARGE if _LARGE.search(model.replace(".", "-")) else _CLAUDE
    width, height = _fit(pixels, edge)
    return min(ceiling, math.ceil(width * height / 750))


def _tile_tokens(pixels: Pixels) -> int:
    width, height = _fit(pixels, 2048)
    shrink = min(1.0, 768 / min(width, height))
    tiles = math.ceil(width * shrink / 512) * math.ceil(height * shrink / 512)
    return 85 + 170 * tiles


def _fit(pixels: Pixels, edge: int) -> tuple[float, float]:
    shrink = min(1.0, edge / max(pixels))
    return pixels.width * shrink, pixels.height * shrink


def _png(media: bytes) -> Pixels | None:
    if not media.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    return _sane(*struct.unpack_from(">II", media, 16))


def _gif(media: bytes) -> Pixels | None:
    return _sane(*struct.unpack_from("<HH", media, 6)) if media.startswith((b"GIF87a", b"GIF89a")) else None


def _webp(media: bytes) -> Pixels | None:
    if media[:4] != b"RIFF" or media[8:12] != b"WEBP":
        return None
    form = media[12:16]
    if form == b"VP8X":
        return _sane(1 + int.from_bytes(media[24:27], "little"), 1 + int.from_bytes(media[27:30], "little"))
    if form == b"VP8L":
        bits = struct.unpack_from("<I", media, 21)[0]
        return _sane(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    width, height = struct.unpack_from("<HH", media, 26)
    return _sane(width & 0x3FFF, height & 0x3FFF)


_MARKER = 0xFF
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # start-of-frame markers; the three are tables


def _jpeg(media: bytes) -> Pixels | None:
    if not media.startswith(b"\xff\xd8"):
        return None
    at = 2
    while media[at] == _MARKER:
        marker = media[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", media, at + 5)
            return _sane(width, height)
        at += 2 + struct.unpack_from(">H", media, at + 2)[0]
    return None


def _sane(width: int, height: int) -> Pixels | None:
    return Pixels(width, height) if width > 0 and height > 0 else None

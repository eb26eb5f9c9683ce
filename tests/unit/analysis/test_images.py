import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.images import Pixels, dimensions, image_tokens
from tests.support.prompts import png


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width, height, *, exif=0):
    app = b"\xff\xe1" + struct.pack(">H", 2 + exif) + b"\0" * exif
    table = b"\xff\xc4\x00\x04\x00\x00"
    return b"\xff\xd8" + app + table + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + b"\x03"


def webp(form, payload):
    return b"RIFF\0\0\0\0WEBP" + form + payload


LOSSY = webp(b"VP8 ", b"\0" * 7 + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480))
LOSSLESS = webp(b"VP8L", b"\0" * 4 + b"\x2f" + struct.pack("<I", 639 | 479 << 14))
EXTENDED = webp(b"VP8X", b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))


@pytest.mark.parametrize(
    "media", [png(640, 480), gif(640, 480), jpeg(640, 480), jpeg(640, 480, exif=40_000), LOSSY, LOSSLESS, EXTENDED]
)
def test_every_format_states_its_size_in_its_header(media):
    assert dimensions(media) == Pixels(640, 480)


@pytest.mark.parametrize("media", [b"", b"%PDF-1.7", png(0, 10), jpeg(5, 5)[:20], b"\xff\xd8\xff", b"RIFF"])
def test_a_header_that_does_not_say_gives_nothing_rather_than_a_guess(media):
    assert dimensions(media) is None
    assert image_tokens(media) is None


@settings(deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe1", b"GIF89a", b"RIFF1234WEBPVP8L"]),
)
def test_no_bytes_are_too_odd(noise, start):
    found = dimensions(start + noise)
    assert found is None or min(found) > 0


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-4o"])
def test_the_same_picture_costs_the_same_however_well_it_compresses(model):
    """Field note C8: 512 x 512 pixels in 5 KB and in 500 KB."""
    assert image_tokens(png(512, 512, 5_000), model) == image_tokens(png(512, 512, 500_000), model)


@pytest.mark.parametrize(
    ("pixels", "model", "tokens"),
    [
        ((200, 200), "claude-sonnet-4-5", 54),  # Anthropic's vision guide: ~54
        ((1000, 1000), "claude-sonnet-4-5", 1334),  # ~1334
        ((1092, 1092), "claude-sonnet-4-5", 1590),  # ~1590
        ((4000, 4000), "claude-sonnet-4-5", 1600),
        ((4000, 4000), "claude-opus-4-7", 4784),
        ((1024, 1024), "gpt-4o", 765),  # OpenAI's vision guide
        ((2048, 4096), "gpt-4o", 1105),
    ],
)
def test_tokens_follow_the_providers_published_examples(pixels, model, tokens):
    assert image_tokens(png(*pixels), model) == tokens

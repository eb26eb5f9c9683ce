"""Stored bodies: decoded when they are coded, left alone when they only say so."""

import gzip
import importlib
import sys
import zlib
from dataclasses import replace

import brotli
import pytest

from pytest_agentlatency.cassette.errors import Refused
from pytest_agentlatency.cassette.foreign.coding import Decoder
from pytest_agentlatency.cassette.foreign.exchange import Exchange
from pytest_agentlatency.cassette.limits import MIB, Limits
from pytest_agentlatency.model.recording import Request, Response

PLAIN = b'{"model": "m", "text": "' + "Größe".encode() * 20 + b'"}'
RAW_DEFLATE = zlib.compressobj(wbits=-15)


def decoded(body: bytes, header: str = "", limits: Limits | None = None) -> Exchange:
    headers = (
        (("Content-Encoding", header), ("content-length", str(len(body))), ("x", "y")) if header else (("x", "y"),)
    )
    stored = Exchange(Request("POST", "u"), Response(200, headers, (body,)))
    return Decoder("x", limits or Limits(file=MIB)).exchange(stored)


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (gzip.compress(PLAIN), "gzip"),
        (gzip.compress(PLAIN), ""),
        (gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]), "GZIP"),
        (zlib.compress(PLAIN), "deflate"),
        (RAW_DEFLATE.compress(PLAIN) + RAW_DEFLATE.flush(), "deflate"),
    ],
    ids=["gzip", "gzip, header lost", "gzip, two members", "deflate", "bare deflate"],
)
def test_a_coded_body_is_decoded(body, header):
    found = decoded(body, header)

    assert found.response.body == PLAIN
    assert found.response.headers == (("x", "y"),)
    assert found.notes == ()


@pytest.mark.parametrize("header", ["gzip", "br", "zstd", "deflate"])
def test_a_header_left_on_a_decoded_body_is_taken_off_and_noted(header):
    found = decoded(PLAIN, header)

    assert found.response.body == PLAIN
    assert found.response.coding == header
    assert [name for name, _ in found.response.headers] == ["content-length", "x"]


def test_a_broken_gzip_body_stays_as_it_is_and_says_so():
    found = decoded(gzip.compress(PLAIN)[:-9], "gzip")

    assert found.response.body == gzip.compress(PLAIN)[:-9]
    assert found.notes == ("gzip bodies can't be decompressed (error)",)
    assert ("Content-Encoding", "gzip") in found.response.headers


@pytest.mark.parametrize(
    ("body", "header", "package"),
    [(b"\x1b\x9f\x00\xf8\xff", "br", "brotli"), (b"\x28\xb5\x2f\xfd\x04\x00", "", "backports.zstd")],
    ids=["brotli", "zstd"],
)
def test_a_coding_without_its_package_names_the_package(body, header, package, monkeypatch):
    """Field note A21: a dependency dropped brotli, and stored brotli bytes failed in the JSON decoder."""

    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)

    found = decoded(body, header)

    assert found.response.body == body
    assert f"install {package} to read them" in found.notes[0]


def test_brotli_is_decoded_where_its_package_is():
    assert decoded(brotli.compress(PLAIN), "br").response.body == PLAIN
    with pytest.raises(Refused, match="decompressed bodies"):
        decoded(brotli.compress(bytes(20 * MIB)), "br")


def test_zstandard_is_decoded_where_its_package_is():
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

    assert decoded(zstd.compress(PLAIN)).response.body == PLAIN
    with pytest.raises(Refused, match="decompressed bodies"):
        decoded(zstd.compress(bytes(20 * MIB)))


def test_a_request_body_is_decoded_too():
    stored = Exchange(Request("POST", "u", (), gzip.compress(PLAIN)), None)

    assert Decoder("x", Limits()).exchange(stored).request.body == PLAIN


def test_a_bomb_in_a_body_is_refused():
    with pytest.raises(Refused, match=r"of decompressed bodies, at most 1,048,576 are read"):
        decoded(gzip.compress(bytes(2 * MIB)))


def test_many_bodies_share_the_limit():
    body = gzip.compress(bytes(300_000))
    decoder = Decoder("x", Limits(file=MIB))
    stored = Exchange(Request("POST", "u"), Response(200, (), (body,)))

    for _ in range(3):
        decoder.exchange(replace(stored))

    with pytest.raises(Refused, match="decompressed bodies"):
        decoder.exchange(stored)

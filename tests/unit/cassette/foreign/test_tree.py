"""Hostile files: refused with the limit named, in bounded memory."""

import gzip
import json
import tracemalloc

import pytest

from pytest_agentlatency.cassette.errors import Refused, Unreadable
from pytest_agentlatency.cassette.foreign.tree import contents, parse
from pytest_agentlatency.cassette.limits import DEFAULT, MIB, Limits


def test_a_gzip_bomb_stops_at_the_limit():
    bomb = gzip.compress(bytes(64 * MIB))
    small = Limits(file=MIB)
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=r"once decompressed, at most 1,048,576 are read"):
            contents(bomb, small)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * MIB


def test_many_small_members_share_one_limit():
    with pytest.raises(Refused, match="once decompressed"):
        contents(gzip.compress(bytes(1000)) * 200, Limits(file=100_000))


def test_a_cut_off_gzip_file_is_broken_not_short():
    whole = gzip.compress(b"interactions: []\n" * 100)

    with pytest.raises(Unreadable, match="broken gzip"):
        contents(whole[:-10], DEFAULT)


def test_deeply_nested_json_is_refused():
    with pytest.raises(Refused, match="nested collections"):
        parse(b"[" * 200_000, "x", DEFAULT)


def test_json_of_very_many_values_is_refused_before_it_is_parsed():
    many = b"[" + b"[]," * 5000 + b"[]]"

    with pytest.raises(Refused, match="commas and brackets, at most 2,000 are read"):
        parse(many, "x", Limits(values=1000))


def test_a_huge_number_is_refused():
    with pytest.raises(Refused, match="digits"):
        parse(b'{"a": ' + b"9" * 5000 + b"}", "x", DEFAULT)


def test_a_lone_surrogate_is_kept():
    assert parse(json.dumps({"a": "\ud800"}).encode(), "x", DEFAULT) == {"a": "\ud800"}


def test_yaml_in_flow_style_is_no_json_and_is_read():
    assert parse(b"{version: 1, interactions: []}", "x", DEFAULT) == {"version": 1, "interactions": []}


def test_a_byte_order_mark_is_no_content():
    assert parse(b"\xef\xbb\xbf" + b'{"a": 1}', "x", DEFAULT) == {"a": 1}

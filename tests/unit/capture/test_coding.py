"""Content codings, decoded piece by piece as they arrive."""

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.capture import coding


def pieces(data, cuts):
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


def raw_deflate(data):
    state = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return state.compress(data) + state.flush()


CODERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("name", CODERS)
@given(data=st.binary(max_size=500), cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_a_body_comes_out_whole_however_it_was_cut(name, data, cuts):
    decode = coding.decoder(name)()
    assert b"".join(map(decode, pieces(CODERS[name](data), cuts))) == data


def test_deflate_without_its_head_is_read_too():
    """Some servers send the raw stream under the same name."""
    assert coding.decoder("deflate")()(raw_deflate(b"hello")) == b"hello"


def test_codings_are_undone_from_the_last_to_the_first():
    assert coding.decoder("deflate, gzip")()(gzip.compress(zlib.compress(b"hello"))) == b"hello"


@pytest.mark.parametrize("name", ["", "identity", " Identity "])
def test_nothing_is_done_where_nothing_was(name):
    assert coding.decoder(name) is None


def test_each_body_has_a_decoder_of_its_own():
    make = coding.decoder("gzip")
    assert [make()(gzip.compress(b"a")), make()(gzip.compress(b"b"))] == [b"a", b"b"]


def test_an_unknown_coding_is_named():
    with pytest.raises(LookupError, match=r"'sdch' is unknown: gzip, deflate, br and zstd"):
        coding.decoder("sdch")

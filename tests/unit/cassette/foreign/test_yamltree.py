"""YAML as plain data: what PyYAML's safe loader says, without its objects, within bounds."""

import datetime as dt
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.errors import Refused, Unreadable
from pytest_agentlatency.cassette.foreign.yamltree import load
from pytest_agentlatency.cassette.limits import DEFAULT, Limits

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def tree(text: str | bytes, limits: Limits = DEFAULT) -> Any:
    return load(text.encode() if isinstance(text, str) else text, "x", limits)


@given(PLAIN)
def test_what_pyyaml_dumps_is_read_back(value):
    """vcrpy writes with PyYAML: every plain value survives."""
    assert tree(yaml.dump(value, Dumper=yaml.SafeDumper)) == value


@given(PLAIN)
def test_what_the_fast_dumper_writes_is_read_back(value):
    assert tree(yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=True)) == value


@pytest.mark.parametrize("word", ["yes", "No", "ON", "true", "~", "null", "Null", "1.5", "-3", "1.0e+3", "abc", "yEs"])
def test_plain_words_are_read_as_pyyaml_reads_them(word):
    assert tree(f"- {word}\n") == yaml.safe_load(f"- {word}\n")


def test_a_date_stays_text():
    assert isinstance(yaml.safe_load("2026-08-19"), dt.date)
    assert tree("2026-08-19") == "2026-08-19"


@pytest.mark.parametrize("tag", ["!binary", "!!binary"])
def test_binary_is_bytes_by_the_ruby_and_the_core_tag(tag):
    assert tree(f"a: {tag} |\n  /+8=\n") == {"a": b"\xff\xef"}


def test_binary_that_is_no_base64_is_refused_with_its_line():
    with pytest.raises(Unreadable, match=r"no base64.*line 2"):
        tree("a: 1\nb: !binary abcde\n")


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch pwned']",
        "!!python/object/new:os.system ['touch pwned']",
        "!!python/name:os.system ''",
        "!!python/module:os ''",
        "!ruby/object:Kernel {command: touch pwned}",
    ],
)
def test_an_object_tag_constructs_nothing(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    tree(f"a: {text}")

    assert list(tmp_path.iterdir()) == []


def test_an_alias_to_a_finished_value_is_that_value():
    assert tree("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "&a {b: *a}\n", "a: *nothing\n"])
def test_an_alias_to_what_is_around_it_is_refused(text):
    with pytest.raises(Unreadable, match="alias"):
        tree(text)


def test_a_billion_laughs_are_refused_by_what_they_would_unfold_to():
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(Refused, match="values, at most 2,000,000 are read"):
        tree("\n".join(lines))


def test_aliases_of_a_long_text_are_refused_by_its_length():
    lines = ["a: &a " + "x" * 10_000, "b:", *["- *a"] * 200]

    with pytest.raises(Refused, match="every alias written out, at most 1,000,000"):
        tree("\n".join(lines), Limits(file=1_000_000))


def test_nesting_is_bounded():
    with pytest.raises(Refused, match="nested collections, at most 64"):
        tree("- " * 100 + "a")


def test_values_are_bounded():
    with pytest.raises(Refused, match="values, at most 100"):
        tree("- a\n" * 200, Limits(values=100))


def test_a_collection_as_a_key_is_refused():
    with pytest.raises(Unreadable, match="as a key"):
        tree("? [a]\n: b\n")


@pytest.mark.parametrize("data", [b"a: \xff\n", b"\x00\x00\x00", b"a: \x01\n", b'a: "\\ud800"\n', b"\xff\xfea\x00"])
def test_bytes_that_yaml_forbids_are_refused_or_read_never_more(data):
    try:
        tree(data)
    except Unreadable as error:
        assert "can't be read as YAML" in str(error)  # noqa: PT017 - some libyaml releases read the last one

"""JSON objects one after another, as lines or as the elements of an array."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.wire.jsonstream import objects
from tests.support.wire import cut


def test_lines_and_arrays_give_the_same_objects():
    lines = list(objects([b'{"a": 1}\n{"b": "}"}\n']))
    assert lines == [(0, b'{"a": 1}'), (0, b'{"b": "}"}')]
    assert [each for _, each in objects([b'[{"a": 1}\n,\n{"b": "}"}]'])] == [each for _, each in lines]


def test_object_belongs_to_the_chunk_that_closed_it():
    assert list(objects([b'{"a"', b': "\\', b'"}"', b"} {", b"}"])) == [(3, b'{"a": "\\"}"}'), (4, b"{}")]


def test_object_cut_off_is_not_given():
    assert list(objects([b'{"a": 1}{"b": {'])) == [(0, b'{"a": 1}')]


values = st.recursive(st.none() | st.integers() | st.text('"\\{}[]a', max_size=6), st.lists, max_leaves=4)


@given(
    st.lists(st.dictionaries(st.text('"\\{}', max_size=3), values, max_size=3)),
    st.lists(st.integers(0, 300)),
    st.booleans(),
)
def test_objects_do_not_depend_on_how_bytes_are_cut(found, cuts, as_array):
    body = (json.dumps(found, indent=1) if as_array else "\n".join(map(json.dumps, found))).encode()
    read = list(objects(cut(body, cuts)))
    assert [json.loads(each) for _, each in read] == found
    assert [index for index, _ in read] == sorted(index for index, _ in read)

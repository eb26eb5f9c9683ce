import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import emit
from pytest_agentlatency.cassette.parse import Node, tree
from tests.support import documents as some

printable = st.text(max_size=200) | some.bodies.map(lambda body: body.decode("utf-8", "replace"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | printable | st.binary(max_size=60),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(printable, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
@settings(deadline=None)
@given(value=st.dictionaries(printable, values, max_size=4))
def test_every_safe_loader_reads_back_what_was_written(loader, value):
    assert (yaml.load(emit.document(value), loader) or {}) == value  # noqa: S506 -- both are safe ones


@settings(deadline=None)
@given(st.dictionaries(printable, values, min_size=1, max_size=4))
def test_our_own_reader_agrees(value):
    assert tree(emit.document(value), "it") == value


@settings(deadline=None)
@given(some.texts)
def test_text_with_lone_surrogates_comes_back_as_text(text):
    whole = Node(tree(emit.document({"a": text, "b": [text]}), "it"), "it")
    assert [whole["a"].text(), next(whole["b"].items()).text()] == [text, text]


def test_a_stream_with_emoji_is_written_line_by_line():
    """libyaml's own emitter puts all of it on one line, because of the emoji."""
    written = emit.document({"body": "event: text\ndata: 📦 on its way\n\n"})
    assert written == "body: |+\n  event: text\n  data: 📦 on its way\n\n"


def test_a_stream_with_carriage_returns_still_has_a_line_for_each_of_its_own():
    written = emit.document({"body": "data: a\r\n\r\ndata: b\r\n"})
    assert written.splitlines() == ['body: "data: a\\r\\n\\', "  \\r\\n\\", "  data: b\\r\\n\\", '  "']


def test_white_space_at_a_lines_end_is_out_of_an_editors_reach():
    assert "data: \n" not in emit.document({"body": "data: \ndata: x\n"})


def test_a_row_stays_on_one_line():
    assert emit.document({"calls": [emit.Row(id=1, sdk="a, b")]}) == "calls:\n- {id: 1, sdk: 'a, b'}\n"


def test_what_yaml_has_no_plain_form_for_is_a_programming_error():
    with pytest.raises(TypeError, match="float"):
        emit.document({"a": 1.5})

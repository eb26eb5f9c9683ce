import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette.errors import CassetteError, Refused, Unreadable
from pytest_agentlatency.cassette.limits import Limits
from pytest_agentlatency.cassette.parse import Node, tree

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize("text", [BOMB, "&a {x: *a}", "a: &b 1"])
def test_a_bomb_or_a_cycle_is_refused_at_its_first_anchor(text):
    with pytest.raises(Refused, match=r"anchor or alias '\w' at line 1"):
        tree(text, "x.yaml")


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system [ls]", "!ruby/object {}", "!!python/name:os.system x"]
)
def test_a_tag_that_makes_objects_makes_none(tag):
    with pytest.raises(Refused, match=r"tag '.+' at line 1; only plain YAML"):
        tree(f"a: {tag}", "x.yaml")


def test_depth_is_counted_not_crashed_on():
    with pytest.raises(Refused, match="nested collections, at most 64"):
        tree("[" * 500, "x.yaml")


def test_the_number_of_values_is_bounded():
    with pytest.raises(Refused, match="values, at most 10"):
        tree("\n".join(["- x"] * 20), "x.yaml", Limits(values=10))


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "? [x]\n: 1", "a: " + "9" * 5000, "a: !!binary é", "\0\0\0", "a: 1\n---\nb: 2", ""]
)
def test_broken_text_is_unreadable_and_names_the_file(text):
    with pytest.raises(Unreadable, match=r"^x\.yaml: "):
        tree(text, "x.yaml")


@settings(deadline=None)
@given(st.text(max_size=60) | st.text("[]{}:-?!&*|>'\"% \n\tab1", max_size=60))
@example("%TAG ! x\n---\n!a")
def test_any_text_is_read_or_refused(text):
    try:
        tree(text, "x.yaml")
    except CassetteError as error:
        assert str(error).startswith("x.yaml")  # noqa: PT017 -- reading it is as good


def outcome(source):
    """The tree as it is written, since what is no number equals nothing, or the kind of the refusal."""
    try:
        return repr(tree(source, "x.yaml"))
    except CassetteError as error:
        return type(error)


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text("[]{}:-?!&*|>'\"% \n\tab1é📦", max_size=60)
)
def test_a_text_and_its_bytes_are_the_same_tree(text):
    text = text.replace("\ufeff", "")  # a byte order mark, which whoever reads the file takes off
    assert outcome(text) == outcome(text.encode())


def test_a_wrong_type_is_told_with_its_place():
    with pytest.raises(Unreadable, match=r"x\.yaml\.a\[1\]\.b: str 'no' found, int expected"):
        list(Node({"a": [{}, {"b": "no"}]}, "x.yaml")["a"].items())[1]["b"].number()


def test_true_is_no_number():
    with pytest.raises(Unreadable, match="bool True found"):
        Node({"a": True}, "x")["a"].number()

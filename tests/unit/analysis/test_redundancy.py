import json

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.redundancy import Text, copies, unwrapped

STORY = " ".join(f"Parcel {number} went to town {number * 7}." for number in range(12))


def found(*texts):
    return [(copy.original, copy.path, copy.text) for copy in copies(texts)]


def test_a_longer_text_that_comes_again_is_found_whole():
    again = f"As I said: {STORY} Thank you."
    assert found(Text("a", 1, 3, STORY), Text("b", 2, 3, again)) == [("a", "b", STORY.rstrip("."))]


def test_fewer_than_24_words_are_how_people_write():
    words = " ".join(STORY.split()[:23])
    assert found(Text("a", 1, 3, words), Text("b", 2, 3, words)) == []


def test_quotes_and_escapes_around_a_copy_hide_nothing():
    nested = json.dumps({"history": [STORY.replace(". ", ".\n")]})
    ((original, path, _),) = found(Text("a", 1, 3, STORY), Text("b", 2, 3, nested))
    assert (original, path) == ("a", "b")


def test_a_text_that_had_left_the_context_was_not_copied():
    assert found(Text("a", 1, 1, STORY), Text("b", 2, 3, STORY)) == []


def test_a_table_that_repeats_itself_is_one_text():
    assert found(Text("a", 1, 3, f"{STORY} And again: {STORY}")) == []


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=80), max_size=5))
def test_a_copy_is_always_a_piece_of_the_text_that_holds_it(texts):
    held = [Text(str(index), index, 9, " ".join(words)) for index, words in enumerate(texts)]
    for copy in copies(held):
        assert copy.text in held[int(copy.path)].text


def test_the_values_of_json_are_unwrapped_and_other_text_is_left_alone():
    assert unwrapped('{"a": "one", "b": [2, null, {"c": "three\\nfour"}]}') == "one\n2\nnull\nthree\nfour"
    assert unwrapped("{not json") == "{not json"
    assert unwrapped("plain") == "plain"

"""Heads tell agents apart, not their moods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.wire.head import Head, alike, head_of, overlap, shared
from pytest_agentlatency.wire.message import Block, Message, Prompt, ToolDefinition

SUPPORT = "You answer customers of a parcel service. Be short and polite."


def head(system: str = "", *tools: str) -> Head:
    return Head(frozenset(tools), system)


def test_head_is_tools_system_and_the_system_messages_that_open_the_history():
    def message(role: str, text: str) -> Message:
        return Message(role, (Block("text", text, "p", text),), "p")

    messages = (message("system", "b"), message("developer", "c"), message("user", "d"), message("system", "e"))
    prompt = Prompt("m", (ToolDefinition("t", "{}", "tools[0]"),), (Block("text", "a", "p", "a"),), messages)
    assert head_of(prompt) == head("a\nb\nc", "t")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (head(f"{SUPPORT} It is 12:03."), head(f"{SUPPORT} It is 12:04."), True),
        (head(SUPPORT), head(SUPPORT + " More rules. " * 100), True),
        (head(SUPPORT, "search"), head(SUPPORT), True),
        (head("Plan.", "a", "b", "c"), head("Now act on it with care.", "a", "b", "c", "d"), True),
        (head("", "a"), head(""), True),
        (head(SUPPORT, "search"), head("Write a title of five words."), False),
        (head(SUPPORT), head(""), False),
        (head("Find hotels in a town.", "hotels"), head("Book trains for two people.", "trains"), False),
        (head("", "a", "b"), head("", "c"), False),
    ],
)
def test_alike(one, other, same):
    assert alike(one, other) is same
    assert alike(other, one) is same


@given(st.text(), st.text())
def test_overlap_is_symmetric_bounded_and_one_for_equal_texts(one, other):
    assert overlap(one, other) == overlap(other, one)
    assert 0 <= overlap(one, other) <= 1
    assert overlap(one, one) == 1


@given(st.frozensets(st.integers(0, 5).map(str)), st.frozensets(st.integers(0, 5).map(str)))
def test_shared_is_one_for_equal_sets_only(one, other):
    assert (shared(one, other) == 1) == (one == other)

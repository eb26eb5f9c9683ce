"""The ReAct agent's tools: real, the same on every machine, and at a loss for nothing that a model may write."""

import pytest

from fixtures.agents.react import Tools, run


class Call:
    """A tool call, as the SDK gives it."""

    def __init__(self, name, **arguments):
        self.name, self.input = name, {"thought": "Let me see.", **arguments}


def test_a_search_goes_on_where_the_same_search_stopped():
    tools = Tools(rows=2)
    first = run(tools, Call("search", query="leftwards arrow"))
    assert first.splitlines()[0] == "U+2190 leftwards arrow"
    second = run(tools, Call("search", query="leftwards arrow"))
    assert not set(first.splitlines()) & set(second.splitlines())


def test_a_search_past_the_alphabets_end_begins_again():
    assert len(run(Tools(rows=3), Call("search", query="zzz")).splitlines()) == 3


@pytest.mark.parametrize(("expression", "value"), [("2 * (3 + 4)", "14"), ("-7 / 2", "-3.5"), ("2 ** 10", "1024")])
def test_the_calculator_works_out(expression, value):
    assert run(Tools(rows=1), Call("calculator", expression=expression)) == value


@pytest.mark.parametrize("expression", ["keywords signaling", "", "1 / 0", "print(1)", "'a' * 9", "1 <", "9 ** 'x'"])
def test_the_calculator_refuses_what_is_no_sum(expression):
    assert "no expression of numbers" in run(Tools(rows=1), Call("calculator", expression=expression))


@pytest.mark.parametrize("call", [Call("search"), Call("search", words="arrow"), Call("browse", url="x")])
def test_a_mistaken_call_is_told_to_the_model(call):
    assert f"{call.name} can't be called like that" in run(Tools(rows=1), call)

import pytest
from hypothesis import given, settings

from pytest_agentlatency.cassette import emit, facts
from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.parse import Node, tree
from pytest_agentlatency.model.recording import Recording
from tests.support import documents as some


@settings(deadline=None)
@given(some.recordings)
def test_all_that_is_said_once_comes_back(recording):
    node = Node(tree(emit.document({"run": facts.write(recording)}), "x"), "x")["run"]
    assert facts.read(node, Recording(attempts=recording.attempts)) == recording


def test_each_call_and_tool_is_a_line():
    written = emit.document(facts.write(some.session(1).recording))
    assert "- {id: 1, sdk: anthropic 2.14.0, entered: 0, returned: 351000000}\n" in written
    assert "- {id: 1, name: track, start: 360000000, end: 390000000, body: 361000000 389000000}\n" in written


def test_nothing_known_is_nothing_written():
    assert facts.write(Recording()) == {}


@pytest.mark.parametrize(
    "run",
    [
        {"bounds": "1"},
        {"bounds": "x y"},
        {"calls": [{"id": "1"}]},
        {"calls": [{"id": 1, "delivered": "5"}]},
        {"calls": {}},
        {"tools": [5]},
    ],
)
def test_a_wrong_field_is_told_with_its_place(run):
    with pytest.raises(Unreadable, match=r"^x\.yaml\."):
        facts.read(Node(run, "x.yaml"), Recording())

"""Bodies come back from their differences, each checked, and what they share is summed once."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import chain, delta
from pytest_agentlatency.cassette.errors import Refused, Unreadable
from pytest_agentlatency.cassette.limits import Limits
from pytest_agentlatency.cassette.parse import Node
from tests.support import documents as some

NOTHING = Node(None, "x.yaml.request")


def body(value: object) -> Node:
    return Node(value, "x.yaml.body")


def stated(data: bytes) -> Node:
    return Node(chain.checksum(data), "x.yaml.request")


def given_back(bodies: chain.Bodies, new: bytes, base: bytes, distance: int = 1) -> bytes:
    """What the chain makes of a body's difference from one before."""
    text = delta.encode(delta.cut(new), delta.cut(base), distance)
    return b"".join(bodies.take(body(text), stated(new)))


def session(turns: int) -> list[bytes]:
    return [some.body_of(some.history(turn, result="A long tool result. " * 20)) for turn in range(1, turns + 1)]


def test_a_body_in_full_is_given_as_it_stands():
    assert chain.Bodies().take(body("plain"), NOTHING) == b"plain"
    assert chain.Bodies().take(body(None), NOTHING) == b""


@settings(deadline=None)
@given(st.data())
def test_every_body_of_a_session_comes_back_whichever_is_its_base(data):
    bodies, met = chain.Bodies(), session(2)[:1]
    assert bodies.take(body(met[0].decode()), NOTHING) == met[0]
    for new in session(9)[1:]:
        distance = data.draw(st.integers(1, len(met)))
        if delta.encode(delta.cut(new), delta.cut(met[-distance]), distance) is not None:
            assert given_back(bodies, new, met[-distance], distance) == new
            met.append(new)


def test_another_body_than_the_recorded_one_is_refused_with_both_checksums():
    one, other = session(4)[2:]
    bodies = chain.Bodies()
    bodies.take(body(one.decode()), NOTHING)
    text = delta.encode(delta.cut(other), delta.cut(one), 1)
    with pytest.raises(Unreadable, match=r"x\.yaml\.request: the body rebuilds to crc [0-9a-f]{8}, recorded was 'crc "):
        bodies.take(body(text), stated(one))


def test_a_chain_that_doubles_its_body_at_each_step_is_refused():
    bodies, doubled = chain.Bodies(Limits(body=10_000)), body("agentlatency delta of -1\n[:]\n[:]")
    bodies.take(body("x" * 1000), NOTHING)
    sizes = [sum(map(len, bodies.take(doubled, NOTHING))) for _ in range(3)]
    assert sizes == [2000, 4000, 8000]
    with pytest.raises(Refused, match="16,000 bytes in a body, at most 10,000"):
        bodies.take(doubled, NOTHING)


@pytest.mark.parametrize("turns", [20, 80])
def test_a_history_is_summed_once_however_many_turns_repeat_it(monkeypatch, turns):
    """The bodies of a session are quadratic in its turns; what is read to check them is not."""
    read = []

    def counting(data, start=0):
        read.append(len(data))
        return zlib.crc32(data, start)

    met, bodies = session(turns)[3:], chain.Bodies()
    sums = [stated(each) for each in met]
    monkeypatch.setattr(chain, "crc32", counting)
    bodies.take(body(met[0].decode()), NOTHING)
    for base, new, checksum in zip(met, met[1:], sums[1:], strict=False):
        bodies.take(body(delta.encode(delta.cut(new), delta.cut(base), 1)), checksum)
    around = len(session(1)[0])  # what follows the messages stands at the end of each body, and is read with each
    assert sum(read) < len(met[-1]) + turns * around

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette import delta
from pytest_agentlatency.cassette.errors import Refused
from pytest_agentlatency.cassette.limits import Limits
from tests.support import documents as some


def difference(new: bytes, base: bytes) -> list[str]:
    """The lines of a difference, its head left out, after a check that it is exact."""
    text = delta.encode(delta.cut(new), delta.cut(base), 1)
    assert text is not None
    assert b"".join(delta.decode(text, delta.cut(base))) == new
    return text.splitlines()[1:]


@settings(deadline=None)
@given(some.bodies | st.binary(max_size=200))
def test_the_pieces_of_any_bytes_join_to_them(body):
    assert b"".join(delta.cut(body)) == body


@settings(deadline=None)
@given(st.text('[]{}",:\\ab \n', max_size=200).map(str.encode))
def test_the_pieces_of_nearly_json_join_to_it(body):
    assert b"".join(delta.cut(body)) == body


@settings(deadline=None)
@given(st.lists(some.bodies, max_size=6))
def test_bodies_cut_one_from_another_join_to_themselves(bodies):
    cutter = delta.Cutter(3)
    assert [b"".join(cutter.cut(body)) for body in bodies] == bodies


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), max_size=6), st.sampled_from(["A", "B"]))
def test_a_session_cut_turn_from_turn_has_the_pieces_of_each_cut_afresh(turns, system):
    cutter = delta.Cutter(3)
    for turn in turns:
        body = some.body_of(some.history(turn), system=system * turn)
        assert cutter.cut(body) == delta.cut(body)


pieces = st.lists(st.sampled_from([b"x" * 40, b"y" * 40, "é\n\u2028".encode(), b" a ", b'"', b"[:1]", b"+", b"z" * 99]))


@settings(deadline=None)
@given(pieces.map(tuple), pieces.map(tuple))
def test_a_difference_rebuilds_any_pieces_exactly(new, base):
    text = delta.encode(new, base, 1)
    assert text is None or b"".join(delta.decode(text, base)) == b"".join(new)
    assert text is None or delta.distance(text) == 1


@settings(deadline=None)
@given(some.bodies, some.bodies)
def test_a_difference_of_any_two_bodies_is_exact_or_not_made(new, base):
    text = delta.encode(delta.cut(new), delta.cut(base), 3)
    assert text is None or delta.decode(text, delta.cut(base)) == delta.cut(new)


def test_an_appended_turn_is_the_new_messages_and_nothing_else():
    base, new = (some.body_of(some.history(turns)) for turns in (8, 9))
    keep, *added, tail = difference(new, base)
    assert keep == "[:-1]"
    assert tail == "[-1:]"
    assert json.loads("".join(line[1:] for line in added).lstrip(",").join("[]")) == some.history(9)[-2:]


def test_a_longer_history_before_leaves_later_differences_as_they_are():
    """Bounds near the end count from the end: a turn more in the middle changes no later line."""
    short = difference(some.body_of(some.history(9)), some.body_of(some.history(8)))
    extra = [{"role": "user", "content": "Hurry."}]
    longer = difference(some.body_of(extra + some.history(9)), some.body_of(extra + some.history(8)))
    assert longer == short


def test_a_cache_marker_that_moves_costs_the_two_blocks_that_it_touches():
    def request(turn):
        messages = some.history(turn)
        for message in messages:
            message["content"] = (
                [{"type": "text", "text": message["content"]}]
                if isinstance(message["content"], str)
                else message["content"]
            )
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return some.body_of(messages)

    lines = difference(request(9), request(8))
    assert sum(line.startswith("+") for line in lines) <= 10
    assert sum("tool_result" in line for line in lines) == 2


def test_a_tail_that_is_replaced_every_turn_is_still_a_small_difference():
    def request(turn):
        return some.body_of([*some.history(turn), {"role": "user", "content": f"Tool-call turn {turn} of 100"}])

    lines = difference(request(31), request(30))
    assert len("\n".join(lines)) < 500


def test_a_reminder_inserted_early_leaves_the_rest_a_range():
    messages = some.history(8)
    reminded = [*messages[:2], {"role": "user", "content": "<total_tokens>9000 left</total_tokens>"}, *messages[2:]]
    lines = difference(some.body_of(reminded), some.body_of(messages))
    assert [line for line in lines if line.startswith("+")] == [
        '+,{"role":"user","content":"<total_tokens>9000 left</total_tokens>"}'
    ]


def test_a_volatile_system_prompt_before_the_messages_is_one_line():
    def request(clock):
        return json.dumps({"messages": [{"role": "system", "content": f"It is {clock}."}, *some.history(20)]}).encode()

    assert sum(line.startswith("+") for line in difference(request("12:01"), request("12:00"))) == 1


def test_the_same_body_again_is_one_range():
    """A retry sends what the attempt before sent."""
    body = some.body_of(some.history(4))
    assert difference(body, body) == ["[:]"]


def test_spaces_line_ends_and_double_keys_are_kept():
    base = json.dumps({"messages": some.history(9)}, indent=2).encode()
    new = base.replace(b'"messages"', b'"a": 1,  "a" : 2,\r\n "messages"')
    assert difference(new, base)


def test_bytes_that_are_no_text_make_no_difference():
    assert delta.encode((b"\xff" * 90, b"x" * 90), (b"x" * 90,), 1) is None


@pytest.mark.parametrize("line", ["", "x", "[1]", "[a:b]", "-x", '"open'])
def test_a_line_of_no_kind_is_an_error(line):
    with pytest.raises(ValueError, match=r"."):
        delta.decode(f"{delta.MAGIC}-1\n{line}", (b"x",))


def doubled(body, limits):
    for _ in range(60):
        body = delta.decode(f"{delta.MAGIC}-1\n[:]\n[:]", body, limits)


def test_a_chain_that_doubles_at_each_step_is_refused_by_the_limit():
    with pytest.raises(Refused, match="bytes in a body, at most 1,048,576"):
        doubled((b"x" * 100,), Limits(body=1 << 20))


def test_a_chain_of_empty_pieces_is_refused_too():
    with pytest.raises(Refused, match="pieces in a body, at most 1,000"):
        doubled((b"",) * 4, Limits(values=1000))


@pytest.mark.parametrize("hostile", [b'"' + b'\\"' * 50_000, b"x" * 200_000, b"[" * 100_000, b'{"a":"' * 20_000])
def test_hostile_bodies_are_cut_in_linear_time(hostile):
    """The pattern must not fail and begin again at each byte: 10,000 million steps instead of 100,000."""
    assert b"".join(delta.cut(hostile)) == hostile


@settings(deadline=None)
@given(st.integers(2, 12))
def test_the_differences_of_a_session_hold_each_message_once(turns):
    bodies = [
        delta.cut(some.body_of(some.history(turn, result="A long tool result, " * 9))) for turn in range(1, turns + 1)
    ]
    texts = [delta.encode(new, base, 1) or "" for base, new in pairwise(bodies)]
    assert "".join(texts[1:]).count("A long tool result, " * 9) == max(0, turns - 2)

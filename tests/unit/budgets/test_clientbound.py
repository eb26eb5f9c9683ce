"""Which budgets stand on what the reader of a stream decided. Field note B5."""

import re

import pytest

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.budgets import clientbound
from pytest_agentlatency.budgets.measures import SUBJECTS
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.testing.builders import recording, tool, turn

QUICK = turn(2000, 40, decode_ms=1000, tool_ms=5)
SLOW = turn(3000, 40, decode_ms=1000, consumer_ms=90, tool_ms=5)
RUN = assemble(recording([QUICK, SLOW, turn(4000, 40, decode_ms=1000)]))


def stands(phrase, run=RUN):
    found = clientbound.slow(parse(phrase), run)
    return found and (found.turn.lane, found.turn.number)


def test_the_run_is_what_it_should_be():
    assert [sorted(each.call.flags) for each in RUN.turns] == [[], ["client-bound"], []]


@pytest.mark.parametrize(
    "phrase",
    [
        "total under 30 s",
        "decode time under 30 s",
        "decode share under 99%",
        "prefill share over 1%",
        "tool share under 90% at turn 2",
        "tpot under 1 s",
        "tpot under 1 s at turn 2",
        "turn time under 30 s from turn 2",
        "decode time under 30 s at every turn",
        "turn time growth is linear",
        "total under 30 s in lane 1",
    ],
)
def test_decode_and_all_that_holds_it_is_the_readers(phrase):
    assert stands(phrase) == (1, 2)


@pytest.mark.parametrize(
    "phrase",
    [
        "ttft under 30 s",
        "time to first event under 30 s at turn 2",
        "prefill time under 30 s",
        "tool time under 30 s",
        "delivered under 30 s at turn 2",
        "time to first output under 30 s at turn 2",
        "time to first text under 30 s",
        "tpot under 1 s at turns 1 and 3",
        "turn time under 30 s at turn 1",
        "decode share under 99% from turn 3",
        "context under 30k at every turn",
        "output tokens under 30k",
        "cached share over 0%",
        "turns at most 8",
        "context growth is linear",
        "prefix stable",
    ],
)
def test_what_came_before_the_first_token_and_what_is_counted_is_not(phrase):
    assert stands(phrase) is None


def test_a_text_behind_thinking_is_the_readers_too():
    run = assemble(recording([turn(2000, 80, thinking=40, decode_ms=1000, consumer_ms=90)]))
    at = run.turn(1).call.milestones
    assert at.first_text > at.first_token
    assert stands("time to first text under 30 s", run) == (1, 1)
    assert stands("ttft under 30 s", run) is None


def test_a_total_is_not_spoilt_by_a_turn_that_is_a_small_part_of_it():
    """Nor is the turn's own time, when its tool takes a minute."""
    small = turn(3000, 40, decode_ms=200, consumer_ms=20, tools=(tool("build", 60_000),))
    run = assemble(recording([QUICK, small, turn(4000)]))
    assert "client-bound" in run.turn(2).call.flags
    assert stands("total under 300 s", run) is None
    assert stands("turn time under 300 s at turn 2", run) is None
    assert stands("decode time under 30 s at turn 2", run) == (1, 2)


def test_where_all_comes_at_once_its_parsing_is_not_held_against_the_reader():
    """A model that is simulated answers in a millisecond, most of which an SDK takes to read it."""
    run = assemble(recording([turn(2000, 40, prefill_ms=1, decode_ms=2, consumer_ms=1)]))
    assert "client-bound" in run.turn(1).call.flags
    assert stands("total under 30 s", run) is None


def test_each_lane_answers_for_itself():
    ask = tool("ask", 10, turns=[turn(500, 40, decode_ms=1000, consumer_ms=90)])
    run = assemble(recording([turn(2000, 40, tools=(ask,)), turn(3000)]))
    assert stands("total under 30 s", run) == (2, 1)
    assert stands("turn time under 30 s", run) is None
    assert stands("turn time under 30 s in lane 2", run) == (2, 1)
    assert stands("total under 30 s in lane 3", run) is None


def test_it_is_said_with_the_turn_the_part_and_what_to_do():
    text = clientbound.refusal(map(parse, ["total under 30 s", "ttft under 2 s", "tpot under 1 s"]), RUN)
    first, *rest = text.splitlines()
    assert re.fullmatch(r"client-bound: \d+% of decode at turn 2 is the reader's", first)
    assert len(first) <= 60
    assert [line.partition(": ")[0] for line in rest if line.startswith("'")] == [
        "'total under 30 s' would stand on turn 2",
        "'tpot under 1 s' would stand on turn 2",
    ]
    assert "on a quiet machine" in text
    assert "without blocking" in text
    assert clientbound.refusal([parse("ttft under 2 s")], RUN) == ""


def test_every_time_that_is_free_is_a_subject():
    assert {each.name for each in SUBJECTS} >= clientbound._FREE

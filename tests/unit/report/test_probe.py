from pytest_agentlatency.analysis.breaks import Break, Reason
from pytest_agentlatency.capture.passes import CLOCK, Finding
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.report import probe


def finding(turns, lane=1):
    broken = Break(
        turns[0],
        Reason.SYSTEM_CHANGED,
        "system[0]",
        7,
        "12:00",
        "13:07",
        "time differs with another clock",
        Tokens(9),
        0,
    )
    return Finding(CLOCK, broken, tuple(turns), lane)


def test_a_finding_is_told_with_its_place_its_turns_and_both_texts():
    assert probe.lines([finding([1, 2, 3])]) == [
        "turn 1 and 2 more: system_changed at system[0]: time differs with another clock",
        "  '12:00' became '13:07'",
    ]


def test_another_lane_is_named():
    assert probe.lines([finding([2], lane=3)])[0].startswith("lane 3 turn 2: ")


def test_the_summary_has_the_first_in_a_few_words():
    assert probe.word([finding([1]), finding([2])]) == "system[0]: time differs with another clock"
    assert probe.word([]) == ""

"""What a second pass's findings mean for a budget. How they come about: tests/plugin/test_probe_prefix.py."""

import pytest

from pytest_agentlatency.analysis.breaks import Break, Reason
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.capture.passes import ANY, CLOCK, HASHES, Finding, Passed, PassError, unstable
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.model.usage import Tokens
from pytest_agentlatency.testing.builders import edited, growing, recording


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


def test_a_finding_makes_the_main_lane_unstable_unless_all_its_turns_are_excepted():
    stable = Stability((), ())
    assert not unstable(stable, [finding([5, 6])], [5]).stable
    assert unstable(stable, [finding([5, 6])], [5, 6]).stable
    assert unstable(stable, [finding([5], lane=2)], []).stable


def test_a_finding_is_its_own_lanes():
    stable = Stability((), ())
    assert not unstable(stable, [finding([5], lane=2)], [], lane=2).stable
    assert unstable(stable, [finding([5], lane=1)], [], lane=2).stable


OBSERVED = recording(growing("linear", 3), tools=["search", "refund"])
NAMES = ("plain", "clock", "seed 2", "seed 3")


def said(text):
    """The same run with another system prompt."""
    return edited(OBSERVED, lambda _, body: body.update(system=f"You are an agent. {text}"))


def causes(plain, clock, second, third):
    sent = dict(zip(NAMES, (plain, clock, second, third), strict=True))
    return [each.cause for each in Passed({"t": sent}).findings("t", counter())]


def test_what_only_the_clock_changes_is_put_down_to_it():
    assert causes(said("Monday"), said("Tuesday"), said("Monday"), said("Monday")) == [CLOCK]


def test_one_hash_seed_of_two_is_enough():
    assert causes(said("a b"), said("a b"), said("a b"), said("b a")) == [HASHES]


def test_what_every_pass_changes_is_put_down_to_none():
    assert causes(said("x1"), said("x2"), said("x3"), said("x4")) == [ANY]


def test_equal_passes_have_no_finding():
    assert causes(OBSERVED, OBSERVED, OBSERVED, OBSERVED) == []


@pytest.mark.parametrize("last", [Recording(), recording(growing("linear", 2), tools=["search", "refund"])])
def test_passes_of_different_lengths_are_not_compared(last):
    with pytest.raises(PassError, match=r"calls made: plain 3, clock 3, seed 2 3, seed 3 [02]"):
        causes(OBSERVED, OBSERVED, OBSERVED, last)


def test_passes_that_made_no_call_are_no_agreement():
    with pytest.raises(PassError, match="calls made: plain 0"):
        causes(*[Recording()] * 4)

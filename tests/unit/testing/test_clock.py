import pytest

from pytest_agentlatency.testing import FakeClock


def test_a_fake_clock_stands_until_it_is_moved():
    clock = FakeClock(5)
    assert (clock(), clock()) == (5, 5)
    assert clock.advance(10, ms=0.5) == clock() == 500_015


def test_a_fake_clock_refuses_to_go_back():
    with pytest.raises(ValueError, match="-1 ns"):
        FakeClock().advance(-1)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.volatile import kind_of_change


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("It is 12:41 now.", "It is 12:42 now.", "time"),
        ("Today is Monday, November 30.", "Today is Tuesday, December 1.", "time"),
        ("now=2026-11-30T12:41:09Z.", "now=2026-11-30T12:41:10Z.", "time"),
        ("at 1764506469 s", "at 1764506499 s", "time"),
        ("id 0c5e7a34-5d4c-4d0e-9a51-0b7f3b9f4e11", "id 1d5e7a34-5d4c-4d0e-9a51-0b7f3b9f4e11", "uuid"),
        ("cwd /tmp/pytest-0/x", "cwd /tmp/pytest-1/x", "path"),
        ("Turn 5 of 100", "Turn 6 of 100", "counter"),
        ("a cat", "a dog", ""),
    ],
)
def test_what_differs_is_classified(before, after, kind):
    at = next(index for index, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    assert kind_of_change(before, after, at) == kind


def test_a_number_that_grew_a_digit_is_still_one_counter():
    assert kind_of_change("step 9 of", "step 10 of", 5) == "counter"


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200), st.integers(0, 250))
def test_no_text_is_too_odd(before, after, at):
    assert kind_of_change(before, after, at) in {"", "uuid", "time", "path", "counter"}

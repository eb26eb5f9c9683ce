"""Of several recorded lanes the one that plays the same part scores highest."""

import pytest

from pytest_agentlatency.cassette.likeness import ENOUGH, Opening, answerable, score
from pytest_agentlatency.wire.head import Head

SUPPORT = "You answer customers of a parcel service. Be short and polite."


def opening(
    system: str = SUPPORT, task: str = "Where is my parcel?", tools: str = "search", model: str = "m"
) -> Opening:
    return Opening("anthropic", model, Head(frozenset(tools.split()), system), task, streamed=True)


def test_equal_openings_score_one():
    assert score(opening(), opening()) == pytest.approx(1)


@pytest.mark.parametrize(
    "changed",
    [
        opening(system=SUPPORT + " More rules." * 200),
        opening(system="Act as a courteous clerk at all times."),
        opening(task="Please find out when it will arrive."),
        opening(tools="search calculator browser"),
        opening(model="another"),
    ],
)
def test_one_changed_part_is_still_the_same_lane(changed):
    assert score(opening(), changed) >= ENOUGH


def test_side_call_about_the_same_task_is_another_lane():
    assert score(opening(), opening(system="Write a title of five words.", tools="")) < ENOUGH


def test_what_neither_has_doesn_t_count():
    assert score(opening(system="", tools=""), opening(system="", tools="")) == pytest.approx(1)


def test_openings_that_say_nothing_are_like_no_other():
    assert score(opening("", "", ""), opening("", "", "")) == 0


def test_streamed_answer_serves_only_who_asked_for_a_stream():
    plain = Opening("anthropic", "m", Head(frozenset(), ""), "", streamed=False)
    assert not answerable(opening(), plain)
    assert answerable(opening(), opening(task="anything"))

from importlib.metadata import EntryPoint

import pytest

from pytest_agentlatency.budgets import grammar, nearest, subjects
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figure, Unit
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.subjects import Question, Subject, registry
from pytest_agentlatency.budgets.verdict import Ruling
from tests.support.plain_runs import grown


def _questions(question: Question) -> Figure:
    return Figure(len(question.run.turns) * 2, Unit.COUNT)


ONE = Subject("questions asked", Unit.COUNT, _questions, at_turn=False)
SEVERAL = [ONE, Subject("more-questions", Unit.COUNT, _questions)]
NOT_ONE = "a string is no subject"
TAKEN = Subject("ttft", Unit.TIME, _questions)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch):
    """Other packages' entry points, given as names in this module."""
    caches = (registry, grammar._parser, nearest._examples)

    def offer(*names: str) -> None:
        points = [EntryPoint(name, f"{__name__}:{name}", subjects.GROUP) for name in names]
        loaded = {name: globals()[name] for name in names}
        monkeypatch.setattr(EntryPoint, "load", lambda self: loaded[self.name])
        monkeypatch.setattr(subjects, "entry_points", lambda **_: points)
        for each in caches:
            each.cache_clear()

    yield offer
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()


def test_another_packages_subject_becomes_part_of_the_language(offered):
    offered("ONE")
    judgement = judge(parse("questions asked at most 9"), grown(1, 2, 3, 4, 5))
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "10 questions asked, budget 9"


def test_an_entry_point_may_give_several_subjects(offered):
    offered("SEVERAL")
    assert {"questions asked", "more-questions"} <= set(registry())
    assert judge(parse("more-questions at most 10 in total"), grown(1, 2, 3, 4, 5)).ruling is Ruling.KEPT


def test_an_entry_point_that_is_no_subject_is_named(offered):
    offered("NOT_ONE")
    with pytest.raises(TypeError, match=r"'NOT_ONE'.*not a Subject"):
        registry()


def test_two_subjects_of_one_name_are_refused(offered):
    offered("TAKEN")
    with pytest.raises(ValueError, match="two budget subjects are called 'ttft'"):
        registry()

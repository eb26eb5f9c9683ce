from pytest_agentlatency.budgets import nearest
from pytest_agentlatency.budgets.phrase import PhraseError, parse
from pytest_agentlatency.budgets.subjects import SERIES, registry


def test_every_example_that_may_be_offered_is_valid():
    for text in nearest._examples():
        parse(text)


def test_every_subject_and_series_has_an_example():
    examples = " | ".join(nearest._examples())
    assert all(name in examples for name in (*registry(), *SERIES))


def test_a_synonym_leads_to_a_word_of_the_vocabulary():
    words = {word for text in nearest._examples() for word in text.split()} | {"over", "constant"}
    assert set(nearest._SYNONYMS.values()) <= words


def test_repair_gives_up_when_nothing_is_near():
    def never(text: str) -> None:
        raise PhraseError(text, 0, "nothing")

    assert nearest._repaired(PhraseError("zzz yyy", 0, "alpha or beta"), never) == ""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.budgets.figure import Unit
from pytest_agentlatency.budgets.phrase import (
    Bound,
    Comparison,
    GrowthBound,
    Limit,
    PhraseError,
    Reach,
    Scope,
    StablePrefix,
    parse,
)

TOTAL, EVERY = Scope(Reach.TOTAL), Scope(Reach.EVERY)


def bound(text: str) -> Bound:
    phrase = parse(text)
    assert isinstance(phrase, Bound)
    return phrase


def test_the_two_sentences_of_the_user_mean_what_they_say():
    text = "prefill share under 50% at turn 6"
    limit, scope = Limit(0.5, Unit.SHARE), Scope(Reach.AT, (6,))
    assert parse(text) == Bound(text, "prefill share", Comparison.AT_MOST, limit, scope)
    assert parse("context growth is linear") == GrowthBound("context growth is linear", "context", "linear")


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("prefix stable", ()),
        ("prefix is stable", ()),
        ("prefix stable except turns 5", (5,)),
        ("prefix stable except turn 5", (5,)),
        ("prefix stable except turns 3, 5", (3, 5)),
        ("prefix stable except turns 3 and 5", (3, 5)),
    ],
)
def test_prefix_phrases(text: str, turns: tuple[int, ...]):
    assert parse(text) == StablePrefix(text, turns)


@pytest.mark.parametrize(
    ("text", "series", "law", "exactly"),
    [
        ("context growth is constant", "context", "constant", False),
        ("context growth is at most linear", "context", "linear", False),
        ("context growth is exactly linear", "context", "linear", True),
        ("cumulative prefill growth is at most linear", "cumulative prefill", "linear", False),
        ("output growth is linear", "output", "linear", False),
        ("tool result growth is sublinear", "tool result", "sublinear", False),
        ("turn time growth is linear", "turn time", "linear", False),
    ],
)
def test_growth_phrases(text: str, series: str, law: str, exactly: bool):
    assert parse(text) == GrowthBound(text, series, law, exactly)


@pytest.mark.parametrize(
    ("text", "subject", "value", "scope"),
    [
        ("turns at most 8", "turns", 8, TOTAL),
        ("calls at most 9", "calls", 9, TOTAL),
        ("retries at most 0", "retries", 0, TOTAL),
        ("tool time under 2 s in total", "tool time", 2e9, TOTAL),
        ("overhead share <= 10%", "overhead share", 0.1, TOTAL),
        ("ttft under 800 ms at every turn", "ttft", 8e8, EVERY),
        ("time to first token under 800ms", "ttft", 8e8, EVERY),
        ("tpot under 40 ms", "tpot", 4e7, EVERY),
        ("time to first output under 1.5 s", "time to first output", 1.5e9, EVERY),
        ("time to first text under 2 s at turns 2, 4", "time to first text", 2e9, Scope(Reach.AT, (2, 4))),
        ("total under 2 min", "total", 1.2e11, TOTAL),
        ("context tokens under 20k after turn 3", "context tokens", 20_000, Scope(Reach.FROM, (4,))),
        ("context under 20,000 at turn 3", "context tokens", 20_000, Scope(Reach.AT, (3,))),
        ("output tokens below 1_500", "output tokens", 1500, TOTAL),
        ("tool result tokens under 2k at every turn", "tool result tokens", 2000, EVERY),
        ("cached share over 80% from turn 2", "cached share", 0.8, Scope(Reach.FROM, (2,))),
        ("largest step under 5k tokens", "largest step", 5000, TOTAL),
        ("unused tools at most 2", "unused tools", 2, TOTAL),
        ("re-read cost under 100k tokens", "re-read cost", 100_000, TOTAL),
        ("kv cache under 2 GB at turn 10", "kv cache", 2e9, Scope(Reach.AT, (10,))),
        ("kv cache under 2 GiB at turn 10", "kv cache", 2**31, Scope(Reach.AT, (10,))),
        ("prefill share under 0.5", "prefill share", 0.5, TOTAL),
        ("PREFILL  Share  is under 50%", "prefill share", 0.5, TOTAL),
    ],
)
def test_bounds(text: str, subject: str, value: float, scope: Scope):
    phrase = bound(text)
    assert (phrase.subject, phrase.limit.value, phrase.scope) == (subject, value, scope)


@pytest.mark.parametrize(
    "phase", ["prefill", "decode", "serialization", "tool", "retry", "network", "overhead", "unsplit"]
)
def test_each_phase_has_a_share_and_a_time(phase: str):
    assert bound(f"{phase} share under 5%").limit == Limit(0.05, Unit.SHARE)
    assert bound(f"{phase} time under 5 ms at turn 1").limit == Limit(5_000_000, Unit.TIME)


@pytest.mark.parametrize("words", ["under", "below", "at most", "no more than", "<", "<=", "is under", "is at most"])
def test_words_and_symbols_for_an_upper_limit_are_one(words: str):
    assert bound(f"turns {words} 8").comparison is Comparison.AT_MOST


@pytest.mark.parametrize("words", ["over", "above", "at least", "no less than", ">", ">="])
def test_words_and_symbols_for_a_lower_limit_are_one(words: str):
    assert bound(f"turns {words} 8").comparison is Comparison.AT_LEAST


@pytest.mark.parametrize("words", ["is", "are", "exactly", "is exactly", "=", "=="])
def test_words_and_symbols_for_equality_are_one(words: str):
    assert bound(f"turns {words} 8").comparison is Comparison.IS


def test_a_tool_may_be_named_in_either_quotes():
    assert bound("tool 'search' results at most 20% of context") == Bound(
        "tool 'search' results at most 20% of context",
        "tool result tokens",
        Comparison.AT_MOST,
        Limit(0.2, Unit.SHARE, of_context=True),
        EVERY,
        tool="search",
    )
    assert bound('tool "the Search" time under 2 s').tool == "the Search"


@pytest.mark.parametrize(
    ("text", "lane"),
    [
        ("total under 3 s", None),
        ("total under 3 s in lane 2", 2),
        ("output tokens under 1k in total in lane 3", 3),
        ("ttft under 800 ms at turns 2, 4 in lane 2", 2),
        ("tool results under 2k tokens each from turn 2 in lane 4", 4),
        ("context growth is at most linear in lane 2", 2),
        ("prefix stable in lane 2", 2),
        ("prefix stable except turns 3, 5 in lane 2", 2),
    ],
)
def test_a_lane_may_be_named_behind_the_scope(text: str, lane: int | None):
    assert parse(text).lane == lane


def test_without_a_scope_a_lane_has_the_subjects_own():
    assert bound("output tokens under 1k in lane 2").scope == TOTAL
    assert bound("ttft under 1 s in lane 2").scope == EVERY


@pytest.mark.parametrize(
    "text", ["total under 60 s", "ttft under 1 s at turn 3 in lane 2", "turn time growth is linear"]
)
def test_measured_stands_in_front(text: str):
    plain, measured = parse(text), parse(f"Measured {text}")
    assert isinstance(measured, Bound | GrowthBound)
    assert measured.measured
    assert replace(measured, text=text, measured=False) == plain


def test_each_means_every_single_result():
    assert bound("tool results under 2k tokens each").each
    assert not bound("tool results under 2k tokens").each


@pytest.mark.parametrize(
    ("text", "word", "expected", "nearest"),
    [
        ("prefil share under 50% at turn 6", "prefil", "prefill", "prefill share under 50% at turn 6"),
        ("prefill shere under 50%", "shere", "share, time or work", "prefill share under 50%"),
        ("prefill sharee under 50%", "sharee", "share", "prefill share under 50%"),
        ("turns at msot 8", "msot", "least or most", "turns at most 8"),
        ("context growth is quadratic", "quadratic", "linear", "context growth is linear"),
        ("generation share under 50%", "generation", "decode", "decode share under 50%"),
        ("latency under 3 s", "latency", "total", "total under 3 s"),
        ("tool search results at most 2k", "search", "name in quotes", "tool 'search' results at most 2k"),
        ("prefill share under 50 ms", "ms", "a share in %", "prefill share under 50%"),
        ("prefill share under 50", "50", "a share in %", "prefill share under 50%"),
        ("turns at most 8.5", "8.5", "a whole number", "turns at most 8"),
        ("turns at most 8 ms", "ms", "without a unit", "turns at most 8"),
        ("ttft under 800", "800", "a time in ms, s or min", "ttft under 800 ms"),
        ("kv cache under 20k", "k", "GB", "kv cache under 20 GB"),
        ("ttft under 800 ms in total", "in", "no total", "ttft under 800 ms"),
        ("total under 60 s at turn 3", "at", "whole run", "total under 60 s"),
        ("retries at most 3 each", "each", "no single items", "retries at most 3"),
        ("prefill share under 50% at turn six", "six", "a turn number", "prefill share under 50% at turn 6"),
        ("prefill share under 50% at turn 0", "0", "from 1", "prefill share under 50% at turn 6"),
        ("prefill share under", "", "a number", "prefill share under 50%"),
        ("context tokens at most 20% of context", "of", "not a part of the context", ""),
        ("ttft under 5 parsecs", "parsecs", "a time in ms, s or min, as the limit of 'ttft'", "ttft under 5 s"),
        ("context tokens under 3 s", "s", "tokens, such as 800, 20k", "context tokens under 3k"),
        ("context under 5 lines at turn 3", "lines", "tokens, such as 800, 20k", "context under 5k at turn 3"),
        ("prefill share under 5", "5", "a share in %", "prefill share under 5%"),
        ("total under 60 s, measured", ",", "the end", "measured total under 60 s"),
        ("live total under 60 s", "live", "measured", "measured total under 60 s"),
        ("ttft under 2 s at turn 3 measured", "measured", "the end", "measured ttft under 2 s at turn 3"),
        ("total under 3 s in lane 0", "0", "a lane number from 1", "in lane 2"),
        ("total under 3 s in every lane", "every", "lane or total", "in lane 2"),
        ("", "", "a figure: ", ""),
    ],
)
def test_a_phrase_without_meaning_points_at_the_word(text: str, word: str, expected: str, nearest: str):
    with pytest.raises(PhraseError) as caught:
        parse(text)
    error, lines = caught.value, str(caught.value).splitlines()
    assert error.text[error.at :].split()[:1] == ([word] if word else []) or error.text[error.at :].startswith(word)
    assert expected in error.expected
    assert nearest in error.nearest
    assert lines[0] == f"not a latency budget: {text!r}"
    caret = lines[2].index("^")
    assert lines[1][caret:].startswith(word)


_PIECES = ["prefill", "share", "under", "50", "%", "at", "turn", "6", "'x'", "growth", "is", "each", "k"]


def complaint(text: str) -> PhraseError | None:
    try:
        parse(text)
    except PhraseError as error:
        return error
    return None


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(_PIECES)).map(" ".join))
def test_any_text_has_a_meaning_or_a_short_complaint_with_a_valid_neighbour(text: str):
    error = complaint(text)
    if error is not None:
        assert len(str(error).split("\n")) <= 5
        parse(error.nearest)

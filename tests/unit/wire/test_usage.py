"""Usage in normal form: laws that hold whatever a provider reports. Cases by host stand with their provider."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.wire.usage import Counts, normalise

count = st.integers(0, 10**6)
maybe = st.none() | count


@given(st.builds(Counts, maybe, maybe, maybe, maybe, maybe, maybe))
def test_parts_add_up_and_nothing_is_negative_or_made_up(counts):
    usage = normalise(counts, {})
    assert (usage.context is None) == (counts.prompt is None)
    assert (usage.output is None) == (counts.completion is None)
    if usage.context is not None:
        assert usage.uncached >= 0
        assert usage.context == usage.uncached + usage.cache_read + usage.cache_write
        assert usage.context >= counts.prompt
    if usage.output is not None:
        assert usage.output >= max(counts.completion, counts.reasoning or 0)


@given(count, count, count, count)
def test_counts_that_agree_are_taken_as_they_are(uncached, cached, completion, reasoning):
    """OpenAI's own form: cached inside the prompt, reasoning inside the completion, and a total of the two."""
    prompt, output = uncached + cached, completion + reasoning
    usage = normalise(Counts(prompt, output, cached, 0, reasoning, prompt + output), {})
    assert (usage.context, usage.output, usage.uncached) == (prompt, output, uncached)


@given(st.integers(1, 10**6), count, count, st.integers(1, 10**6))
def test_the_total_tells_that_cached_tokens_stand_outside(cached, prompt, completion, reasoning):
    inside = completion + reasoning
    usage = normalise(Counts(prompt, inside, cached, None, reasoning, prompt + cached + inside), {})
    if cached != reasoning:
        assert (usage.context, usage.uncached, usage.output) == (prompt + cached, prompt, inside)


def test_nothing_reported_is_unknown():
    assert normalise(Counts(None, None), {}).provenance is Provenance.UNKNOWN

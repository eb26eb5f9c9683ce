"""Phases, tokens and cache predictions against the word of a real inference server, live.

Times are compared with the server's own clock for the same request, never with a number of ours: a slow machine slows
both. What remains is how late a busy machine lets the client see an event; docs/accuracy.md has the sizes.
"""

from itertools import pairwise

import pytest

from fixtures.agents import react
from tests.support.llama_runs import measured
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.llm_server

QUESTION = "Which arrows point to the left, and how many are there?"
RELATIVE, ABSOLUTE_MS = 0.02, 30
ANSWER_OPENING = 8
"""Tokens of an answer that the chat template writes as the model did: they are still in the cache."""
APPORTIONED = 0.02
"""Part of a request by which a count of tokens in the middle of it may be off: only its total is known."""


def agent():
    react.answer(QUESTION, steps=5)


def busted():
    react.answer(QUESTION, steps=3, system=react.clocked())


def forked():
    react.branch(QUESTION)


@pytest.fixture(scope="module")
def caching():
    with LlamaServer() as server:
        yield server


@pytest.fixture(scope="module")
def with_cache(caching):
    return measured(caching, agent)


@pytest.fixture(scope="module")
def without_cache():
    with LlamaServer(prefix_cache=False) as server:
        yield measured(server, agent)


@pytest.fixture(params=["with_cache", "without_cache"])
def run(request):
    return request.getfixturevalue(request.param)


def outside(pairs):
    """Which pairs of milliseconds are further apart than 2 % and than 30 ms."""
    return [
        f"turn {turn}: {ours:.1f} ms, the server says {theirs:.1f} ms"
        for turn, (ours, theirs) in enumerate(pairs, start=1)
        if abs(ours - theirs) > max(RELATIVE * theirs, ABSOLUTE_MS)
    ]


def test_prefill_is_what_the_server_measured(run):
    """Turn by turn; one turn may have met a processor that was busy with something else."""
    pairs = [(each.prefill_ms, each.truth.prompt_ms) for each in run.compared]
    assert len(pairs) == 6
    assert len(outside(pairs)) <= 1, outside(pairs)


def test_decode_is_what_the_server_measured(run):
    pairs = [(each.decode_ms, each.truth.decode_ms) for each in run.compared]
    assert len(outside(pairs)) <= 1, outside(pairs)


def test_tokens_are_exactly_those_of_the_server(run):
    for each in run.compared:
        usage, truth = each.turn.call.usage, each.truth
        assert (usage.prefill_work, usage.cache_read, usage.output) == (truth.prompt, truth.cached, truth.output)
        assert usage.context == truth.prompt + truth.cached


def test_every_request_is_split_into_prefill_and_decode(run):
    for each in run.compared:
        assert each.turn.time("unsplit") == 0
        assert sum(each.turn.phases.values()) == each.turn.duration


def test_a_stable_prefix_is_read_as_predicted(with_cache):
    for predicted, truth in zip(with_cache.predicted_cached, with_cache.truths, strict=True):
        assert predicted <= truth.cached <= predicted + ANSWER_OPENING
    contexts = [each.turn.call.usage.context for each in with_cache.compared]
    assert with_cache.predicted_cached == (0, *contexts[:-1])


def test_a_busted_prefix_is_predicted_not_to_be_read(caching):
    """What is read is what the template writes before the clock, and the digits that did not change."""
    run = measured(caching, busted)
    assert len(run.truths) == 4
    for predicted, truth in zip(run.predicted_cached, run.truths, strict=True):
        assert predicted <= truth.cached <= predicted + 2 * ANSWER_OPENING


def test_a_forked_prefix_is_read_up_to_the_fork(caching):
    """And back: the one slot has forgotten the first branch from the fork on."""
    run = measured(caching, forked)
    contexts = [each.call.usage.context for each in run.readings]
    assert contexts[-1] > contexts[2] > contexts[1]
    for predicted, truth, context in zip(run.predicted_cached, run.truths, contexts, strict=True):
        assert predicted == pytest.approx(truth.cached, abs=ANSWER_OPENING + APPORTIONED * context)
    fork, back = (truth.cached for truth in run.truths[-2:])
    assert contexts[1] < fork < contexts[2]
    assert back == fork


def test_nothing_is_read_where_there_is_no_cache(without_cache):
    assert not any(truth.cached for truth in without_cache.truths)
    assert all(after.prompt > before.prompt for before, after in pairwise(without_cache.truths))

"""Prompts that share messages: taken apart once, and as each would be alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis import inventory
from pytest_agentlatency.analysis.counters import Chars
from pytest_agentlatency.analysis.inventory import Inventory
from pytest_agentlatency.analysis.ledger import ledger
from pytest_agentlatency.analysis.prefix import Sent, prefixes
from pytest_agentlatency.analysis.tokens import items, measure, part_of
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.wire.anthropic import Anthropic
from tests.support.prompts import assistant, call, result, text, tool, used, user, words

URL = "https://api.anthropic.com/v1/messages"
CHARS = Chars()
THOUGHT = {"type": "thinking", "thinking": "Hm, well.", "signature": "s"}
SUMMARY = {"type": "compaction", "content": "All that was said."}
MARKED = text("cached", cache_control={"type": "ephemeral"})
MESSAGES = st.sampled_from([
    user("Hi"), user("Hi"), user(text("And?"), MARKED), user(result(1, "found")), user(result(1, ""), text("more")),
    assistant(THOUGHT, text("Yes.")), assistant(THOUGHT), assistant(THOUGHT, call(1)), assistant(call(1, a=1), call(2)),
    assistant(SUMMARY), assistant(SUMMARY, THOUGHT, text("On.")), {"role": "user", "content": ""},
])  # fmt: skip
MODELS = st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-5", "gpt-5.5"])
STEPS = st.lists(st.tuples(st.lists(MESSAGES, max_size=3), st.integers(0, 4), MODELS), min_size=1, max_size=6)


def bodies(steps):
    """Each request cuts some messages off the history before, and adds some."""
    history = []
    for added, cut, model in steps:
        history = [*history[: len(history) - cut], *added]
        yield json.dumps({"model": model, "messages": history, "tools": [tool()], "system": "Help."}).encode()


def prompts(sent, provider=None):
    """As one provider reads them, which shares messages; without it, each by a provider of its own."""
    return [(provider or Anthropic()).prompt(Request("POST", URL, (), body)) for body in sent]


@given(STEPS)
def test_shared_messages_give_the_pieces_that_each_prompt_gives_alone(steps):
    sent = list(bodies(steps))
    shelf = Inventory(CHARS)
    for shared, alone in zip(prompts(sent, Anthropic()), prompts(sent), strict=True):
        listing = shelf.of(shared)
        assert listing.items == items(alone)
        assert listing.sizes == tuple(measure(item, CHARS) for item in items(alone))


@given(STEPS, st.booleans())
def test_ledger_and_prefixes_do_not_depend_on_what_is_shared(steps, known):
    sent = list(bodies(steps))
    usages = [used(50 + len(body) // 4) if known else Usage() for body in sent]
    shelf = Inventory(CHARS)
    shared, alone = prompts(sent, Anthropic()), prompts(sent)
    one = ledger(zip(shared, usages, strict=True), CHARS, inventory=shelf)
    other = ledger(zip(alone, usages, strict=True), CHARS)
    assert (one.turns, one.pieces) == (other.turns, other.pieces)
    assert prefixes(lane(shared, sent, usages), CHARS, shelf) == prefixes(lane(alone, sent, usages), CHARS)


def lane(read, sent, usages):
    return [Sent(*each) for each in zip(read, sent, (usage.context for usage in usages), strict=True)]


@pytest.fixture
def taken_apart(monkeypatch):
    """Paths of the messages that were taken apart."""
    paths = []

    def noted(message, model):
        paths.append(message.path)
        return part_of(message, model)

    monkeypatch.setattr(inventory, "part_of", noted)
    return paths


def test_each_message_of_two_hundred_turns_is_taken_apart_once(taken_apart):
    """For ledger and prefixes together; unshared it would be 40,000 messages each."""
    turns = [assistant(text("Next."), call(1)), user(result(1, words(20)))]
    steps = [([user("Go")], 0, "claude-sonnet-4-5"), *[(turns, 0, "claude-sonnet-4-5")] * 199]
    sent = list(bodies(steps))
    read, shelf = prompts(sent, Anthropic()), Inventory(CHARS)
    ledger(((prompt, used(100)) for prompt in read), CHARS, inventory=shelf)
    prefixes((Sent(*each) for each in zip(read, sent, strict=True)), CHARS, shelf)
    assert taken_apart == [f"messages[{at}]" for at in range(399)]

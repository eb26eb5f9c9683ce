import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.counters import Memo, counter
from pytest_agentlatency.analysis.ledger import apportion, ledger
from pytest_agentlatency.analysis.tokens import Source
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.usage import Usage
from tests.support.prompts import assistant, call, claude, result, text, tool, used, user, words

TOOLS = [tool("search"), tool("refund", "Pay it back.")]


def conversation(turns, *, size=300, tools=TOOLS, system="Help the customer."):
    """An append-only lane: a question, then a call and its result each turn."""
    messages = [user("Where is my parcel?")]
    for number in range(1, turns + 1):
        yield claude(list(messages), tools=tools, system=system)
        messages += [
            assistant(call(number, query=f"parcel {number}")),
            user(result(number, words(size, f"item{number}"))),
        ]


def account(turns=4, contexts=(1_000, 1_400, 1_800, 2_200), **more):
    prompts = list(conversation(turns, **more))
    return ledger([(prompt, used(context)) for prompt, context in zip(prompts, contexts, strict=True)], counter())


@settings(deadline=None)
@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=8))
def test_the_entries_of_a_turn_add_up_to_its_usage_exactly(contexts):
    """Whatever the provider says, also when it falls while the request grows."""
    for turn, context in zip(account(len(contexts), contexts).turns, contexts, strict=True):
        assert turn.context == context
        assert sum(turn.by_source.values()) == context
        assert sum(tokens for _, tokens in turn.pieces) + turn.hidden == context
        assert all(tokens >= 0 for _, tokens in turn.pieces)
        assert turn.hidden >= 0


@settings(deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**4), min_size=1))
def test_apportioning_loses_no_token_and_is_off_by_less_than_one(total, weights):
    parts = apportion(total, weights)
    if sum(weights):
        assert sum(parts) == total
        assert all(abs(part - total * w / sum(weights)) < 1 for part, w in zip(parts, weights, strict=True))


def test_a_turn_brings_what_the_context_grew_by():
    turns = account().turns
    for before, after in pairwise(turns):
        assert sum(piece.tokens for piece in after.added) == after.context - before.context == 400
        assert [piece.source for piece in after.added] == [Source.TOOL_CALL, Source.TOOL_RESULT]


def test_a_piece_keeps_its_tokens_for_as_long_as_it_stays():
    turns = account().turns
    assert [tokens for _, tokens in turns[0].pieces] == [
        tokens for _, tokens in turns[3].pieces[: len(turns[0].pieces)]
    ]


def test_reread_cost_is_tokens_times_the_later_turns():
    lane = account()
    first = next(piece for piece in lane.pieces if piece.source is Source.TOOL_RESULT)
    assert (first.since, first.until, first.turns) == (2, 4, 3)
    assert first.reread == 2 * first.tokens
    pieces = sum(turn.context - turn.hidden for turn in lane.turns)
    assert lane.reread == pieces - sum(piece.tokens for piece in lane.pieces)


def test_one_more_turn_costs_the_whole_context_again():
    """Field note F11: at zero cache."""
    assert account().one_more_turn == 2_200


def test_each_tools_definition_and_results_are_told_apart():
    last = account().turns[-1]
    assert set(last.definitions) == {"search", "refund"}
    assert set(last.results_by_tool) == {"search"}
    assert last.results_by_tool["search"] == last.by_source[Source.TOOL_RESULT]


def test_a_tool_that_nobody_called_is_named():
    assert [piece.name for piece in account().unused_tools] == ["refund"]


def test_a_call_in_the_last_answer_counts_as_a_call():
    prompts = list(conversation(2))
    lane = ledger([(prompt, used(1_000)) for prompt in prompts], counter(), called=["refund"])
    assert lane.unused_tools == ()


def test_what_no_piece_can_account_for_is_hidden():
    """A prompt of a few words and two small tools, billed 700: the provider's tool prompt."""
    (turn,) = account(1, [700]).turns
    assert turn.by_source[Source.HIDDEN] > 400


def test_a_replaced_tail_leaves_the_account_when_it_leaves_the_context():
    """PEERS 6: `Tool-call turn 5 of 100`, replaced by the next request."""
    opening = user(words(500))
    prompts = [claude([opening, user(f"Turn {number} of 100")]) for number in (1, 2, 3)]
    lane = ledger([(prompt, used(600)) for prompt in prompts], counter())
    tails = [piece for piece in lane.pieces if piece.text.startswith("Turn")]
    assert [(piece.since, piece.until, piece.reread) for piece in tails] == [(1, 1, 0), (2, 2, 0), (3, 3, 0)]


def test_a_turn_of_several_hidden_passes_is_estimated_and_marked():
    """Field note C3: 60,000 tokens read over three passes are not the size of one context."""
    prompts = list(conversation(3))
    usages = [used(1_000), used(60_000, multi_pass=True), used(1_800)]
    first, second, third = ledger(list(zip(prompts, usages, strict=True)), counter()).turns
    assert second.provenance is Provenance.ESTIMATED
    assert first.context < second.context < 2_000
    assert sum(second.by_source.values()) == second.context
    assert third.context == 1_800


def test_a_stream_without_usage_is_estimated_and_marked():
    """Field note C12: never a silent zero."""
    (turn,) = ledger([(next(conversation(1)), Usage())], counter()).turns
    assert turn.provenance is Provenance.ESTIMATED
    assert turn.context > 50


def test_usage_that_falls_while_the_request_grows_is_doubted():
    """Field note C14: the server reports only what it prefilled."""
    (doubt,) = account(4, [1_200, 2_000, 900, 3_000]).doubts
    assert doubt.startswith("turn 3: the prompt grew and its usage fell from 2,000 to 900 tokens")


def test_a_body_edited_after_the_recording_is_doubted():
    (doubt,) = ledger([(claude([user("redacted")]), used(18_135))], counter()).doubts
    assert "18,135 tokens for a prompt of about" in doubt


def test_json_around_a_result_is_counted_as_wrapping():
    """Field note F3: serialised state costs a third more than its text."""
    rows = [{"identifier": number, "description": "A small brown parcel"} for number in range(40)]
    wrapped, plain = json.dumps(rows), "\n".join(f"{row['identifier']}\n{row['description']}" for row in rows)

    def lane(content):
        prompt = claude([user("Hi"), assistant(call(1)), user(result(1, content))])
        return ledger([(prompt, used(1_500))], counter())

    assert lane(plain).wrapping == {}
    overhead = lane(wrapped).wrapping["search"]
    assert 0.25 < overhead / 1_500 < 0.7


def test_a_history_nested_in_a_message_is_found_and_named():
    story = " ".join(f"The parcel number {n} went to town {n * 7}." for n in range(20))
    nested = json.dumps({"state": {"messages": [{"content": f"Summary so far:\n{story}"}]}})
    prompt = claude([user(story), assistant(call(1)), user(result(1, nested))])
    ((copy, tokens),) = ledger([(prompt, used(900))], counter()).duplicates
    assert (copy.original, copy.path) == ("messages[0].content[0]", "messages[2].content[0]")
    assert copy.text.startswith("The parcel number 0 went to town 0")
    assert tokens > 150


def test_a_text_that_was_replaced_by_a_similar_one_is_no_duplicate():
    """They never stood in one context."""
    story = words(60)
    lane = ledger([(claude([user(f"{n}. {story} {n}")]), used(100)) for n in (1, 2)], counter())
    assert lane.duplicates == ()


class Counting:
    id = "counting-1"

    def __init__(self):
        self.asked = []

    def count(self, content):
        self.asked.append(content)
        return len(content) // 4


def test_two_hundred_turns_read_each_distinct_text_once():
    """Field note F8: counting is off the path of a replay."""
    ruler = Counting()
    ledger([(prompt, used(1_000)) for prompt in conversation(50, size=5)], Memo(ruler))
    assert len(ruler.asked) == len(set(ruler.asked))


@pytest.mark.parametrize("sequence", [[], [(claude([]), used(0))]])
def test_an_empty_lane_has_an_empty_account(sequence):
    lane = ledger(sequence, counter())
    assert lane.reread == 0
    assert lane.duplicates == ()


def test_text_beside_a_result_is_the_users():
    prompt = claude([user("Hi"), assistant(call(1)), user(result(1, "ok"), text("Hurry, please."))])
    (turn,) = ledger([(prompt, used(200))], counter()).turns
    assert [piece.source for piece, _ in turn.pieces] == [
        Source.USER, Source.TOOL_CALL, Source.TOOL_RESULT, Source.USER,
    ]  # fmt: skip

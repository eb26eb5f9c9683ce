from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.breaks import Reason
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.prefix import Sent, differences, prefixes, stable
from pytest_agentlatency.model.usage import Tokens
from tests.support import prompts
from tests.support.prompts import assistant, call, result, text, tool, user, words

COUNTER = counter("chars")
TOOLS = [tool("search", city={"type": "string"}, day={"type": "string"}), tool("refund"), tool("track")]
MARK = {"cache_control": {"type": "ephemeral"}}


def sent(messages, **changed):
    return prompts.sent(messages, **{"system": "Help.", "tools": TOOLS} | changed)


def history(turns, size=40):
    messages = [user("Where is my parcel?")]
    for number in range(1, turns):
        messages += [assistant(call(number, query=f"p{number}")), user(result(number, words(size, f"item{number}")))]
    return messages


def lane(turns=4, **more):
    return [sent(history(turn), **more) for turn in range(1, turns + 1)]


def only_break(requests):
    (broken,) = (turn.broken for turn in prefixes(requests, COUNTER) if turn.broken)
    return broken


def test_a_lane_that_only_appends_repeats_itself_whole():
    turns = prefixes(lane(), COUNTER)
    assert [turn.share for turn in turns] == [1.0] * 4
    assert stable(turns).stable


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(0, 60))
def test_append_only_is_stable_whatever_is_appended(turns, size):
    assert stable(prefixes([sent(history(turn, size)) for turn in range(1, turns + 1)], COUNTER)).stable


def test_a_moved_cache_marker_is_no_change():
    """Field note D1: it moves every turn, and turns a string into a list of blocks to sit on."""
    first = sent([user(text("Hi", **MARK))], system=[text("Help.", **MARK)], tools=[TOOLS[0], TOOLS[1] | MARK])
    second = sent([user("Hi"), assistant(text("Yes?")), user(text("Go on", **MARK))], tools=TOOLS[:2])
    assert stable(prefixes([first, second], COUNTER)).stable


CHANGES = {
    "tools": ({"tools": [tool("search", "Search it."), *TOOLS[1:]]}, Reason.TOOLS_CHANGED, "tools[0]"),
    "a tool added": ({"tools": [*TOOLS, tool("cancel")]}, Reason.TOOLS_CHANGED, "tools[3]"),
    "tools dropped": ({"tools": []}, Reason.TOOLS_CHANGED, "tools[0]"),
    "system": ({"system": "Help!"}, Reason.SYSTEM_CHANGED, "system[0]"),
    "system added to": ({"system": [text("Help."), text("Be quick.")]}, Reason.SYSTEM_CHANGED, "system[1]"),
    "model": ({"model": "claude-opus-4-5"}, Reason.MODEL_CHANGED, "model"),
    "params": ({"tool_choice": {"type": "any"}}, Reason.PARAMS_CHANGED, "tool_choice"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason", "path"), CHANGES.values(), ids=list(CHANGES))
def test_a_change_is_told_in_the_providers_terms_with_its_path(change, reason, path):
    broken = only_break([*lane(3), sent(history(4), **change)])
    assert (broken.turn, broken.reason, broken.path) == (4, reason, path)
    assert broken.lost > 0


def test_a_change_of_the_temperature_breaks_nothing():
    assert stable(prefixes([*lane(3), sent(history(4), temperature=0.3)], COUNTER)).stable


def test_the_further_back_a_change_stands_the_more_must_be_read_again():
    changed_first, changed_last = history(4), history(4)
    changed_first[0] = user("Where is my letter?")
    changed_last[4] = user(result(2, "nothing"))
    losses = [only_break([*lane(3), sent(messages)]).lost for messages in (changed_first, changed_last)]
    assert losses[0] > losses[1] > 0


def test_the_place_is_told_by_offset_and_snippets():
    """Offsets count the earlier request's bytes in the provider's order: tools, system, messages."""
    broken = only_break([sent([user("abcdef")], system="", tools=[]), sent([user("abcXef")], system="", tools=[])])
    assert broken.path == "messages[0].content[0]"
    assert broken.offset == len("user:abc")
    assert (broken.before, broken.after) == ("def\n", "Xef\n")


def test_recorded_usage_scales_what_is_lost():
    """Everything is lost when the first tool changes: the whole of the earlier context."""
    before, after = sent(history(2), context=Tokens(9_000)), sent(history(3), tools=TOOLS[::-1], context=Tokens(9_900))
    turn = prefixes([before, after], COUNTER)[1]
    assert turn.previous == 9_000
    assert 8_800 <= turn.broken.lost <= 9_000


class TestTools:
    def test_a_set_reordered_is_told_from_a_set_changed(self):
        """Field note D3: order taken from a set or a map."""
        assert only_break([*lane(2), sent(history(3), tools=TOOLS[::-1])]).detail == "tools reordered (same set)"

    def test_shuffled_schema_properties_are_seen_in_the_bytes(self):
        """Field note A9: equal as objects, not as bytes."""
        turned = tool("search", day={"type": "string"}, city={"type": "string"})
        broken = only_break([*lane(2), sent(history(3), tools=[turned, *TOOLS[1:]])])
        assert broken.detail == "keys reordered in a definition"

    def test_added_removed_and_changed_tools_are_named(self):
        changed = [tool("search", "Other."), tool("refund"), tool("cancel")]
        assert only_break([*lane(2), sent(history(3), tools=changed)]).detail == (
            "added: cancel; removed: track; changed: search"
        )

    def test_dropping_all_tools_for_the_last_answer_says_so(self):
        assert only_break([*lane(2), sent(history(3), tools=[])]).detail == "all 3 tools dropped"


def test_shuffled_keys_of_a_calls_input_are_seen_in_the_bytes():
    first = [user("Hi"), assistant(call(1, city="Paris", day="Monday")), user(result(1, "ok"))]
    second = [user("Hi"), assistant(call(1, day="Monday", city="Paris")), user(result(1, "ok"))]
    assert only_break([sent(first), sent(second)]).path == "messages[1].content[0]"


def test_thinking_dropped_at_a_user_turn_is_named():
    """Field note D5: stripped exactly when the next question comes."""
    thought = {"type": "thinking", "thinking": words(60), "signature": "s"}
    first = [user("Hi"), assistant(text("Yes?")), user("Go"), assistant(thought, text("Done."))]
    second = [*first[:3], assistant(text("Done.")), user("And now?")]
    assert only_break([sent(first), sent(second)]).detail == "thinking dropped at messages[3]"


def test_a_retroactive_trim_is_named():
    messages = history(4)
    messages[2] = user(result(1, "item1"))
    broken = only_break([*lane(3), sent(messages)])
    assert broken.path == "messages[2].content[0]"
    assert "shortened from" in broken.detail


def test_an_insertion_and_a_removal_are_told_from_a_rewrite():
    inserted = [user("Note this."), *history(3)]
    assert only_break([*lane(2), sent(inserted)]).detail == "something inserted before messages[0].content[0]"
    removed = history(4)[:1] + history(4)[3:]
    assert "removed" in only_break([*lane(3), sent(removed)]).detail


def test_a_clock_in_the_system_prompt_is_named():
    """Field note D2, A12."""
    broken = only_break([sent(history(1), system="It is 12:41."), sent(history(2), system="It is 12:42.")])
    assert (broken.reason, broken.detail) == (Reason.SYSTEM_CHANGED, "time differs")


class TestJudgement:
    def test_excepted_turns_are_excused(self):
        turns = prefixes([*lane(3), sent(history(4), system="Help!"), sent(history(5), system="Help!")], COUNTER)
        assert not stable(turns).stable
        assert stable(turns, except_=[4]).stable
        assert [each.turn for each in stable(turns, except_=[4]).excused] == [4]

    def test_one_compaction_is_allowed_and_counted(self):
        """Field note D6: one at turn 5 passes."""
        summary = [user("Summary: three parcels were looked up.")]
        turns = prefixes([*lane(4), sent(summary), sent([*summary, assistant(text("Ok.")), user("Go")])], COUNTER)
        verdict = stable(turns)
        assert verdict.stable
        assert [each.turn for each in verdict.excused] == [5]
        assert verdict.excused[0].saved > 0
        assert not stable(turns, compactions=0).stable

    def test_a_window_that_slides_each_turn_fails_with_the_sum(self):
        """Field note D6: fewer tokens a turn, and all of them read again."""
        window = [sent([history(9)[0], *history(turn)[-4:]]) for turn in range(4, 10)]
        verdict = stable(prefixes(window, COUNTER))
        assert [each.turn for each in verdict.breaks] == [2, 3, 4, 5, 6]
        assert verdict.lost == sum(each.lost for each in verdict.breaks) > 500


def test_two_runs_of_one_agent_are_compared_turn_by_turn():
    """Field note D2: a minute that passes between two runs, not inside one."""
    morning = lane(3, system="It is 09:15.")
    evening = lane(3, system="It is 21:40.")
    assert stable(prefixes(morning, COUNTER)).stable
    found = differences(morning, evening, COUNTER)
    assert [(each.turn, each.reason, each.detail) for each in found] == [
        (turn, Reason.SYSTEM_CHANGED, "time differs") for turn in (1, 2, 3)
    ]
    assert differences(morning, morning, COUNTER) == ()


def test_a_second_run_that_sends_more_at_the_same_turn_differs_too():
    assert len(differences([sent(history(2))], [sent(history(3))], COUNTER)) == 1


def test_a_prompt_without_its_body_is_compared_by_its_canonical_form():
    """A history that the server holds has no bytes in the request."""
    bare = [Sent(replace(each.prompt, previous_id="msg_1")) for each in lane(3)]
    assert stable(prefixes(bare, COUNTER)).stable


def test_lost_and_shared_add_up_to_the_earlier_request():
    messages = history(4)
    messages[2] = user(result(1, "other"))
    for turn in prefixes([*lane(3), sent(messages)], COUNTER)[1:]:
        assert turn.shared + (turn.broken.lost if turn.broken else 0) == turn.previous

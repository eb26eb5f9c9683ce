"""Lanes are told apart by what requests say. Prompts are built from Anthropic bodies by the provider itself."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.wire.anthropic import Anthropic
from pytest_agentlatency.wire.lineage import Exchange, Lineage, Placement, place_all
from pytest_agentlatency.wire.message import Answer, Prompt
from pytest_agentlatency.wire.openai import OpenAIChat

ANTHROPIC = Anthropic()
SEARCH = {"name": "search", "description": "Find pages.", "input_schema": {"type": "object"}}
SUPPORT = "You answer customers of a parcel service. Be short and polite."


def prompt(*messages: dict[str, Any], system: Any = SUPPORT, tools: Any = (SEARCH,), **more: Any) -> Prompt:
    body = {"model": "m", "messages": list(messages), "system": system, "tools": list(tools), **more}
    return ANTHROPIC.prompt(Request("POST", "https://host/v1/messages", body=json.dumps(body).encode()))


def answer(*content: dict[str, Any], id_: str = "") -> Answer:
    body = {"type": "message", "id": id_, "role": "assistant", "content": list(content)}
    return ANTHROPIC.answer(Response(200, chunks=(json.dumps(body).encode(),)))


def user(*content: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]}


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(query: str, id_: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "search", "input": {"query": query, "limit": 3}}


def result(content: Any, id_: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


class Conversation:
    """Plays a run against a Lineage: each ask is answered before the next, unless told otherwise."""

    def __init__(self) -> None:
        self.lineage = Lineage()

    def ask(self, asked: Prompt, *said: dict[str, Any], id_: str = "") -> Placement:
        placed = self.lineage.place(asked)
        self.lineage.answered(placed.lane, answer(*said, id_=id_))
        return placed


def where(placement: Placement) -> tuple[int, int]:
    return placement.lane, placement.turn


def test_history_that_grows_is_one_lane():
    run = Conversation()
    first = run.ask(prompt(user("Where is it?")), call("parcel"))
    second = run.ask(
        prompt(user("Where is it?"), assistant(call("parcel")), user(result("in transit"))), text("On its way.")
    )
    assert where(first), where(second) == ((1, 1), (1, 2))
    assert not first.extends
    assert second.extends
    assert second.rewritten_from is None
    assert second.whole


def test_string_content_and_text_block_are_the_same_message():
    run = Conversation()
    run.ask(prompt({"role": "user", "content": "Where is it?"}), call("parcel"))
    second = run.ask(prompt(user("Where is it?"), assistant(call("parcel")), user(result("in transit"))))
    assert where(second) == (1, 2)
    assert second.extends


def test_moved_cache_marker_and_nulls_break_nothing():
    run = Conversation()
    marked = {**text("Where is it?"), "cache_control": {"type": "ephemeral"}}
    run.ask(prompt(user(marked)), call("parcel"))
    plain = {**text("Where is it?"), "citations": None}
    second = run.ask(
        prompt(user(plain), assistant(call("parcel")), user({**result("x"), "cache_control": {"type": "ephemeral"}}))
    )
    assert where(second) == (1, 2)
    assert second.extends


def test_ids_don_t_tell_messages_apart():
    run = Conversation()
    run.ask(prompt(user("Q"), assistant(call("a", "toolu_1")), user(result("r", "toolu_1"))), text("done"))
    again = prompt(
        user("Q"), assistant(call("a", "toolu_9")), user(result("r", "toolu_9")), assistant(text("done")), user("more")
    )
    assert run.ask(again).extends


def test_blocks_appended_to_the_last_user_message_extend_it():
    run = Conversation()
    run.ask(prompt(user("Q")))
    assert run.ask(prompt(user("Q", "A reminder."))).extends


def test_side_call_with_a_head_of_its_own_is_its_own_lane():
    """A title generator gets the user's message too."""
    run = Conversation()
    title = run.ask(prompt(user("Where is it?"), system="Write a title of five words.", tools=()), text("Lost parcel"))
    main = run.ask(prompt(user("Where is it?")), call("parcel"))
    later = run.ask(prompt(user("Where is it?"), assistant(call("parcel")), user(result("x"))))
    assert [where(each) for each in (title, main, later)] == [(1, 1), (2, 1), (2, 2)]


def test_sub_agent_does_not_pollute_its_parent_c17():
    """Parent of 3 turns, child of 4 with another task: two lanes, 7 calls."""
    run = Conversation()
    parent, child, seen = [user("Plan a trip")], [user("Find a hotel")], []
    seen.append(run.ask(prompt(*parent), call("hotel", "p1")))
    for turn in range(4):
        seen.append(run.ask(prompt(*child, system="You find hotels.", tools=()), text(f"child {turn}")))
        child += [assistant(text(f"child {turn}")), user(f"go on {turn}")]
    for turn in range(2):
        parent += [assistant(call("hotel" if not turn else f"q{turn}", "p1")), user(result(f"r{turn}", "p1"))]
        seen.append(run.ask(prompt(*parent), call(f"q{turn + 1}", "p1")))
    assert [where(each) for each in seen] == [(1, 1), (2, 1), (2, 2), (2, 3), (2, 4), (1, 2), (1, 3)]


def test_clock_in_the_system_prompt_keeps_the_lane():
    run = Conversation()
    run.ask(prompt(user("Q"), system=f"{SUPPORT} It is 12:03:11."), call("a"))
    second = run.ask(prompt(user("Q"), assistant(call("a")), user(result("r")), system=f"{SUPPORT} It is 12:03:19."))
    assert where(second) == (1, 2)


def test_tools_taken_away_for_the_last_answer_keep_the_lane():
    run = Conversation()
    run.ask(prompt(user("Q")), call("a"))
    assert where(run.ask(prompt(user("Q"), assistant(call("a")), user(result("r")), tools=()))) == (1, 2)


def test_same_request_after_the_answer_is_a_re_ask():
    run = Conversation()
    run.ask(prompt(user("Q")), text("not JSON"))
    again = run.ask(prompt(user("Q")), text("{}"))
    assert where(again) == (1, 2)
    assert again.extends


def test_same_request_after_a_failure_is_a_re_ask():
    lineage = Lineage()
    lineage.answered(lineage.place(prompt(user("Q"))).lane, Answer(error="overloaded_error"))
    assert where(lineage.place(prompt(user("Q")))) == (1, 2)


def test_equal_requests_in_flight_together_are_parallel_lanes():
    lineage = Lineage()
    first, second = lineage.place(prompt(user("Q"))), lineage.place(prompt(user("Q")))
    assert (where(first), where(second)) == ((1, 1), (2, 1))


def test_parallel_lanes_of_equal_requests_are_continued_by_their_answers():
    lineage = Lineage()
    lineage.place(prompt(user("Q")))
    lineage.place(prompt(user("Q")))
    lineage.answered(2, answer(text("second")))
    lineage.answered(1, answer(text("first")))
    to_first = lineage.place(prompt(user("Q"), assistant(text("first")), user("go on")))
    to_second = lineage.place(prompt(user("Q"), assistant(text("second")), user("go on")))
    assert (where(to_first), where(to_second)) == ((1, 2), (2, 2))


def test_second_run_of_the_same_task_is_a_new_lane():
    run = Conversation()
    for _ in range(2):
        run.ask(prompt(user("Q")), call("a"))
        run.ask(prompt(user("Q"), assistant(call("a")), user(result("r"))), text("done"))
    again = run.lineage.place(
        prompt(user("Q"), assistant(call("a")), user(result("r")), assistant(text("done")), user("?"))
    )
    assert again.turn == 3
    assert len({run.lineage.place(prompt(user("Q"))).lane, 1, 2}) == 3


def test_questions_about_one_document_are_a_lane_each():
    run = Conversation()
    document = "A long document. " * 50
    lanes = [run.ask(prompt(user(document, f"Question {n}?")), text(f"Answer {n}.")).lane for n in range(3)]
    assert lanes == [1, 2, 3]


def test_shared_examples_don_t_join_conversations():
    run = Conversation()
    shots = [user("2+2?"), assistant(text("4"))]
    lanes = [run.ask(prompt(*shots, user(f"{n}+{n}?")), text(str(2 * n))).lane for n in (3, 4, 5)]
    assert lanes == [1, 2, 3]


def test_volatile_tail_is_a_rewrite_where_it_stood():
    """`Tool-call turn 1 of 100`, which the next request replaces."""
    run = Conversation()
    run.ask(prompt(user("Q", "Turn 1 of 100")), call("a"))
    second = run.ask(prompt(user("Q"), assistant(call("a")), user(result("r"), "Turn 2 of 100")))
    assert where(second) == (1, 2)
    assert not second.extends
    assert second.rewritten_from == "messages[1].content[0]"


def test_sliding_window_stays_in_its_lane_d6():
    run = Conversation()
    history = [user("Q")]
    for turn in range(6):
        placed = run.ask(prompt(*history[-5:]), call(f"a{turn}"))
        assert where(placed) == (1, turn + 1)
        history += [assistant(call(f"a{turn}")), user(result(f"r{turn}"))]
    assert placed.rewritten_from == "messages[0].content[0]"


def test_compaction_behind_the_task_is_a_rewrite_d6():
    run = Conversation()
    run.ask(prompt(user("Q")), call("a"))
    run.ask(prompt(user("Q"), assistant(call("a")), user(result("r"))), call("b"))
    compacted = run.ask(prompt(user("Q"), user("Summary of the work so far: a was tried.")))
    assert where(compacted) == (1, 3)
    assert compacted.rewritten_from == "messages[1].content[0]"


def test_thinking_left_out_later_keeps_the_lane():
    run = Conversation()
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    run.ask(prompt(user("Q")), thought, text("A"))
    assert run.ask(prompt(user("Q"), assistant(text("A")), user("Q2"))).extends


def test_previous_id_fills_in_what_the_server_holds():
    run = Conversation()
    first = run.ask(prompt(user("Q"), thread={"type": "create"}), call("a"), id_="msg_1")
    new = prompt(user(result("r")), system=None, tools=(), thread={"type": "continue", "previous_message_id": "msg_1"})
    second = run.ask(new, text("done"), id_="msg_2")
    assert (where(first), where(second)) == ((1, 1), (1, 2))
    assert second.extends
    assert second.whole
    assert [tool.name for tool in second.prompt.tools] == ["search"]
    assert second.prompt.system[0].text == SUPPORT
    assert [message.role for message in second.prompt.messages] == ["user", "assistant", "user"]


def test_unknown_previous_id_is_a_lane_whose_history_is_not_whole():
    run = Conversation()
    run.ask(prompt(user("Q")), text("A"), id_="msg_1")
    stranger = run.ask(prompt(user("go on"), thread={"previous_message_id": "msg_0"}), text("B"), id_="msg_2")
    after = run.ask(prompt(user("and on"), thread={"previous_message_id": "msg_2"}))
    assert (where(stranger), where(after)) == ((2, 1), (2, 2))
    assert not stranger.whole
    assert not after.whole


def test_two_continuations_of_one_answer_are_two_lanes():
    run = Conversation()
    run.ask(prompt(user("Q")), text("A"), id_="msg_1")
    continued = {"previous_message_id": "msg_1"}
    placed = [run.lineage.place(prompt(user(f"branch {n}"), thread=continued)) for n in range(2)]
    assert [where(each) for each in placed] == [(1, 2), (2, 1)]
    assert len(placed[1].prompt.messages) == 3


def test_continuation_after_a_failed_one_is_a_re_ask():
    run = Conversation()
    run.ask(prompt(user("Q")), text("A"), id_="msg_1")
    continued = prompt(user("go on"), thread={"previous_message_id": "msg_1"})
    run.ask(continued)
    assert where(run.ask(continued)) == (1, 3)


def test_system_message_of_a_chat_is_head_not_history():
    """OpenAI's chat keeps the system prompt among the messages; a clock in it makes no new lane."""

    def chat(clock: str, *messages: dict[str, Any]) -> Prompt:
        system = {"role": "system", "content": f"{SUPPORT} It is {clock}."}
        body = json.dumps({"model": "m", "messages": [system, *messages]}).encode()
        return OpenAIChat().prompt(Request("POST", "https://host/v1/chat/completions", body=body))

    called = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    run = Conversation()
    run.ask(chat("12:03", {"role": "user", "content": "Q"}))
    asked = {"role": "assistant", "content": None, "tool_calls": [called]}
    second = run.ask(
        chat(
            "12:04", {"role": "user", "content": "Q"}, asked, {"role": "tool", "tool_call_id": "call_1", "content": "r"}
        )
    )
    assert where(second) == (1, 2)
    assert second.extends


def test_calls_of_a_finished_run_are_placed_by_when_they_were_in_flight():
    """Equal requests: overlapping ones are parallel, later ones and those without times are re-asks."""
    same = prompt(user("Q"))

    def lanes(*times: tuple[int | None, int | None]) -> list[tuple[int, int]]:
        return [where(each) for each in place_all([Exchange(same, answer(text("A")), *time) for time in times])]

    assert lanes((0, 10), (5, 15)) == [(1, 1), (2, 1)]
    assert lanes((0, 10), (10, 15)) == [(1, 1), (1, 2)]
    assert lanes((None, None), (None, None)) == [(1, 1), (1, 2)]


def test_empty_prompts_are_never_taken_for_one_another():
    lineage = Lineage()
    lanes = [lineage.place(Prompt("m")).lane for _ in range(2)]
    assert lanes == [1, 2]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_interleaving_of_conversations_changes_no_turn(order: list[int]):
    """Four conversations in any interleaving: each is one lane, its turns counted from 1."""
    run = Conversation()
    histories = {n: [user(f"Task {n}")] for n in range(4)}
    lanes: dict[int, list[Placement]] = {}
    for n in order:
        placed = run.ask(prompt(*histories[n]), text("Let me see."))
        histories[n] += [assistant(text("Let me see.")), user("go on")]
        lanes.setdefault(n, []).append(placed)
    assert all([each.turn for each in lane] == list(range(1, len(lane) + 1)) for lane in lanes.values())
    assert len({lane[0].lane for lane in lanes.values()}) == len(lanes)
    assert all(each.lane == lane[0].lane for lane in lanes.values() for each in lane)


@pytest.mark.parametrize("rewrites", [False, True])
def test_work_is_linear_in_the_blocks_sent(rewrites):
    """Twice the turns of a growing history hold four times the blocks; comparing in pairs would take eight times."""

    def work(turns: int) -> int:
        calls, history, run = 0, [user("Task")], Conversation()

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        for turn in range(turns):
            asked = prompt(*history, *([user(f"Turn {turn}")] if rewrites else []))
            sys.setprofile(count)
            placed = run.lineage.place(asked)
            sys.setprofile(None)
            run.lineage.answered(placed.lane, answer(call(f"q{turn}")))
            history += [assistant(call(f"q{turn}")), user(result(f"page {turn}"))]
        return calls

    assert work(80) < 5 * work(40)


def test_of_messages_that_nobody_shares_only_the_latest_requests_are_kept():
    """Formats that are read whole give new objects every turn; keeping all would be quadratic in the turns."""
    lineage = Lineage()
    history = [{"role": ("user", "assistant")[at % 2], "content": f"word {at}"} for at in range(41)]
    for count in range(1, 42, 2):
        body = json.dumps({"model": "m", "messages": history[:count]}).encode()
        placement = lineage.place(Anthropic().prompt(Request("POST", "https://x/v1/messages", (), body)))
        lineage.answered(placement.lane, Answer())
    assert (placement.lane, placement.turn) == (1, 21)
    assert len(lineage._walked) == len(history)

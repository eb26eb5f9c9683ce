import pytest

from pytest_agentlatency.testing.script import Asked, Prompter, Reply, ScriptError, ToolUse, by_lane, by_turn, pieces


def asked(turns_before=0, system="", number=1):
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}] * turns_before
    return Asked(number, {}, [*messages, {"role": "user", "content": "go on"}], system)


def test_output_tokens_are_text_thinking_and_calls():
    reply = Reply("12345678", thinking="1234", tool_calls=[ToolUse("search", {"q": "abc"})])
    # text 2, thinking 1, the tool's name 1, its arguments {"q":"abc"} are 11 bytes
    assert reply.output_tokens == 2 + 1 + 1 + 3


def test_a_reply_stops_for_its_tools_unless_it_says_otherwise():
    assert Reply("x").stop == "end_turn"
    assert Reply(tool_calls=[ToolUse("f")]).stop == "tool_use"
    assert Reply("x", stop_reason="refusal").stop == "refusal"


def test_a_text_longer_than_max_tokens_is_cut_and_says_so():
    cut = Reply("abcdefghij").limited(2)
    assert (cut.text, cut.stop) == ("abcdef", "max_tokens")
    assert Reply("abcdefghij").limited(3).stop == "end_turn"


def test_a_sequence_is_given_in_order_of_arrival_and_then_says_it_is_used_up():
    prompter = Prompter([Reply("a"), Reply("b")])
    assert [prompter.reply(asked()).text for _ in range(2)] == ["a", "b"]
    with pytest.raises(ScriptError, match="request 3 finds no reply: the script holds 2"):
        prompter.reply(asked(number=3))


def test_one_reply_answers_everything():
    prompter = Prompter(Reply("same"))
    assert [prompter.reply(asked()).text for _ in range(3)] == ["same"] * 3


def test_a_script_by_turn_doesnt_mind_the_order_or_a_second_run():
    script = by_turn([Reply("one"), Reply("two")])
    assert [script(asked(turns)).text for turns in (1, 0, 0, 1)] == ["two", "one", "one", "two"]
    with pytest.raises(ScriptError, match="turn 3"):
        script(asked(2))


def test_lanes_are_told_apart_by_their_system_prompt():
    script = by_lane({"planner": [Reply("plan"), Reply("done")], "researcher": [Reply("found")]})
    assert script(asked(1, "You are the planner.")).text == "done"
    assert script(asked(0, "You are a researcher.")).text == "found"
    with pytest.raises(ScriptError, match="none of \\['planner', 'researcher'\\]"):
        script(asked(0, "You are somebody."))


def test_the_first_piece_is_one_token_whatever_the_size_of_the_others():
    [(_, _, parts)] = pieces(Reply("x" * 40), tokens_per_event=4)
    assert [part.upto for part in parts] == [1, 5, 9, 10]


def test_pieces_of_several_blocks_count_tokens_over_the_whole_reply():
    cut = pieces(Reply("x" * 8, thinking="y" * 12, tool_calls=[ToolUse("f")]), tokens_per_event=2)
    assert [(block.kind, before, [part.upto for part in parts]) for block, before, parts in cut] == [
        ("thinking", 0, [1, 3]),
        ("text", 3, [5]),
        ("tool", 6, [7]),
    ]

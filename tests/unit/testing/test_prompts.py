from pytest_agentlatency.testing.prompts import MEDIA_TOKENS, asked, chat_blocks, messages_blocks


def sizes(blocks):
    return [block.tokens for block in blocks]


def test_anthropic_blocks_come_as_tools_system_messages():
    tool = {"name": "f", "input_schema": {}}  # {"input_schema":{},"name":"f"}: 30 bytes
    body = {"system": "12345678", "tools": [tool], "messages": [{"role": "user", "content": "1234"}]}
    assert sizes(messages_blocks(body)) == [8, 2, 1]


def test_calls_and_results_count_arguments_name_and_text():
    call = {"type": "tool_use", "id": "t", "name": "search", "input": {"q": "abc"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12345"}]}
    plain = {"type": "tool_result", "tool_use_id": "t", "content": "1234"}
    image = {"type": "image", "source": {"type": "base64", "data": "x" * 9000}}
    body = {"messages": [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result, plain, image]}]}
    assert sizes(messages_blocks(body)) == [1 + 3, 2, 1, MEDIA_TOKENS]


def test_a_string_and_its_text_block_are_the_same_prompt():
    text = {"messages": [{"role": "user", "content": "hello"}]}
    listed = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
    assert messages_blocks(text) == messages_blocks(listed)


def test_moving_a_marker_changes_the_mark_and_not_the_block():
    block = {"type": "text", "text": "hello"}
    [bare] = messages_blocks({"system": [block]})
    [marked] = messages_blocks({"system": [block | {"cache_control": {"type": "ephemeral"}}]})
    assert (bare.key, bare.marked, marked.marked) == (marked.key, False, True)


def test_a_top_level_marker_marks_the_last_block():
    body = {"cache_control": {"type": "ephemeral"}, "system": "a", "messages": [{"role": "user", "content": "b"}]}
    assert [block.marked for block in messages_blocks(body)] == [False, True]


def test_another_role_or_model_is_another_block():
    user, assistant = ({"messages": [{"role": role, "content": "x"}]} for role in ("user", "assistant"))
    keys = {messages_blocks(body)[0].key for body in (user, assistant, user | {"model": "other"})}
    assert len(keys) == 3


def test_chat_blocks_count_parts_and_calls():
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q":"abc"}'}}
    messages = [
        {"role": "system", "content": "12345678"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "1234"},
    ]
    assert sizes(chat_blocks({"messages": messages})) == [2, 1 + 3, 1]


def test_a_script_sees_history_system_and_tools_of_either_format():
    anthropic = asked(1, {"system": [{"type": "text", "text": "Be kind."}], "tools": [{"name": "f"}], "messages": []})
    chat = asked(1, {"messages": [{"role": "system", "content": "Be kind."}], "tools": [{"function": {"name": "f"}}]})
    assert (anthropic.system, anthropic.tools) == (chat.system, chat.tools) == ("Be kind.", ("f",))

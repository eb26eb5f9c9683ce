from pytest_agentlatency.analysis.wirebytes import segments
from tests.support.prompts import assistant, call, result, sent, text, tool, user

HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def of(request):
    return segments(request.prompt, request.body)


def test_pieces_stand_in_the_order_in_which_providers_cache():
    """The SDK sends messages before system and tools."""
    request = sent([user("Hi"), assistant(call(1)), user(result(1, "ok"))], system="Help.", tools=[tool()])
    assert [(part.section, part.path, part.kind) for part in of(request)] == [
        ("tools", "tools[0]", "tool"),
        ("system", "system[0]", "text"),
        ("messages", "messages[0].content[0]", "text"),
        ("messages", "messages[1].content[0]", "tool_use"),
        ("messages", "messages[2].content[0]", "tool_result"),
    ]


def test_key_order_is_kept_as_sent():
    one, other = (
        of(sent([user("Hi"), assistant(call(1, **inputs))])) for inputs in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one[0] == other[0]
    assert one[1].data != other[1].data


def test_a_marker_is_known_but_is_no_part_of_the_bytes():
    plain = of(sent([user(text("Hi"))], tools=[tool()]))
    marked = of(sent([user(text("Hi", **HOUR))], tools=[tool() | HOUR]))
    assert [part.data for part in marked] == [part.data for part in plain]
    assert [(part.marked, part.ttl) for part in marked] == [(True, "1h")] * 2
    assert [(part.marked, part.ttl) for part in plain] == [(False, "")] * 2


def test_a_string_and_one_text_block_are_the_same():
    assert [part.data for part in of(sent([user("Hi")]))] == [part.data for part in of(sent([user(text("Hi"))]))]


def test_who_speaks_is_part_of_the_bytes():
    assert of(sent([user("Hi")]))[0].data != of(sent([assistant(text("Hi"))]))[0].data


def test_without_a_body_the_prompt_alone_is_rendered():
    request = sent([user("Hi"), assistant(call(1, a=1))], tools=[tool()])
    assert len(segments(request.prompt)) == len(of(request))
    assert segments(request.prompt)[0].data == of(request)[0].data

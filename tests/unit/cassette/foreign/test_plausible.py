"""Usage against the text that it is said to count."""

from copy import deepcopy
from typing import Any

import pytest

from pytest_agentlatency.cassette.foreign import Foreign, read
from tests.support import foreign_recordings as made

LONG = "The parcel is in Köln and leaves tomorrow. " * 60


def recorded(*turns: tuple[dict[str, Any], int], answer: dict[str, Any] | None = None) -> Foreign:
    """Requests with the input tokens that their responses report."""
    tree = made.vcrpy_tree()
    first = tree["interactions"][0]
    tree["interactions"] = []
    for request, counted in turns:
        pair = deepcopy(first)
        pair["request"]["body"] = made.text(request)
        usage = {"usage": {"input_tokens": counted, "output_tokens": 5}}
        pair["response"]["body"]["string"] = made.text(made.ANSWER | (answer or {}) | usage)
        tree["interactions"].append(pair)
    return read(made.dumped(tree))


def asked(*texts: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]
    return {**made.QUESTION, "messages": messages, **more}


@pytest.mark.parametrize(
    ("text", "counted"),
    [("a cached document, once 18,135 tokens long", 18_135), (LONG * 10, 120)],
    ids=["text cut down afterwards", "text blown up afterwards"],
)
def test_a_body_edited_after_recording_is_not_retimed(text, counted):
    found = recorded((asked("hello"), 9), (asked(text), counted))

    assert found.not_retimed == {2}
    assert "edited after recording" in str(found.warnings[0])
    assert str(found.warnings[0]).startswith(f"call 2: usage says {counted:,} input tokens")


@pytest.mark.parametrize("counted", [330, 650, 2000])
def test_a_count_that_fits_the_text_is_no_edit(counted):
    assert recorded((asked(LONG), counted)).warnings == ()


def test_a_small_prompts_hidden_parts_are_no_edit():
    """Ten tokens of text, 250 of a hidden tool prompt: twenty times as many, and still nothing was edited."""
    assert recorded((asked("hi"), 250)).warnings == ()


def test_what_cohere_puts_around_a_prompt_is_no_edit():
    """A count of its documentation: 60 tokens are billed, 1,462 were read."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    body = {"model": "command-a-03-2025", "messages": [{"role": "user", "content": "Toronto?"}], "tools": [tool]}
    answer = {"id": "m", "message": {"role": "assistant", "content": []}, "finish_reason": "COMPLETE"}

    def doubted(counted: int) -> bool:
        usage = {"tokens": {"input_tokens": counted, "output_tokens": 5}}
        pair = deepcopy(made.vcrpy_tree()["interactions"][0])
        pair["request"] |= {"uri": "https://api.cohere.com/v2/chat", "body": made.text(body)}
        pair["response"]["body"]["string"] = made.text({**answer, "usage": usage})
        return bool(read(made.dumped(made.vcrpy_tree() | {"interactions": [pair]})).warnings)

    assert (doubted(1_462), doubted(14_620)) == (False, True)


@pytest.mark.parametrize(
    "request_",
    [
        asked("search", tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        asked("search", mcp_servers=[{"url": "x"}]),
        {**made.QUESTION, "messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url"}}]}]},
    ],
    ids=["a tool of the server", "an MCP server", "a document by its address"],
)
def test_text_that_the_request_does_not_show_is_no_edit(request_):
    assert recorded((request_, 19_523)).warnings == ()


def test_what_the_server_did_inside_the_answer_is_no_edit():
    block = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}}

    assert recorded((asked("run"), 4796), answer={"content": [block]}).warnings == ()


def test_thinking_of_earlier_turns_may_be_left_out_of_the_count():
    thought = {"type": "thinking", "thinking": LONG, "signature": "s"}
    request = asked("hi", "", "and?")
    request["messages"][1]["content"] = [thought, {"type": "text", "text": "hello"}]

    assert recorded((request, 40)).warnings == ()


def test_usage_that_falls_while_the_request_grows_is_incremental():
    """Field note C14: some servers count only the newly prefilled tokens."""
    found = recorded((asked(LONG), 660), (asked(LONG, "yes", "more"), 350), (asked(LONG, "yes", "more", "b", "c"), 355))

    assert found.not_retimed == {2}
    assert "usage=incremental" in str(found.warnings[0])


def test_usage_that_falls_when_tools_go_is_not_incremental():
    tool = {"name": "find", "description": "find", "input_schema": {"type": "object"}}

    found = recorded((asked(LONG, tools=[tool]), 1260), (asked(LONG, "yes", "more"), 670))

    assert found.warnings == ()


def test_a_running_total_is_not_taken_for_a_context():
    """Field note C13: each call keeps its own count; nothing is summed over a session."""
    found = recorded((asked(LONG), 600), (asked(LONG, "yes", "more"), 620))

    assert [call.id for call in found.recording.calls] == [1, 2]
    assert found.warnings == ()

"""OpenAI's text completions, by hand after their reference."""

from pytest_agentlatency.wire import registry
from tests.support.wire import data_stream, post, whole

URL = "https://api.openai.com/v1/completions"
USAGE = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}


def test_the_prompt_is_the_users_message():
    request = post(URL, {"model": "gpt-3.5-turbo-instruct", "prompt": "Tell a joke", "max_tokens": 9})
    provider = registry.recognise(request)
    assert provider

    prompt = provider.prompt(request)

    assert provider.name == "openai-completions"
    assert [(each.role, each.blocks[0].text) for each in prompt.messages] == [("user", "Tell a joke")]
    assert prompt.params == {"max_tokens": "9"}


def test_token_ids_have_no_text():
    request = post(URL, {"model": "m", "prompt": [15496, 11]})
    provider = registry.recognise(request)
    assert provider

    assert [block.text for block in provider.prompt(request).blocks] == [""]


def test_the_text_of_a_choice_is_the_answer():
    answer = registry.by_name("openai-completions").answer(
        whole({"id": "cmpl-1", "choices": [{"text": "Why", "index": 0, "finish_reason": "stop"}], "usage": USAGE})
    )

    assert (answer.id, answer.blocks[0].text, answer.usage.context, answer.usage.output) == ("cmpl-1", "Why", 4, 2)


def test_a_stream_has_its_first_token_in_the_first_chunk_with_text():
    pieces = ["", "Why", " did"]
    stream = data_stream(*({"choices": [{"text": each, "index": 0}]} for each in pieces))

    answer = registry.by_name("openai-completions").answer(stream)

    assert (answer.blocks[0].text, answer.marks.first_token, answer.marks.last_token) == ("Why did", 1, 2)


def test_a_chat_completion_is_none_of_these():
    request = post("https://x/v1/chat/completions", {"messages": [], "prompt": ""})

    assert registry.recognise(request).name == "openai"

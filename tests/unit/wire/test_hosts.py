"""Usage as the hosts that speak OpenAI's chat report it: shapes of their documentation, and of public recordings."""

from typing import Any

import pytest

from pytest_agentlatency.wire.openai import OpenAIChat
from tests.support.wire import data_stream, whole

PROVIDER = OpenAIChat()


def usage(prompt: int, completion: int, total: int | None = None, **more: Any) -> dict[str, Any]:
    total = prompt + completion if total is None else total
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def cached(count: int, **more: int) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": count, **more}}


def reasoned(count: int) -> dict[str, Any]:
    return {"completion_tokens_details": {"reasoning_tokens": count}}


REPORTED = {
    "openai": (usage(2006, 300, **cached(1920, audio_tokens=0), **reasoned(250)), (2006, 1920, 0, 300, 250)),
    "azure": (usage(368, 328, **cached(0, audio_tokens=0), **reasoned(0)), (368, 0, 0, 328, 0)),
    "azure's grok: the cached stand outside": (usage(14, 9, 279, **cached(256)), (270, 256, 0, 9, None)),
    "deepseek": (
        usage(368, 19, **cached(256), **reasoned(12), prompt_cache_hit_tokens=256, prompt_cache_miss_tokens=112),
        (368, 256, 0, 19, 12),
    ),
    "deepseek before it had details": (
        usage(100, 5, prompt_cache_hit_tokens=60, prompt_cache_miss_tokens=40),
        (100, 60, 0, 5, None),
    ),
    "groq": (
        usage(4641, 1817, queue_time=0.03, prompt_time=0.01, completion_time=5.5, total_time=5.51, **cached(4608)),
        (4641, 4608, 0, 1817, None),
    ),
    "mistral": (usage(6, 22, **cached(0)), (6, 0, 0, 22, None)),
    "mistral, cached": (usage(1040, 22, **cached(1024)), (1040, 1024, 0, 22, None)),
    "openrouter": (
        usage(10_339, 60, cost=0.002, is_byok=False, **cached(9_000, cache_write_tokens=1_000), **reasoned(0)),
        (10_339, 9_000, 1_000, 60, 0),
    ),
    "together": (usage(2_000, 40, cached_tokens=1_984), (2_000, 1_984, 0, 40, None)),
    "xai": (usage(125, 48, **cached(98, text_tokens=125, image_tokens=0), **reasoned(0)), (125, 98, 0, 48, 0)),
    "xai: reasoning stands outside": (usage(32, 9, 135, **cached(6), **reasoned(94)), (32, 6, 0, 103, 94)),
    "fireworks": (usage(3_000, 12, **cached(2_816)), (3_000, 2_816, 0, 12, None)),
    "cerebras": (usage(700, 30, **cached(640)), (700, 640, 0, 30, None)),
    "moonshot": (usage(900, 20, cached_tokens=768), (900, 768, 0, 20, None)),
    "z.ai": (usage(10_600, 50, **cached(10_530)), (10_600, 10_530, 0, 50, None)),
    "z.ai behind a gateway: the cached stand outside": (usage(702, 50, **cached(7_479)), (8_181, 7_479, 0, 50, None)),
    "perplexity": (usage(20, 400, citation_tokens=5_000, reasoning_tokens=90), (20, 0, 0, 400, 90)),
    "databricks, claude": (
        usage(463, 10, cache_read_input_tokens=400, cache_creation_input_tokens=0),
        (463, 400, 0, 10, None),
    ),
    "vllm": (usage(9, 16, prompt_tokens_details=None), (9, 0, 0, 16, None)),
    "vllm with --enable-prompt-tokens-details": (usage(90, 16, **cached(80)), (90, 80, 0, 16, None)),
    "gpustack": (usage(50, 7, time_to_first_token_ms=31.5, tokens_per_second=80.1), (50, 0, 0, 7, None)),
    "hugging face's router": (usage(507, 14, **cached(0)), (507, 0, 0, 14, None)),
}
"""What is reported; then context, cache read and write, output and thinking."""


def counts(answer):
    found = answer.usage
    return found.context, found.cache_read, found.cache_write, found.output, found.thinking


def completion(**more):
    choice = {"index": 0, "message": {"role": "assistant", "content": "Lost."}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], **more}


def chunk(text=None, *, finish=None, **more):
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


@pytest.mark.parametrize("host", REPORTED)
def test_a_whole_answer_s_usage_is_normalised(host):
    reported, expected = REPORTED[host]
    assert counts(PROVIDER.answer(whole(completion(usage=reported)))) == expected


LAST = {"id": "c", "object": "chat.completion.chunk", "choices": []}
ENDINGS = {
    "a chunk of its own behind the answer (openai, deepseek, vllm)": lambda found: [
        chunk("Lost.", usage=None),
        chunk(finish="stop", usage=None),
        {**LAST, "usage": found},
    ],
    "the chunk with the reason to stop (mistral, z.ai)": lambda found: [
        chunk("Lost."),
        chunk(finish="stop", usage=found),
    ],
    "a chunk of its own with a choice (openrouter)": lambda found: [chunk("Lost.", finish="stop"), chunk(usage=found)],
    "x_groq (groq)": lambda found: [
        chunk("Lost.", x_groq={"id": "req_1"}),
        chunk(finish="stop", x_groq={"id": "req_1", "usage": found}),
    ],
    "the choice (moonshot)": lambda found: [
        chunk("Lost."),
        {**LAST, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": found}]},
    ],
    "every chunk, growing (xai, perplexity, vllm's continuous_usage_stats)": lambda found: [
        chunk("Lo", usage={**found, "completion_tokens": 1, "total_tokens": found["total_tokens"] - 1}),
        chunk("st.", finish="stop", usage=found),
    ],
    "zeros first": lambda found: [
        chunk("Lost.", usage=usage(0, 0)),
        chunk(finish="stop", usage=found),
    ],
}  # fmt: skip


@pytest.mark.parametrize("place", ENDINGS)
@pytest.mark.parametrize("host", REPORTED)
def test_a_stream_s_usage_is_the_whole_answer_s_wherever_it_stands(host, place):
    reported, expected = REPORTED[host]
    answer = PROVIDER.answer(data_stream(*ENDINGS[place](reported)))
    assert (counts(answer), answer.blocks[0].text, answer.finished) == (expected, "Lost.", True)


def test_what_is_reported_is_kept_as_it_was():
    reported, _ = REPORTED["openrouter"]
    assert '"cost":0.002,"is_byok":false' in PROVIDER.answer(whole(completion(usage=reported))).usage.raw


def test_a_host_that_counts_less_for_a_longer_request_is_taken_at_its_word():
    """Routers change what they count from turn to turn; that is told apart where the requests are seen, not here."""
    found = [PROVIDER.answer(whole(completion(usage=usage(count, 9)))).usage.context for count in (629, 108, 59, 142)]
    assert found == [629, 108, 59, 142]

"""Who speaks which format: by method, path and body shape, never by host."""

from importlib.metadata import EntryPoint

import pytest

from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.anthropic import Anthropic
from tests.support.wire import post

MESSAGES = {"model": "m", "messages": []}


@pytest.mark.parametrize(
    ("url", "body", "name"),
    [
        ("https://api.anthropic.com/v1/messages", MESSAGES, "anthropic"),
        ("https://api.anthropic.com/v1/messages?beta=true", MESSAGES, "anthropic"),
        ("https://**REDACTED**/v1/messages", MESSAGES, "anthropic"),
        ("http://127.0.0.1:8080/proxy/anthropic/v1/messages", MESSAGES, "anthropic"),
        ("https://x/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", MESSAGES, "anthropic"),
        ("https://x/v1/projects/p/locations/l/publishers/anthropic/models/c@1:streamRawPredict", MESSAGES, "anthropic"),
        ("https://api.openai.com/v1/chat/completions", MESSAGES, "openai"),
        ("https://openrouter.ai/api/v1/chat/completions", MESSAGES, "openai"),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", MESSAGES, "openai"),
        (
            "https://r.openai.azure.com/openai/deployments/d/completions?api-version=1",
            {"prompt": "x"},
            "openai-completions",
        ),
        ("https://r.openai.azure.com/openai/v1/chat/completions", MESSAGES, "openai"),
        ("https://r.services.ai.azure.com/models/chat/completions?api-version=1", MESSAGES, "openai"),
        ("https://r.services.ai.azure.com/anthropic/v1/messages", MESSAGES, "anthropic"),
        ("https://api.deepseek.com/chat/completions", MESSAGES, "openai"),
        ("https://api.deepseek.com/anthropic/v1/messages", MESSAGES, "anthropic"),
        ("https://api.groq.com/openai/v1/chat/completions", MESSAGES, "openai"),
        ("https://api.groq.com/openai/v1/responses", {"model": "m", "input": "x"}, "openai-responses"),
        ("https://api.fireworks.ai/inference/v1/chat/completions", MESSAGES, "openai"),
        ("https://api.z.ai/api/coding/paas/v4/chat/completions", MESSAGES, "openai"),
        ("https://router.huggingface.co/v1/chat/completions", MESSAGES, "openai"),
        ("https://w.azuredatabricks.net/serving-endpoints/chat/completions", MESSAGES, "openai"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", MESSAGES, "openai"),
        ("https://x/v1/projects/p/locations/l/endpoints/openapi/chat/completions", MESSAGES, "openai"),
        ("https://api.mistral.ai/v1/chat/completions", MESSAGES, "openai"),
        ("https://api.mistral.ai/v1/agents/completions", {"agent_id": "a", "messages": []}, "openai"),
        ("https://api.mistral.ai/v1/fim/completions", {"prompt": "def f(", "suffix": "x"}, "openai-completions"),
        ("https://x/v1/projects/p/locations/l/publishers/mistralai/models/m:streamRawPredict", MESSAGES, "openai"),
        ("https://api.openai.com/v1/responses", {"model": "m", "input": "x"}, "openai-responses"),
        ("https://r.openai.azure.com/openai/responses?api-version=1", {"input": "x"}, "openai-responses"),
        ("https://x/v1beta/models/gemini-3-pro:generateContent", {"contents": []}, "gemini"),
        ("https://x/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", {"contents": []}, "gemini"),
        ("https://x/v1/publishers/google/models/gemini-3-pro:streamGenerateContent", {"contents": []}, "gemini"),
        ("https://x/v1beta/tunedModels/mine:generateContent", {"contents": []}, "gemini"),
        ("https://x/v1/projects/p/locations/l/endpoints/7:generateContent", {"contents": []}, "gemini"),
        ("https://bedrock-runtime.<AWS_REGION>.amazonaws.com/model/a.b%3A0/converse", MESSAGES, "bedrock-converse"),
        ("https://x/model/a.b/converse-stream", MESSAGES, "bedrock-converse"),
        ("https://x/model/a.b/invoke", {"anthropic_version": "bedrock-2023-05-31", "messages": []}, "bedrock-invoke"),
        ("https://x/model/a.b/invoke-with-response-stream", MESSAGES, "bedrock-invoke"),
        ("http://localhost:11434/api/chat", MESSAGES, "ollama"),
        ("http://localhost:11434/api/generate", {"model": "m", "prompt": "x"}, "ollama"),
        ("http://localhost:11434/v1/chat/completions", MESSAGES, "openai"),
        ("https://api.cohere.com/v1/chat", {"model": "m", "message": "x"}, "cohere"),
        ("https://api.cohere.com/v2/chat", MESSAGES, "cohere"),
    ],
)
def test_model_calls_are_recognised_on_any_host(url, body, name):
    provider = registry.recognise(post(url, body))
    assert provider is not None
    assert provider.name == name
    assert registry.by_name(name) is provider


@pytest.mark.parametrize(
    "request_",
    [
        post("https://api.anthropic.com/v1/messages/count_tokens", MESSAGES),
        post("https://api.anthropic.com/v1/messages/batches", {"requests": [{"params": MESSAGES}]}),
        post("https://api.openai.com/v1/embeddings", {"model": "m", "input": "x"}),
        post("https://api.openai.com/v1/threads/t/messages", {"role": "user", "content": "x"}),
        post("https://api.openai.com/v1/responses/resp_1/cancel", {"input": 1}),
        post("https://x/v1beta/models/gemini-3-pro:countTokens", {"contents": []}),
        post("https://x/v1beta/models/gemini-3-pro:batchGenerateContent", {"batch": {"contents": []}}),
        post("https://api.mistral.ai/v1/ocr", {"document": {"messages": []}}),
        post("http://localhost:11434/api/embed", {"model": "m", "input": "prompt"}),
        post("https://shop.example/v1/messages", {"text": "hello"}),
        Request("GET", "https://api.anthropic.com/v1/messages", (), b'{"messages": []}'),
        Request("POST", "https://api.anthropic.com/v1/messages", (), b""),
        Request("POST", "", (), b"x"),
    ],
)
def test_what_asks_no_model_is_nobody_s(request_):
    assert registry.recognise(request_) is None


def test_a_provider_from_an_entry_point_is_asked_first_and_loaded_once(monkeypatch):
    loads = []

    class Own(Anthropic):
        name = "own"

        def __init__(self):
            loads.append(1)

    class Point(EntryPoint):
        def load(self):
            return Own

    point = Point("own", "nowhere:Own", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    registry.providers.cache_clear()
    try:
        found = [registry.recognise(post("https://x/v1/messages", MESSAGES)) for _ in range(3)]
    finally:
        registry.providers.cache_clear()
    assert [each.name for each in found] == ["own"] * 3
    assert loads == [1]


@pytest.mark.parametrize(
    "host", ["api.anthropic.com", "API.OpenAI.com.", "bedrock-runtime.eu-west-1.amazonaws.com", "me.openai.azure.com"]
)
def test_hosts_that_serve_models(host):
    assert registry.is_model_host(host)


@pytest.mark.parametrize("host", ["localhost", "s3.amazonaws.com", "api.openai.com.evil.example", ""])
def test_hosts_that_do_not(host):
    assert not registry.is_model_host(host)

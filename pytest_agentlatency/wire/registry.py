"""Which provider's format a request speaks: an ordered list, cheap to ask, open to others.

Owns the order and the loading of the entry-point group `agentlatency.providers`. Refuses to know any format.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import cast

from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.anthropic import Anthropic
from pytest_agentlatency.wire.bedrock import BedrockConverse
from pytest_agentlatency.wire.bedrock_invoke import BedrockInvoke
from pytest_agentlatency.wire.cohere import Cohere
from pytest_agentlatency.wire.completions import OpenAICompletions
from pytest_agentlatency.wire.gemini import Gemini
from pytest_agentlatency.wire.message import Provider
from pytest_agentlatency.wire.ollama import Ollama
from pytest_agentlatency.wire.openai import OpenAIChat
from pytest_agentlatency.wire.responses import OpenAIResponses

GROUP = "agentlatency.providers"
"""Entry points of this group name a class or function that, called without arguments, gives a `Provider`."""

PROVIDERS: tuple[Provider, ...] = (
    Anthropic(),
    OpenAIChat(),
    OpenAIResponses(),
    OpenAICompletions(),
    Gemini(),
    BedrockConverse(),
    BedrockInvoke(),
    Ollama(),
    Cohere(),
)
"""Asked in this order; a provider from an entry point is asked before all of them."""

KNOWN_MODEL_HOSTS = frozenset({
    "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai", "api.groq.com",
    "api.mistral.ai", "api.x.ai", "api.deepseek.com", "api.cerebras.ai", "api.together.xyz", "api.together.ai",
    "api.fireworks.ai", "api.perplexity.ai", "api.cohere.com", "api.cohere.ai", "api.z.ai", "router.huggingface.co",
    "api-inference.huggingface.co", "api.moonshot.ai", "integrate.api.nvidia.com", "models.inference.ai.azure.com",
})  # fmt: skip
"""Hosts that serve models and nothing else. Used to refuse a connection, never to tell what a request is."""

_MODEL_HOST_ENDINGS = (".openai.azure.com", ".services.ai.azure.com", "-aiplatform.googleapis.com", ".anthropic.com")


def recognise(request: Request) -> Provider | None:
    """Return the provider whose model call this is; None when it is none's.

    Told by method, path and body shape: hosts are redacted in recordings and replaced by gateways.
    """
    if request.method.upper() != "POST" or not request.body:
        return None
    return next((each for each in providers() if each.recognises(request)), None)


def by_name(name: str) -> Provider | None:
    """Return the provider of that name."""
    return next((each for each in providers() if each.name == name), None)


def is_model_host(host: str) -> bool:
    """Whether a host name, without port, is known to serve models."""
    name = host.lower().rstrip(".")
    if name.startswith("bedrock-runtime") and name.endswith((".amazonaws.com", ".api.aws")):
        return True
    return name in KNOWN_MODEL_HOSTS or name.endswith(_MODEL_HOST_ENDINGS)


@cache
def providers() -> tuple[Provider, ...]:
    """Every provider in force; the entry points are loaded at the first call."""
    return (*_installed(), *PROVIDERS)


def _installed() -> Iterable[Provider]:
    for point in entry_points(group=GROUP):
        yield cast("Provider", point.load()())

"""OpenAI's text completions (`POST …/completions`), the form before chat, which inference servers still offer.

Owns that request. The answer is a chat completion's but for where its text stands.
"""

import re

from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.content import params
from pytest_agentlatency.wire.jsonedge import canonical, loads, mapping, sequence, string
from pytest_agentlatency.wire.message import Block, Message, Prompt
from pytest_agentlatency.wire.openai import OpenAIChat
from pytest_agentlatency.wire.paths import path_of

_PATH = re.compile(r"/(v1|fim|deployments/[^/]+)/completions/?$")  # fim: Mistral's, between a prompt and a suffix
_TAKEN = frozenset({"model", "prompt", "stream"})


class OpenAICompletions(OpenAIChat):
    """The `Provider` of OpenAI's text completions."""

    name = "openai-completions"

    def recognises(self, request: Request) -> bool:
        """Whether it is a text completion."""
        return bool(_PATH.search(path_of(request.url))) and b'"prompt"' in request.body

    def prompt(self, request: Request) -> Prompt:
        """The request's prompts, one message of the user each; one that is given as token ids has no text."""
        body = mapping(loads(request.body))
        given = body.get("prompt")
        several = sequence(given)
        prompts = several if several and all(isinstance(each, str) for each in several) else [given]
        return Prompt(
            model=string(body.get("model")),
            messages=tuple(_message(each, f"prompt[{at}]") for at, each in enumerate(prompts) if each is not None),
            params=params(body, _TAKEN),
            streamed=body.get("stream") is True,
        )


def _message(given: object, path: str) -> Message:
    return Message("user", (Block("text", string(given), path, canonical({"text": given, "type": "text"})),), path)

"""What a recording says by its providers' documentation, read in another way than the package reads it.

Input tokens of a call, cached ones included:
- OpenAI chat: `prompt_tokens`, which includes `cached_tokens` (platform.openai.com/docs/guides/prompt-caching).
- OpenAI responses: `input_tokens`, likewise.
- Anthropic: `input_tokens` leaves the cached out: plus `cache_creation_input_tokens` and `cache_read_input_tokens`
  (docs.claude.com/en/docs/build-with-claude/prompt-caching). In a stream, the last value of each field.
- Gemini: `promptTokenCount` includes cached content; results of Google's own tools come as `toolUsePromptTokenCount`
  (ai.google.dev/api/generate-content#UsageMetadata).
- Bedrock Converse: `inputTokens` leaves the cached out: plus `cacheReadInputTokens` and `cacheWriteInputTokens`.
- Bedrock InvokeModel: the model's own usage; else the header `x-amzn-bedrock-input-token-count`.
- Ollama: `prompt_eval_count`.
- Cohere: `tokens.input_tokens`, which is what the model read; `billed_units` leaves out what Cohere adds
  (docs.cohere.com/docs/how-does-cohere-pricing-work).
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MODEL_PATHS = {
    "openai": r"/chat/completions(\?|$)|/v1/completions(\?|$)|/openai/deployments/[^/]+/completions(\?|$)",
    "responses": r"/responses(\?|$)",
    "anthropic": r"/v1/messages(\?|$)|:(stream)?rawPredict(\?|$)",
    "gemini": r":(streamG|g)enerateContent(\?|$)",
    "converse": r"/model/[^/]+/converse(-stream)?(\?|$)",
    "invoke": r"/model/[^/]+/invoke(-with-response-stream)?(\?|$)",
    "ollama": r"/api/(chat|generate)(\?|$)",
    "cohere": r"/v[12]/chat(\?|$)",
    "complete": r"/v1/complete(\?|$)",
}
INPUT = {"openai": "prompt_tokens", "responses": "input_tokens", "ollama": "prompt_eval_count"}
"""The field that is the rule, where one is."""


@dataclass(frozen=True, slots=True)
class Said:
    """A model call as the file has it."""

    family: str
    url: str
    request: bytes
    status: int
    context: int | None
    """Input tokens by the rule; None when the response has no usage."""


def calls(data: bytes) -> list[Said]:
    """The model calls of a vcrpy or langchain file, in order."""
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    tree = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    pairs = (
        [(each["request"], each["response"]) for each in tree["interactions"]]
        if "interactions" in tree
        else list(zip(tree["requests"], tree["responses"], strict=True))
    )
    return [_said(family, *pair) for pair in pairs if (family := _family(*pair))]


def _family(request: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    if request["method"].upper() != "POST":
        return ""
    if request["uri"] == "**REDACTED**":
        return _redacted(_json(_bytes(request["body"])), response)
    return next((name for name, path in MODEL_PATHS.items() if re.search(path, request["uri"])), "")


def _redacted(asked: Any, response: Mapping[str, Any]) -> str:
    """One distribution redacts addresses whole: its requests are OpenAI's and Anthropic's, and embeddings."""
    if not isinstance(asked, dict) or "encoding_format" in asked:
        return ""
    if "input" in asked:
        return "responses"
    anthropic = any(name.lower().startswith("anthropic-") for name in response["headers"])
    return "anthropic" if anthropic else "openai"


def _said(family: str, request: Mapping[str, Any], response: Mapping[str, Any]) -> Said:
    body = _bytes(response["body"]["string"])
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    usage: dict[str, Any] = {}
    for event in _events(body):
        for each in _usages(event):
            usage |= {key: value for key, value in each.items() if value is not None}
    context = _context(family, usage)
    if context is None and family == "invoke":
        context = _header(response["headers"], "x-amzn-bedrock-input-token-count")
    return Said(family, request["uri"], _bytes(request["body"]), response["status"]["code"], context)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _header(headers: Mapping[str, Any], name: str) -> int | None:
    return next((int(values[0]) for key, values in headers.items() if key.lower() == name), None)


def _events(body: bytes) -> Iterator[Any]:
    whole = _json(body)
    if whole is not None:
        yield from whole if isinstance(whole, list) else [whole]
        return
    for line in body.splitlines():
        found = _json(line.removeprefix(b"data:"))
        if isinstance(found, dict):
            yield found
    for packed in re.findall(rb'\{"bytes":"([A-Za-z0-9+/=]+)"', body):
        yield _json(base64.b64decode(packed))
    for metrics in re.findall(rb'\{"metrics".*?\}\}?(?=[^,}])', body):
        yield _json(metrics)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _usages(event: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(event, dict):
        return
    places = [event, *(event.get(key) for key in ("message", "response", "metadata", "delta"))]
    for place in places:
        if isinstance(place, dict):
            yield from (each for key in ("usage", "usageMetadata", "meta") if isinstance(each := place.get(key), dict))
    if "prompt_eval_count" in event:
        yield {"prompt_eval_count": event["prompt_eval_count"]}


def _context(family: str, usage: Mapping[str, Any]) -> int | None:
    match family:
        case "anthropic" | "invoke":
            return _sum(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        case "gemini":
            return _sum(usage, "promptTokenCount", "toolUsePromptTokenCount")
        case "converse":
            return _sum(usage, "inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
        case "cohere":
            return usage.get("tokens", {}).get("input_tokens")
        case _:
            return usage.get(INPUT.get(family, ""))


def _sum(usage: Mapping[str, Any], first: str, *more: str) -> int | None:
    return usage[first] + sum(usage.get(each, 0) for each in more) if first in usage else None

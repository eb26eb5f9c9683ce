"""What servers say of their own time, in body fields and headers, brought to nanoseconds.

Owns where each server writes it and in which unit. Refuses to mix two sources: the most detailed one speaks alone.
"""

from collections.abc import Mapping
from typing import Any

from pytest_agentlatency.model.recording import Response
from pytest_agentlatency.wire.jsonedge import mapping, number
from pytest_agentlatency.wire.message import ServerTimes

_NS, _MS, _S = 1, 1_000_000, 1_000_000_000
_FIELDS = (
    "timings",
    "time_info",
    "metrics",
    "amazon-bedrock-invocationMetrics",
    "prompt_eval_duration",
    "eval_duration",
    "total_duration",
)
Extras = dict[str, Any]
"""Top-level fields of a response that may hold times; of a stream, the last of each."""


def collect(extras: Extras, message: Mapping[str, Any]) -> None:
    """Keep what a message of a response holds of times."""
    extras.update((key, message[key]) for key in _FIELDS if key in message)


def server_times(extras: Extras, usage: Mapping[str, Any], response: Response, *, streamed: bool) -> ServerTimes:
    """Times that a response carries; empty when it carries none.

    Proxy headers (`x-envoy-upstream-service-time`, ...) cover the whole call only when the body didn't stream; else
    they stop at the headers, which is neither prefill nor total.
    """
    body: Mapping[str, Any] = {**extras, "usage": usage}
    for where, unit, names in _BODY:
        found = _from(_at(body, where), unit, names, where)
        if found:
            return found
    headers = {name.lower(): value for name, value in response.headers}
    for unit, names in (*_HEADERS, *(() if streamed else _WHOLE_CALL)):
        found = _from(headers, unit, names, "")
        if found:
            return found
    return ServerTimes()


def _at(body: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for name in filter(None, where.split(".")):
        body = mapping(body.get(name))
    return body


def _from(holder: Mapping[str, Any], unit: int, names: Mapping[str, str], where: str) -> ServerTimes | None:
    times = {
        what: round(value * unit) for what, name in names.items() if (value := number(holder.get(name))) is not None
    }
    if not times:
        return None
    first = names[next(iter(times))]
    return ServerTimes(**times, source=f"{where}.{first}" if where else first)


_SECONDS = {"prefill": "prompt_time", "decode": "completion_time", "queue": "queue_time", "total": "total_time"}
_BODY: tuple[tuple[str, int, Mapping[str, str]], ...] = (
    ("timings", _MS, {"prefill": "prompt_ms", "decode": "predicted_ms"}),  # llama.cpp
    ("usage", _S, _SECONDS),  # Groq
    ("time_info", _S, _SECONDS),  # Cerebras
    # vLLM counts its time to first token from when the request was scheduled: queueing is not in it.
    ("metrics", _MS, {"prefill": "time_to_first_token_ms", "queue": "queue_time_ms"}),
    ("amazon-bedrock-invocationMetrics", _MS, {"ttft": "firstByteLatency", "total": "invocationLatency"}),
    ("metrics", _MS, {"total": "latencyMs"}),  # Bedrock Converse
    ("", _NS, {"prefill": "prompt_eval_duration", "decode": "eval_duration", "total": "total_duration"}),  # Ollama
    ("usage.latency_checkpoint", _MS, {"ttft": "service_ttft_ms"}),  # Azure
    ("usage", _MS, {"ttft": "time_to_first_token_ms"}),  # GPUStack
)
_HEADERS: tuple[tuple[int, Mapping[str, str]], ...] = (
    (_MS, {"ttft": "x-metrics-ttft-ms", "total": "x-metrics-e2e-ms"}),  # xAI
    (_MS, {"total": "x-inference-time", "queue": "x-queue-time"}),  # text-generation-inference
)
_WHOLE_CALL: tuple[tuple[int, Mapping[str, str]], ...] = (
    (_MS, {"total": "openai-processing-ms"}),
    (_MS, {"total": "x-amzn-bedrock-invocation-latency"}),
    (_MS, {"total": "x-envoy-upstream-service-time"}),
    (_MS, {"total": "x-kong-upstream-latency"}),
)

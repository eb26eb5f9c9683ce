"""Memory of the KV cache by tokens, for models whose configuration is published or given.

Owns the arithmetic and the reading of a Hugging Face `config.json`. Refuses to guess: a closed model has no answer. The
formula that is usually quoted, 2 * tokens * layers * d_head * kv_heads, counts elements; bytes are that times the bytes
of an element (2 for bf16). Memory grows as the context does; it is no latency figure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

_ELEMENT_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0, "float8_e5m2": 1.0}
_CLOSED = re.compile(r"(claude|chatgpt|gpt-(?!oss|2|j|neo)|o\d|gemini|grok|nova|command)")
_SAME_SHAPE = re.compile(
    r"(-(instruct|chat|base|it|hf|thinking|v\d+(\.\d+)*|\d{4}|bf16|fp16|fp8|awq|gptq|gguf|turbo))*"
)
_FULL, _WINDOW, _LINEAR = "full_attention", "sliding_attention", "linear_attention"


@dataclass(frozen=True, slots=True)
class KvSpec:
    """What decides a model's KV-cache memory."""

    layer_elements: int
    """Elements one layer keeps for a token: 2 * kv heads * head size; with latent attention, the latent's width."""
    full_layers: int
    """Layers that keep every token."""
    window_layers: int = 0
    """Layers that keep the last `window` tokens."""
    window: int = 0
    constant_elements: int = 0
    """State of linear-attention layers, whatever the length."""
    element_bytes: float = 2.0
    query_width: int = 0
    """Query heads times their size."""
    active_parameters: float | None = None
    """Weights that one token passes; None when not known."""

    @property
    def bytes_per_token(self) -> float:
        """Bytes by which one more token grows the cache of a context longer than any window."""
        return self.element_bytes * self.layer_elements * self.full_layers

    @property
    def attention_tokens(self) -> float | None:
        """Context at which attention costs as much as the weights: parameters / (full layers * query width).

        The prior for N in `prefill.fit`. None without known parameters, or without a layer that attends to everything.
        """
        cost = self.full_layers * self.query_width
        return self.active_parameters / cost if self.active_parameters and cost else None


@dataclass(frozen=True, slots=True)
class NoSpec:
    """Why there is no figure for a model."""

    reason: str


def kv_bytes(spec: KvSpec, tokens: int, block: int | None = None) -> int:
    """Bytes that the cache of one conversation takes at a context of this many tokens, input and output.

    block: the server allocates whole blocks of so many tokens (vLLM: 16).
    """
    kept = -(-tokens // block) * block if block else tokens
    positions = spec.full_layers * kept + spec.window_layers * min(kept, spec.window)
    return round(spec.element_bytes * (spec.layer_elements * positions + spec.constant_elements))


def batch(spec: KvSpec, tokens: int, memory: int, *, weights: int = 0, block: int | None = None) -> int:
    """How many conversations of so many tokens fit into memory (bytes) beside the weights (bytes).

    Activations and fragmentation are not counted: an upper bound. ValueError for tokens below 1.
    """
    if tokens < 1:
        msg = f"tokens={tokens!r} of a conversation; give 1 or more"
        raise ValueError(msg)
    return max(0, memory - weights) // kv_bytes(spec, tokens, block)


def known(model: str) -> KvSpec | NoSpec:
    """Specification of a model by name, as providers and servers write it: `meta-llama/Llama-3.1-8B-Instruct`.

    Only variants of the same shape match; anything else has no figure, and the reason says what to do.
    """
    name = re.sub(r"[:_ ]", "-", model.rsplit("/", 1)[-1].lower())
    if _CLOSED.match(name):
        return NoSpec(f"{model!r} is a closed model: its layers and heads are not published, and are not guessed")
    found = next((spec for key, spec in _published().items() if _is_variant(name, key)), None)
    return found or NoSpec(f"no published configuration of {model!r} is known here: give its config.json")


def _is_variant(name: str, key: str) -> bool:
    return name.startswith(key) and _SAME_SHAPE.fullmatch(name[len(key) :]) is not None


@cache
def _published() -> Mapping[str, KvSpec]:
    data = json.loads(files("pytest_agentlatency.analysis").joinpath("data/kv_models.json").read_text(encoding="utf-8"))
    return {
        name: replace(from_config(entry["config"]), active_parameters=entry["active_parameters"])
        for entry in data["models"]
        for name in entry["names"]
    }


def from_config(config: Mapping[str, Any], *, element_bytes: float | None = None) -> KvSpec:
    """Specification from the content of a Hugging Face `config.json` (its `text_config`, for multimodal models).

    element_bytes: of the cache, where the server was told another type than the weights' (1 for fp8). ValueError,
    naming the field, when the configuration doesn't say enough or has layers of a kind not known here.
    """
    text = config.get("text_config", config)
    size = element_bytes or _element_bytes({**config, **text})
    heads = _number(text, "num_attention_heads", "n_head")
    layers = _layers(text)
    if "kv_lora_rank" in text:
        rope, nope = _number(text, "qk_rope_head_dim"), _number(text, "qk_nope_head_dim")
        latent = _number(text, "kv_lora_rank") + rope
        return KvSpec(latent, len(layers), element_bytes=size, query_width=heads * (nope + rope))
    head_size = text.get("head_dim") or _number(text, "hidden_size", "n_embd") // heads
    kv_heads = 1 if text.get("multi_query") else text.get("num_key_value_heads") or heads
    return KvSpec(
        layer_elements=2 * kv_heads * head_size,
        full_layers=layers.count(_FULL),
        window_layers=layers.count(_WINDOW),
        window=_number(text, "sliding_window") if _WINDOW in layers else 0,
        constant_elements=layers.count(_LINEAR) * _state(text) if _LINEAR in layers else 0,
        element_bytes=size,
        query_width=heads * head_size,
    )


def _number(config: Mapping[str, Any], *names: str) -> int:
    value = next((config[name] for name in names if config.get(name) is not None), None)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        msg = f"{' or '.join(names)} of the model's configuration is {value!r}; it must be a whole number above 0"
        raise ValueError(msg)
    return value


def _element_bytes(config: Mapping[str, Any]) -> float:
    kind = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    if kind not in _ELEMENT_BYTES:
        msg = f"dtype {kind!r} of the model's configuration; known: {', '.join(_ELEMENT_BYTES)}. Give element_bytes"
        raise ValueError(msg)
    return _ELEMENT_BYTES[kind]


def _layers(config: Mapping[str, Any]) -> list[str]:
    """The kind of each layer, however the configuration says it."""
    count = _number(config, "num_hidden_layers", "n_layer")
    if config.get("layer_types"):
        kinds = [str(kind) for kind in config["layer_types"]]
    elif every := config.get("full_attention_interval"):
        kinds = [_LINEAR if number % every else _FULL for number in range(1, count + 1)]
    elif not config.get("sliding_window") or config.get("use_sliding_window") is False:
        kinds = [_FULL] * count
    elif every := config.get("sliding_window_pattern"):
        kinds = [_WINDOW if number % every else _FULL for number in range(1, count + 1)]
    else:
        kinds = [_WINDOW if number >= config.get("max_window_layers", 0) else _FULL for number in range(count)]
    if unknown := set(kinds) - {_FULL, _WINDOW, _LINEAR}:
        msg = f"layer_types {sorted(unknown)!r} of the model's configuration; known: {_FULL}, {_WINDOW}, {_LINEAR}"
        raise ValueError(msg)
    return kinds


def _state(config: Mapping[str, Any]) -> int:
    """Elements that one gated-delta layer keeps: its matrix state and the inputs of its short convolution."""
    keys = _number(config, "linear_num_key_heads") * _number(config, "linear_key_head_dim")
    values = _number(config, "linear_num_value_heads") * _number(config, "linear_value_head_dim")
    matrix = values * _number(config, "linear_key_head_dim")
    return matrix + (2 * keys + values) * _number(config, "linear_conv_kernel_dim")

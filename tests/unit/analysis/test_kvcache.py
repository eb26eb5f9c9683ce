"""KV-cache memory against the figures that were published, and no figure where nothing is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.kvcache import KvSpec, NoSpec, batch, from_config, known, kv_bytes

GIB = 2**30


def spec_of(model):
    spec = known(model)
    assert isinstance(spec, KvSpec)
    return spec


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt2-xl", 307_200),
        ("Llama-2-7B", 524_288),
        ("Llama-3.1-8B", 131_072),
        ("Llama-3.1-70B", 327_680),
        ("Llama-3.1-405B", 516_096),
        ("Mistral-7B-v0.3", 131_072),
        ("Qwen2.5-7B", 57_344),
        ("Qwen3-30B-A3B", 98_304),
        ("gpt-oss-120b", 36_864),
        ("DeepSeek-V3", 70_272),
        ("Qwen3-Next-80B-A3B", 24_576),
    ],
)
def test_bytes_per_token_are_the_published_ones(model, expected):
    spec = spec_of(model)
    assert spec.bytes_per_token == expected
    assert kv_bytes(spec, 100_001) - kv_bytes(spec, 100_000) == expected


def test_seventy_billion_at_4096_tokens_is_the_worked_example_of_the_ietf_draft():
    assert kv_bytes(spec_of("llama-3.1-70b"), 4096) == 1_342_177_280


def test_seventy_billion_at_128k_tokens_takes_forty_gibibytes():
    assert kv_bytes(spec_of("llama-3.1-70b"), 128 * 1024) == 40 * GIB


def test_without_grouped_heads_it_would_be_eight_times_as_much():
    config = {"num_hidden_layers": 80, "num_attention_heads": 64, "hidden_size": 8192}
    assert from_config(config).bytes_per_token == 8 * spec_of("llama-3.1-70b").bytes_per_token


def test_the_well_known_formula_counts_elements_not_bytes():
    tokens, layers, d_head, kv_heads = 8192, 32, 128, 8
    elements = 2 * tokens * layers * d_head * kv_heads
    assert kv_bytes(spec_of("llama-3.1-8b"), tokens) == 2 * elements


def test_window_layers_stop_growing_at_their_window():
    spec = spec_of("gpt-oss-120b")
    assert (spec.full_layers, spec.window_layers, spec.window) == (18, 18, 128)
    assert kv_bytes(spec, 128) == 2 * kv_bytes(KvSpec(spec.layer_elements, 18), 128)
    assert kv_bytes(spec, 10_000) == 36_864 * 10_000 + 36_864 * 128


def test_linear_attention_layers_cost_the_same_at_any_length():
    spec = spec_of("qwen3-next-80b-a3b")
    assert spec.full_layers == 12
    assert kv_bytes(spec, 0) == 2 * spec.constant_elements == 2 * 36 * (32 * 128 * 128 + (2 * 2048 + 4096) * 4)
    assert kv_bytes(spec, 1000) - kv_bytes(spec, 0) == 24_576_000


def test_latent_attention_has_neither_a_factor_two_nor_heads():
    assert spec_of("deepseek-v3").layer_elements == 512 + 64


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("llama-3.1-8b", 61e3),
        ("llama-3.1-70b", 108e3),
        ("llama-3.1-405b", 197e3),
        ("qwen3-30b-a3b", 17e3),
        ("deepseek-v3", 25e3),
        ("gpt-oss-120b", 69e3),
    ],
)
def test_the_context_at_which_attention_doubles_a_tokens_cost(model, tokens):
    assert spec_of(model).attention_tokens == pytest.approx(tokens, rel=0.02)


def test_a_shape_without_known_parameters_has_no_attention_length():
    assert from_config({"n_layer": 2, "n_head": 2, "n_embd": 8}).attention_tokens is None


@pytest.mark.parametrize(
    "name",
    ["meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B", "llama3.1:8b", "llama-3.1-8b-instruct-fp8"],
)
def test_a_variant_of_the_same_shape_is_known_by_its_usual_names(name):
    assert spec_of(name) == spec_of("llama-3.1-8b")


@pytest.mark.parametrize("name", ["claude-sonnet-5", "gpt-5.6", "o4-mini", "gemini-3-pro", "anthropic/claude-opus-5"])
def test_a_closed_model_has_no_figure_and_says_so(name):
    found = known(name)
    assert isinstance(found, NoSpec)
    assert found.reason.startswith(f"{name!r} is a closed model")


@pytest.mark.parametrize("name", ["deepseek-r1-distill-llama-70b", "llama-3.1-80b", "mistral-7b-v0.1", "my-model", ""])
def test_a_model_of_another_or_unknown_shape_is_not_guessed(name):
    found = known(name)
    assert isinstance(found, NoSpec)
    assert "give its config.json" in found.reason


def test_whole_blocks_are_allocated():
    spec = spec_of("llama-3.1-8b")
    assert kv_bytes(spec, 17, block=16) == kv_bytes(spec, 32)
    assert kv_bytes(spec, 32, block=16) == kv_bytes(spec, 32)


def test_the_batch_that_fits_shrinks_as_the_context_grows():
    spec = spec_of("llama-3.1-8b")
    assert batch(spec, 8192, 80 * GIB, weights=16 * GIB) == 64
    assert batch(spec, 32_768, 80 * GIB, weights=16 * GIB) == 16
    assert batch(spec, 8192, 8 * GIB, weights=16 * GIB) == 0


def test_a_batch_of_empty_conversations_is_refused():
    with pytest.raises(ValueError, match="tokens=0"):
        batch(spec_of("llama-3.1-8b"), 0, GIB)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([None, 16, 128]))
def test_more_tokens_never_take_less_memory(tokens, more, block):
    spec = spec_of("gpt-oss-120b")
    assert kv_bytes(spec, tokens, block) <= kv_bytes(spec, tokens + more, block)


BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512}


@pytest.mark.parametrize(
    ("extra", "full", "window"),
    [
        ({}, 12, 0),
        ({"sliding_window": 4096}, 0, 12),
        ({"sliding_window": 4096, "use_sliding_window": False}, 12, 0),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 8}, 8, 4),
        ({"sliding_window": 1024, "sliding_window_pattern": 6}, 2, 10),
        ({"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 6}, 6, 6),
    ],
)
def test_windows_are_read_however_the_configuration_says_them(extra, full, window):
    spec = from_config(BASE | extra)
    assert (spec.full_layers, spec.window_layers) == (full, window)


def test_the_text_part_of_a_multimodal_configuration_is_read():
    assert from_config({"dtype": "float32", "text_config": BASE}) == from_config(BASE | {"torch_dtype": "float32"})


def test_one_shared_head_is_multi_query():
    assert from_config({"n_layer": 2, "n_head": 8, "n_embd": 512, "multi_query": True}).layer_elements == 2 * 64


def test_a_cache_in_fp8_takes_half():
    assert from_config(BASE, element_bytes=1).bytes_per_token * 2 == from_config(BASE).bytes_per_token


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "num_attention_heads or n_head of the model's configuration is None; it must be a whole number above 0"),
        (BASE | {"num_hidden_layers": "12"}, "num_hidden_layers or n_layer of the model's configuration is '12'"),
        (BASE | {"torch_dtype": "mxfp4"}, "dtype 'mxfp4' of the model's configuration; known: float32"),
        (BASE | {"layer_types": ["mamba"] * 12}, r"layer_types \['mamba'\]"),
    ],
)
def test_a_configuration_that_says_too_little_is_refused_by_field(config, message):
    with pytest.raises(ValueError, match=message):
        from_config(config)

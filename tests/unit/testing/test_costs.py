"""The stated cost model: every figure here is worked out by hand from the docstrings."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.testing.costs import (
    LOOKBACK,
    Cost,
    CostModel,
    InputTokens,
    PrefixCache,
    PromptBlock,
    count_tokens,
    split_tokens,
)


def blocks(*sizes, marked=(), start=0):
    return [
        PromptBlock(f"block {number}", size, marked=number in marked) for number, size in enumerate(sizes, start + 1)
    ]


def test_a_token_is_four_bytes_begun():
    assert [count_tokens(text) for text in ("", "a", "four", "fives", "日本", "🙂🙂🙂")] == [0, 1, 1, 2, 2, 3]


@given(st.text(max_size=60), st.integers(1, 9), st.integers(1, 3))
def test_pieces_of_any_text_join_to_it_and_hold_all_its_tokens(text, tokens, first):
    pieces = split_tokens(text, tokens, first)
    assert "".join(piece for piece, _ in pieces) == text
    assert sum(size for _, size in pieces) == count_tokens(text)
    assert all(piece and 0 < size <= max(tokens, first) for piece, size in pieces)


def test_prefill_is_the_law_of_cached_and_new_tokens():
    costs = CostModel(fixed=5_000_000, prefill=20_000, attention=500, decode=10_000_000)
    cost = costs.cost(InputTokens(uncached=700, read=4000, written=300), output=51)
    # a + b*D + c*(2*P*D + D*D) with D = 1000, P = 4000: 5 ms + 20 ms + 0.5 ns * 9,000,000
    assert cost.prefill == 5_000_000 + 20_000_000 + 4_500_000
    assert cost.decode == 500_000_000


def test_tokens_come_evenly_from_the_end_of_prefill_to_the_end_of_decode():
    cost = Cost(queue=10, prefill=90, decode=400, output=5)
    assert [cost.token(number) for number in range(1, 6)] == [100, 200, 300, 400, 500]
    assert cost.last_token == cost.token(5)


def test_one_token_or_none_has_no_decode():
    assert CostModel(decode=1000).cost(InputTokens(1), 1).decode == 0
    assert CostModel(decode=1000).cost(InputTokens(1), 0).decode == 0
    assert Cost(prefill=7, output=0).token(0) == 7


def test_without_a_cache_everything_is_prefilled_again():
    cache = PrefixCache("off")
    cache.store(blocks(100, 20))
    assert cache.count(blocks(100, 20)) == InputTokens(120)


def test_an_automatic_cache_reads_the_longest_known_prefix():
    cache = PrefixCache("prefix")
    cache.store(blocks(100, 20, 30))
    assert cache.count(blocks(100, 20, 30, 50)) == InputTokens(uncached=50, read=150)
    changed = [*blocks(100, 20), PromptBlock("another", 30)]
    assert cache.count(changed) == InputTokens(uncached=30, read=120)


def test_an_automatic_cache_evaluates_at_least_one_token():
    cache = PrefixCache("prefix")
    cache.store(blocks(100, 20))
    assert cache.count(blocks(100, 20)) == InputTokens(uncached=1, read=119)


def test_an_entry_can_be_read_once_its_answer_has_begun():
    cache = PrefixCache("prefix")
    cache.store(blocks(100), at=50)
    assert cache.count(blocks(100, 5), at=49).read == 0
    assert cache.count(blocks(100, 5), at=50).read == 100


def test_markers_write_up_to_the_last_one_and_read_what_was_written():
    cache = PrefixCache("markers")
    first = blocks(100, 20, 30, marked={2})
    assert cache.count(first) == InputTokens(uncached=30, written=120)
    cache.store(first)
    second = blocks(100, 20, 30, 40, 50, marked={2, 4})
    assert cache.count(second) == InputTokens(uncached=50, read=120, written=70)


def test_a_prompt_without_markers_neither_reads_nor_writes():
    cache = PrefixCache("markers")
    cache.store(blocks(100, 20, marked={2}))
    assert cache.count(blocks(100, 20, 30)) == InputTokens(150)


def test_a_marker_that_moved_on_by_more_than_the_lookback_reads_nothing():
    cache = PrefixCache("markers")
    cache.store(blocks(10, marked={1}))
    near, far = [10] * (1 + LOOKBACK), [10] * (2 + LOOKBACK)
    assert cache.count(blocks(*near, marked={len(near)})).read == 10
    assert cache.count(blocks(*far, marked={len(far)})).read == 0


def test_a_prefix_below_the_minimum_is_not_cached():
    cache = PrefixCache("markers", minimum=1024)
    cache.store(blocks(1000, marked={1}))
    assert cache.count(blocks(1000, 5, marked={1})) == InputTokens(1005)


@given(
    st.sampled_from(["off", "prefix", "markers"]),
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans()), max_size=6), max_size=5),
)
def test_read_written_and_uncached_always_add_up_to_the_prompt(rule, prompts):
    cache = PrefixCache(rule)
    for prompt in prompts:
        made = [PromptBlock(f"{key} {size}", size, marked) for key, size, marked in prompt]
        tokens = cache.count(made)
        assert tokens.context == sum(block.tokens for block in made)
        assert min(tokens.uncached, tokens.read, tokens.written) >= 0
        cache.store(made)


def test_scaling_time_keeps_the_tokens():
    assert Cost(10, 20, 30, 4).scaled(0.5) == Cost(5, 10, 15, 4)

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.tokens import Ruler, Source, items, size
from pytest_agentlatency.model.usage import Usage
from tests.support.prompts import assistant, call, claude, png, result, text, tool, used, user, words

CHARS = counter("chars")


def sizes(*prompts):
    return [size(prompt, CHARS) for prompt in prompts]


def image(media):
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(media).decode()}
    return {"type": "image", "source": source}


@pytest.mark.parametrize(
    "block",
    [
        text("a word or two"),
        {"type": "thinking", "thinking": "a word or two", "signature": "s" * 40},
        call(1, query="parcels"),
        result(1, "three parcels"),
        result(1, [text("three parcels")]),
        image(png(300, 300)),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "three parcels"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="}},
        {"type": "search_result", "title": "Parcels", "source": "https://x.example", "content": [text("three")]},
        {"type": "web_search_tool_result", "tool_use_id": "a", "content": [{"title": "Parcels", "url": "u"}]},
        {"type": "made_up_by_a_later_version", "payload": {"note": "three parcels"}},
    ],
    ids=lambda block: f"{block['type']} {len(str(block))}",
)
def test_every_kind_of_block_counts(block):
    """Field note C9: an estimator that knows only text sees nothing of an agent's context."""
    before, after = sizes(
        claude([user("Hello")]), claude([user("Hello"), assistant(text("Yes?")), user(block, text(""))])
    )
    empty = size(claude([user("Hello"), assistant(text("Yes?")), user(text(""))]), CHARS)
    assert after > empty > before


def test_every_tool_definition_counts():
    """Field note C6: 0, 1 and 50 tools."""
    none, one, fifty = sizes(*(claude([user("Hi")], tools=[tool(f"t{i}") for i in range(n)]) for n in (0, 1, 50)))
    assert none < one < fifty
    assert fifty - none > 40 * (one - none)


def test_the_schema_of_the_answer_counts():
    schema = {"type": "json_schema", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    plain, formed = sizes(claude([user("Hi")]), claude([user("Hi")], output_format=schema))
    assert formed > plain


def test_a_deferred_tool_counts_only_once_it_is_referenced():
    """Field note C7: 40 tools wait; one is found by the tool search."""
    tools = [tool(f"tool_{i}") | {"defer_loading": True} for i in range(40)]
    found = result(1, [{"type": "tool_reference", "tool_name": "tool_7"}])
    waiting = items(claude([user("Hi")], tools=tools))
    referenced = items(claude([user("Hi"), assistant(call(1, "tool_search")), user(found)], tools=tools))
    assert [item.name for item in waiting if item.source is Source.TOOL_DEFINITION] == []
    assert [item.name for item in referenced if item.source is Source.TOOL_DEFINITION] == ["tool_7"]


def test_a_signature_is_never_counted():
    """Field note C10: 4,000 characters of signature beside an empty thinking."""
    blocks = [{"type": "thinking", "thinking": "", "signature": "x" * n} for n in (4, 4_000)]
    short, long = sizes(*(claude([user("Hi"), assistant(block, call(1)), user(result(1, "ok"))]) for block in blocks))
    assert short == long


@pytest.mark.parametrize(
    "wrap", [lambda block: block, lambda block: result(1, [block])], ids=["message", "tool result"]
)
def test_an_image_is_counted_by_its_pixels(wrap):
    """Field note C8: never by its base64, also inside a tool result."""
    small, large = sizes(*(claude([user(wrap(image(png(512, 512, pad))))]) for pad in (5_000, 500_000)))
    assert small == large
    assert 300 < small < 450  # 512 x 512 / 750 = 350


def test_a_document_is_not_counted_by_its_base64():
    """Field note C8: what its pages cost is in the recorded usage, not in its bytes."""
    source = {"type": "base64", "media_type": "application/pdf"}
    few, many = (
        claude([user({"type": "document", "source": {**source, "data": base64.b64encode(b"%PDF-1.7" * n).decode()}})])
        for n in (100, 50_000)
    )
    assert size(few, CHARS) == size(many, CHARS)


def test_base64_of_an_unknown_block_is_not_counted():
    shell = {"type": "later_kind", "note": "three parcels"}
    with_data = shell | {"data": "QUJD" * 5_000, "encrypted_content": "x" * 9_000}
    plain, loaded = sizes(claude([user(shell)]), claude([user(with_data)]))
    assert plain == loaded


THINKING = {"type": "thinking", "thinking": words(200), "signature": "s"}


def test_thinking_of_an_earlier_tool_loop_is_not_billed_again():
    """Recorded: 1,039 tokens in the request, 171 in its usage."""
    loop = [user("Hi"), assistant(THINKING, call(1)), user(result(1, "ok"))]
    inside, after = claude(loop), claude([*loop, assistant(text("Done.")), user("And now?")])
    assert Source.THINKING in {item.source for item in items(inside)}
    assert Source.THINKING not in {item.source for item in items(after)}


def test_a_model_that_keeps_its_thinking_is_billed_for_it():
    history = [user("Hi"), assistant(THINKING, text("Done.")), user("And now?")]
    assert Source.THINKING in {item.source for item in items(claude(history, model="claude-opus-4-5"))}


def test_a_compaction_stands_for_everything_before_it():
    history = [
        user(words(5_000)),
        assistant({"type": "compaction", "content": "We looked for a parcel."}),
        user("Go on"),
    ]
    assert size(claude(history), CHARS) < 100


class TestRuler:
    BEFORE = claude([user(words(2_000))], system=words(500))
    GROWN = claude([user(words(2_000))], system=words(800))

    def test_an_equal_prompt_is_billed_what_was_recorded_exactly(self):
        ruler = Ruler.fit([(3_000, 4_000), (5_000, 6_517)], CHARS, "claude-sonnet-4-5")
        assert ruler.live_context(used(14_030), self.BEFORE, self.BEFORE) == 14_030

    def test_a_change_moves_the_recorded_count_by_the_scaled_difference(self):
        ruler = Ruler(CHARS, ratio=1.25)
        assert ruler.live_context(used(2_600), self.BEFORE, self.GROWN) == 2_600 + 375  # 300 words more

    def test_cached_tokens_are_part_of_the_anchor(self):
        ruler = Ruler(CHARS, ratio=1.0)
        assert ruler.live_context(used(3, read=5_758, write=6_174), self.BEFORE, self.GROWN) == 11_935 + 300

    def test_a_call_without_usage_has_no_anchor(self):
        assert Ruler(CHARS).live_context(Usage(), self.BEFORE, self.GROWN) is None

    @settings(deadline=None)
    @given(st.integers(-50_000, 50_000), st.floats(0.2, 3.0))
    def test_the_sign_of_a_change_is_that_of_the_size(self, change, ratio):
        moved = Ruler(CHARS, ratio=ratio).scaled(change)
        assert (moved > 0) - (moved < 0) == (change > 0) - (change < 0)

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30))
    def test_no_recording_bends_the_ratio_out_of_range(self, pairs):
        ruler = Ruler.fit(pairs, CHARS, "claude-sonnet-4-5")
        assert 0.5 < ruler.ratio < 2.5
        assert 0 < ruler.spread < 0.5

    def test_without_a_recording_the_ratio_is_the_familys_and_says_so(self):
        ruler = Ruler.fit([], CHARS, "claude-sonnet-4-5")
        assert ruler.source == "default"
        assert ruler.ratio == pytest.approx(1.08)

    def test_a_small_prompts_hidden_tokens_do_not_pass_for_its_ratio(self):
        """100 visible tokens billed as 640: the rest is the tool prompt, not a ratio of 6.4."""
        assert Ruler.fit([(100, 640)], CHARS, "claude-sonnet-4-5").ratio < 1.3

    def test_turns_that_differ_enough_teach_the_ratio(self):
        """Field note C4: code-heavy text that costs half as much again is seen from its own turns."""
        pairs = [(count, 700 + round(1.5 * count)) for count in (4_000, 9_000, 15_000, 22_000)]
        ruler = Ruler.fit(pairs, CHARS, "claude-sonnet-4-5")
        assert ruler.ratio == pytest.approx(1.5, rel=0.05)
        assert ruler.source == "4 recorded calls"
        held_out = 700 + 1.5 * 12_000
        assert 700 + 1.5 * 9_000 + ruler.scaled(3_000) == pytest.approx(held_out, rel=0.05)


def test_a_definition_is_counted_as_the_model_reads_it_whatever_the_key_order():
    definition = tool("search", city={"type": "string"}, day={"type": "string"})
    turned = json.loads(json.dumps(definition, sort_keys=True))
    same = sizes(claude([user("Hi")], tools=[definition]), claude([user("Hi")], tools=[turned]))
    assert same[0] == same[1]

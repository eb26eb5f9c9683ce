from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.breaks import Reason
from pytest_agentlatency.analysis.cacherules import rules_for
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.prefix import prefixes
from pytest_agentlatency.analysis.promptcache import Asked, predicted_cache_n, simulate
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.usage import Tokens
from tests.support.prompts import assistant, call, result, sent, text, tool, used, user, words

COUNTER = counter("chars")
SECOND = 1_000_000_000
AUTO = {"cache_control": {"type": "ephemeral"}}
TOOLS = [tool("search", words(400, "find")), tool("refund", words(400, "pay")), tool("track", words(400, "see"))]
SYSTEM = words(800, "help")


def history(turns, size=100, calls=1):
    messages = [user("Where is my parcel?")]
    for turn in range(1, turns):
        numbers = [100 * turn + one for one in range(calls)]
        messages += [
            assistant(*(call(number, query=f"p{number}") for number in numbers)),
            user(*(result(number, words(size, f"item{number}")) for number in numbers)),
        ]
    return messages


def request(messages, *, system=SYSTEM, tools=TOOLS, context=None, cached=True, **params):
    return sent(messages, system=system, tools=tools, context=context, **(AUTO if cached else {}) | params)


def lane(turns=5, **more):
    return [request(history(turn), **more) for turn in range(1, turns + 1)]


def run(requests, rules=None, *, gap=10.0):
    """Simulate requests sent so many seconds apart, each answered before the next."""
    asked = [
        Asked(each, Ns(round(index * gap * SECOND)), Ns(round((index * gap + 1) * SECOND)))
        for index, each in enumerate(requests)
    ]
    return simulate(asked, rules or rules_for("anthropic", "claude-sonnet-4-5"), COUNTER)


EVERY = [rules_for(name, model) for name, model in (
    ("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("openai", "gpt-5.6"), ("vllm", ""), ("llama.cpp", ""),
)]  # fmt: skip


@pytest.mark.parametrize("rules", EVERY, ids=lambda rules: rules.name)
@settings(max_examples=25, deadline=None)
@given(
    contexts=st.lists(st.integers(0, 200_000), min_size=1, max_size=5), gap=st.floats(0, 4_000), edited=st.booleans()
)
def test_read_written_and_uncached_are_the_whole_context(rules, contexts, gap, edited):
    requests = [
        request(history(turn), context=Tokens(context), system=f"{SYSTEM} {turn if edited else ''}")
        for turn, context in enumerate(contexts, 1)
    ]
    for turn, context in zip(run(requests, rules, gap=gap), contexts, strict=True):
        assert turn.predicted.total == context
        assert min(turn.predicted) >= 0


class TestAnthropic:
    def test_an_append_only_lane_reads_the_whole_of_the_turn_before(self):
        turns = run(lane())
        assert turns[0].predicted.read == 0
        for before, after in pairwise(turns):
            assert after.predicted.uncached == 0
            assert after.predicted.read == before.predicted.total
            assert after.reason is None

    @settings(max_examples=10, deadline=None)
    @given(edited=st.integers(0, 3))
    def test_nothing_is_read_past_an_edit(self, edited):
        changed = history(5)
        changed[2 * edited] = user("Another question") if edited == 0 else user(result(100 * edited, "other"))
        (turn,) = run([*lane(4), request(changed)])[4:]
        (shared,) = prefixes([lane(4)[-1], request(changed)], COUNTER)[1:]
        assert turn.predicted.read <= shared.shared
        assert turn.reason is Reason.MESSAGES_CHANGED

    def test_a_clock_in_the_system_prompt_loses_everything_but_marked_tools(self):
        requests = [request(history(turn), system=f"{SYSTEM} It is 12:4{turn}.") for turn in (1, 2, 3)]
        for turn in run(requests)[1:]:
            assert turn.predicted.read == 0
            assert (turn.reason, turn.broken.detail) == (Reason.SYSTEM_CHANGED, "time differs")

    def test_tools_reordered_at_turn_4_lose_everything(self):
        turns = run([*lane(3), request(history(4), tools=TOOLS[::-1])])
        assert [turn.reason for turn in turns] == [None, None, None, Reason.TOOLS_CHANGED]
        assert turns[3].predicted.read == 0

    def test_a_retroactive_trim_is_a_change_of_the_messages(self):
        messages = history(4)
        messages[2] = user(result(100, "cut"))
        turn = run([*lane(3), request(messages)])[3]
        assert (turn.reason, turn.broken.path) == (Reason.MESSAGES_CHANGED, "messages[2].content[0]")

    def test_thinking_toggled_keeps_tools_and_system(self):
        """params_changed: the hierarchy is tools, system, messages."""
        marked = [text(SYSTEM, cache_control={"type": "ephemeral"})]
        thinking = {"type": "enabled", "budget_tokens": 2_000}
        requests = [*lane(3, system=marked), request(history(4), system=marked, thinking=thinking)]
        turn = run(requests)[3]
        assert turn.reason is Reason.PARAMS_CHANGED
        assert 1_500 < turn.predicted.read < run(lane(3, system=marked))[2].predicted.total

    def test_a_gap_of_400_seconds_outlives_the_entry(self):
        """Field note D8: the prefix is stable; it is not the agent's fault."""
        turns = run(lane(3), gap=400)
        assert [turn.reason for turn in turns] == [None, Reason.TTL_EXPIRED, Reason.TTL_EXPIRED]
        assert turns[1].predicted.read == 0
        assert turns[1].broken is None

    @pytest.mark.parametrize(("gap", "read"), [(300, True), (301, False)])
    def test_five_minutes_are_the_limit(self, gap, read):
        assert bool(run(lane(2), gap=gap)[1].predicted.read) is read

    def test_a_hit_refreshes_the_entry(self):
        requests = [request(history(1))] * 4
        assert [bool(turn.predicted.read) for turn in run(requests, gap=250)] == [False, True, True, True]

    def test_an_entry_for_an_hour_outlives_the_gap(self):
        hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        assert run([request(history(n), **hour) for n in (1, 2)], gap=400)[1].predicted.read > 0

    def test_twelve_parallel_calls_a_turn_are_more_blocks_than_are_looked_back(self):
        """24 new blocks a turn: only the marked system prompt is ever found again."""
        marked = [text(SYSTEM, cache_control={"type": "ephemeral"})]
        requests = [request(history(turn, size=5, calls=12), system=marked) for turn in range(1, 5)]
        turns = run(requests)
        assert [turn.reason for turn in turns[2:]] == [Reason.LOOKBACK_EXCEEDED] * 2
        assert turns[2].predicted.read == turns[3].predicted.read > 0

    def test_nine_parallel_calls_are_within_reach(self):
        turns = run([request(history(turn, size=5, calls=9)) for turn in range(1, 5)])
        assert [turn.reason for turn in turns] == [None] * 4

    def test_without_a_breakpoint_nothing_is_cached_and_it_says_so(self):
        for turn in run(lane(3, cached=False)):
            assert turn.predicted == (0, 0, turn.predicted.total)
            assert turn.reason is Reason.NO_BREAKPOINT

    def test_below_the_models_minimum_nothing_is_cached_and_it_says_so(self):
        (turn,) = run([request([user("Hi")], system="Help.", tools=[])])
        assert turn.predicted.written == 0
        assert turn.reason is Reason.BELOW_MINIMUM

    def test_calls_side_by_side_miss_each_others_entry(self):
        """An entry can be read once the response that writes it has begun."""
        asked = [Asked(request(history(1)), Ns(at), Ns(at + 2 * SECOND), lane) for lane, at in ((1, 0), (2, SECOND))]
        asked.append(Asked(request(history(1)), Ns(3 * SECOND), Ns(4 * SECOND), 3))
        turns = simulate(asked, rules_for("anthropic"), COUNTER)
        assert [bool(turn.predicted.read) for turn in turns] == [False, False, True]

    def test_a_fifth_breakpoint_from_the_end_does_not_count(self):
        blocks = [text(words(300, f"part{n}"), cache_control={"type": "ephemeral"}) for n in range(6)]
        first = request([user(*blocks)], cached=False)
        second = request([user(blocks[0], text("New."))], cached=False)
        assert run([first, second])[1].predicted.read == 0

    def test_a_moved_marker_is_no_change(self):
        mark = {"cache_control": {"type": "ephemeral"}}
        first = [user(text("Hi", **mark))]
        second = [user("Hi"), assistant(text("Yes?")), user(text("Go on", **mark))]
        turns = run([request(first, cached=False), request(second, cached=False)])
        assert turns[1].predicted.read == turns[0].predicted.total


class TestPrefixCaches:
    def test_openai_reads_in_steps_of_128_from_1024_on(self):
        rules = rules_for("openai", "gpt-5")
        turns = run(lane(4, cached=False), rules)
        for before, after in pairwise(turns):
            assert after.predicted.read == before.predicted.total // 128 * 128
            assert after.reason is None
        small = run([request(history(n, 5), system="Help.", tools=[]) for n in (1, 2)], rules)
        assert small[1].predicted.read == 0
        assert small[1].reason is Reason.BELOW_MINIMUM

    def test_openai_from_5_6_on_reads_the_exact_breakpoint(self):
        turns = run(lane(3, cached=False), rules_for("openai", "gpt-5.6"))
        assert turns[1].predicted.read == turns[0].predicted.total
        assert turns[1].predicted.uncached == 0

    def test_vllm_reads_whole_blocks_and_evaluates_the_last_token(self):
        rules = rules_for("vllm")
        turns = run([request(history(1), context=Tokens(3_200))] * 2, rules)
        assert turns[1].predicted == (3_184, 0, 16)

    def test_llama_cpp_evaluates_at_least_one_token(self):
        same = [request(history(1), context=Tokens(3_200))] * 2
        assert predicted_cache_n(same, rules_for("llama.cpp"), COUNTER) == (0, 3_199)

    def test_llama_cpp_remembers_only_the_slots_last_request(self):
        contexts = (3_000, 3_100, 3_000)
        one, other = history(1), [user(words(50, "other"))]
        requests = [
            request(messages, context=Tokens(n), system=system)
            for messages, n, system in zip(
                (one, other, one), contexts, ("A " + SYSTEM, "B " + SYSTEM, "A " + SYSTEM), strict=True
            )
        ]
        assert predicted_cache_n(requests, rules_for("llama.cpp"), COUNTER)[2] < 10

    def test_a_forked_history_is_read_up_to_the_fork(self):
        fork = [*history(4)[:5], assistant(call(900)), user(result(900, "forked"))]
        (before, after) = run([lane(4)[-1], request(fork)], rules_for("vllm"))
        (shared,) = prefixes([lane(4)[-1], request(fork)], COUNTER)[1:]
        assert abs(after.predicted.read - shared.shared) <= 32
        assert 0 < after.predicted.read < before.predicted.total

    def test_deepseek_reads_its_own_answer_back(self):
        """In a public trace the cache held the answer as well as the request that it answers."""
        first = request(history(1), model="deepseek-chat")
        second = request([*history(1), assistant(text(words(900, "long"))), user("Go on")], model="deepseek-chat")
        turns = run([first, second], rules_for("anthropic", "deepseek-chat"))
        assert turns[1].predicted.uncached < 140
        assert turns[1].predicted.read > turns[0].predicted.total + 700

    def test_another_model_reads_nothing(self):
        requests = [request(history(1)), request(history(1), model="claude-opus-4-5")]
        for rules in EVERY:
            assert run(requests, rules)[1].predicted.read == 0


class TestRecord:
    def test_the_record_stands_beside_the_prediction_and_wins(self):
        requests = lane(2)
        usages = [used(3, write=2_000), used(5, read=1_000, write=1_100)]
        asked = [Asked(each, usage=usage) for each, usage in zip(requests, usages, strict=True)]
        turn = simulate(asked, rules_for("anthropic"), COUNTER)[1]
        assert turn.recorded == turn.split == (1_000, 1_100, 5)
        assert turn.predicted.read > 1_500

    def test_the_providers_diagnosis_wins(self):
        asked = [Asked(lane(1)[0]), Asked(lane(2)[1], miss_reason="previous_message_not_found")]
        turns = simulate(asked, rules_for("anthropic"), COUNTER)
        assert turns[1].miss_reason == "previous_message_not_found"
        assert turns[0].miss_reason == ""

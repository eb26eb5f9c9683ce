from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis.contributors import contributions
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.tokens import Ruler, Source
from tests.support.prompts import assistant, call, claude, result, tool, used, user, words

RULER = Ruler(counter("chars"), ratio=1.2)
HISTORY = [user("Where is my parcel?"), assistant(call(1)), user(result(1, words(100, "item")))]


def prompt(messages=HISTORY, *, system="Help the customer.", tools=("search", "refund")):
    return claude(messages, system=system, tools=[tool(name) for name in tools])


def told(recorded, live):
    return [(each.kind, each.source, each.path, each.change) for each in contributions(recorded, live, RULER)]


def test_an_equal_prompt_has_no_contributors():
    assert contributions(prompt(), prompt(), RULER) == ()


def test_the_largest_change_comes_first_with_its_path():
    longer = [*HISTORY[:2], user(result(1, words(400, "item")))]
    first, second = told(prompt(), prompt(longer, system="Help the customer. Be quick."))
    assert first == ("changed", Source.TOOL_RESULT, "messages[2].content[0]", 360)
    assert second[:3] == ("changed", Source.SYSTEM, "system[0]")


def test_a_tool_is_known_by_its_name_wherever_it_stands():
    live = prompt(tools=("track", "search", "refund"))
    ((kind, source, path, change),) = told(prompt(), live)
    assert (kind, source, path) == ("added", Source.TOOL_DEFINITION, "tools[0]")
    assert change > 0


def test_tools_reordered_change_no_tokens():
    assert told(prompt(), prompt(tools=("refund", "search"))) == []


def test_two_tools_of_one_name_are_two():
    assert len(told(prompt(tools=("search", "search", "refund")), prompt(tools=("refund",)))) == 2


def test_what_is_gone_is_named_by_where_it_stood():
    (gone,) = told(prompt(), prompt(HISTORY[:2]))
    assert gone[:3] == ("removed", Source.TOOL_RESULT, "messages[2].content[0]")
    assert gone[3] < -100


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=6),
    st.lists(st.integers(0, 300), min_size=1, max_size=6),
    st.floats(0.5, 2.0),
)
def test_the_contributions_add_up_to_the_change(before, after, ratio):
    ruler = Ruler(counter("chars"), ratio=ratio)
    recorded, live = (
        prompt([user(words(size + 1, f"w{at}")) for at, size in enumerate(sizes)]) for sizes in (before, after)
    )
    total = sum(each.change for each in contributions(recorded, live, ruler))
    assert total == ruler.live_context(used(1_000_000), recorded, live) - 1_000_000

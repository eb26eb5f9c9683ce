from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.budgets.analyses import figures
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.figure import Figures
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Judgement, Ruling
from pytest_agentlatency.model.run import Generated, Run
from pytest_agentlatency.wire.message import Block, Message, Prompt, ToolDefinition
from tests.support.plain_runs import run_of, turn, usage

TOOLS = tuple(ToolDefinition(name, f'{{"name":"{name}"}}', f"tools[{at}]") for at, name in enumerate(["search", "map"]))
WORDS = "the parcel left the depot in the morning and has not been seen since then "


def _block(kind: str, text: str, path: str, name: str = "") -> Block:
    return Block(kind, text, path, f"{kind}:{text}", name, "call_1" if name else "")


def _history(rounds: int, system: str = "You help.") -> Prompt:
    """A question, then `rounds` times a search and its result, each longer than the one before."""
    messages = [Message("user", (_block("text", "Where is my parcel?", "messages[0].content[0]"),), "messages[0]")]
    for one in range(rounds):
        call, result = f"messages[{2 * one + 1}]", f"messages[{2 * one + 2}]"
        asked = _block("tool_use", f'{{"q":"{one}"}}', f"{call}.content[0]", "search")
        found = _block("tool_result", f"{one} " + WORDS * (10 + 10 * one), f"{result}.content[0]", "search")
        messages += [Message("assistant", (asked,), call), Message("user", (found,), result)]
    return Prompt("m", TOOLS, (_block("text", system, "system[0]"),), tuple(messages))


def _run(*prompts: Prompt) -> tuple[Run, Figures]:
    called = (Generated("tool_json", None, None, "search"),)
    contexts = [200 + 150 * sum(10 + 10 * i for i in range(len(p.messages) // 2)) // 10 for p in prompts]
    turns = [turn(n, used=usage(context), at=1000 * n, generated=called) for n, context in enumerate(contexts, 1)]
    run = run_of(*turns)
    return run, figures(run, dict(enumerate(prompts, 1)), counter("chars"))


GROWING = _run(*(_history(rounds) for rounds in range(4)))


def verdict(text: str, asked: tuple[Run, Figures] = GROWING) -> Judgement:
    return judge(parse(text), *asked)


def test_tool_results_enter_once_and_stay_in_the_context():
    run, asked = GROWING
    assert asked.results is not None
    assert asked.held is not None
    results = asked.results(run)
    assert [(each.turn, each.tool) for each in results] == [(2, "search"), (3, "search"), (4, "search")]
    held = asked.held(run, run.turn(4), "search").value
    assert held == sum(each.tokens for each in results)
    assert asked.held(run, run.turn(4), "").value == held
    assert asked.held(run, run.turn(4), "map").value == 0


def test_the_largest_result_is_judged_alone():
    assert verdict("tool results under 100 each").ruling is Ruling.BROKEN
    assert verdict("tool results under 20k each").ruling is Ruling.KEPT
    judgement = verdict("tool 'search' results at most 50% of context")
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.point is not None
    assert judgement.point.turn == 4


def test_what_was_sent_before_costs_again():
    run, asked = GROWING
    assert asked.reread is not None
    by_turn = [asked.reread(run, turn).value or 0 for turn in run.turns]
    assert by_turn[0] == 0
    assert by_turn == sorted(by_turn)
    assert asked.reread(run, None).value == sum(by_turn)


def test_a_tool_that_nobody_calls_is_unused():
    judgement = verdict("unused tools at most 0")
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.point is not None
    assert judgement.point.figure.detail == "map"


def test_a_history_that_is_only_appended_to_has_a_stable_prefix():
    assert verdict("prefix stable").ruling is Ruling.KEPT


def test_a_date_in_the_system_prompt_breaks_the_prefix():
    changed = _run(_history(0), _history(1), _history(2, system="You help. Today is Tuesday."))
    judgement = verdict("prefix stable", changed)
    assert judgement.ruling is Ruling.BROKEN
    assert judgement.overrun is not None
    assert judgement.overrun.headline == "1 prefix break, first at turn 3: system_changed"
    assert verdict("prefix stable except turns 3", changed).ruling is Ruling.KEPT


def test_a_run_of_which_some_prompt_is_unknown_is_not_judged_on_the_rest():
    run, _ = GROWING
    asked = (run, figures(run, {1: _history(0)}, counter("chars")))
    assert verdict("prefix stable", asked).ruling is Ruling.NOT_MEASURED
    assert verdict("tool results under 9k each", asked).ruling is Ruling.NOT_MEASURED

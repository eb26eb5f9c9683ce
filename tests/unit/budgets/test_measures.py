import pytest

from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.budgets.figure import Figure, Figures, ToolResult, Unit
from pytest_agentlatency.budgets.subjects import Question, registry
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import ToolRecord
from pytest_agentlatency.model.run import Lane, Run
from tests.support.plain_runs import grown, run_of, turn, usage

SEARCH = [("prefill", 600), ("decode", 200), ("tool", 150, "search"), ("tool", 50, "calc")]


def ask(name: str, run: Run, at: int | None = None, figures: Figures | None = None, **more) -> Figure:
    one = run.turn(at) if at else None
    return registry()[name].measure(Question(run, one, figures=figures or Figures(), **more))


def test_counts_cover_every_lane_but_turns_only_the_main_one():
    main, side = turn(1, SEARCH, tries=3), turn(1, at=5000, lane=2, tries=2)
    run = run_of(main, lanes=(Lane(1, (main,)), Lane(2, (side,))))
    assert ask("turns", run).value == 1
    assert ask("calls", run).value == 2
    assert ask("retries", run).value == 3
    assert ask("retries", run, 1).value == 2


def test_tool_calls_of_all_tools_and_of_one():
    run = run_of(turn(1, SEARCH), tools=(ToolRecord(1, "search", 0, 1), ToolRecord(2, "calc", 0, 1)))
    assert ask("tool calls", run).value == 2
    assert ask("tool calls", run, 1, tool="search").value == 1


def test_tokens_of_a_turn_and_sums():
    run = run_of(turn(1, used=usage(1000, output=30)), turn(2, used=usage(3000, output=50, cached=900)))
    assert ask("context tokens", run, 2).value == 3000
    assert ask("output tokens", run).value == 80
    assert ask("prefill work", run, 2).value == 2100
    assert ask("cached tokens", run).value == 900
    assert ask("cached share", run, 2).value == 0.3
    assert ask("cached share", run).value == 900 / 4000


def test_usage_that_the_provider_left_out_is_missing_and_names_the_turn():
    run = run_of(turn(1), turn(2, used=usage(None, output=None)))
    assert ask("output tokens", run).reason == "turn 2: the provider reported no such count"
    assert ask("cached share", run, 2).value is None


def test_usage_summed_over_hidden_passes_is_no_context():
    run = run_of(turn(1, used=usage(90_000, multi_pass=True)))
    assert ask("context tokens", run, 1).reason == "turn 1: the provider summed several hidden passes"
    assert ask("prefill work", run, 1).value == 90_000


def test_a_sum_is_as_trusted_as_its_weakest_part():
    run = run_of(turn(1), turn(2, used=usage(5, provenance=Provenance.PROJECTED)))
    assert ask("prefill work", run).provenance is Provenance.PROJECTED


def test_largest_step_and_the_step_at_a_turn():
    run = grown(1000, 1500, 4500, 4800)
    assert ask("largest step", run).value == 3000
    assert ask("largest step", run).detail == "turn 2 to 3"
    assert ask("largest step", run, 4).value == 300
    assert ask("largest step", run, 1).reason == "there is no turn before to compare with"


RESULTS = Figures(
    results=lambda _: [ToolResult(2, "search", 900), ToolResult(2, "calc", 10), ToolResult(3, "search", 2500)],
    held=lambda _run, turn, tool: Figure(400 * turn.number * (1 if tool else 2), Unit.TOKENS),
)


def test_tool_results_summed_single_and_by_tool():
    run = grown(1000, 2000, 4000)
    assert ask("tool result tokens", run, figures=RESULTS).value == 3410
    assert ask("tool result tokens", run, 2, figures=RESULTS).value == 910
    assert ask("tool result tokens", run, figures=RESULTS, each=True).value == 2500
    assert ask("tool result tokens", run, figures=RESULTS, tool="calc").value == 10
    assert ask("tool result tokens", run, 1, figures=RESULTS).value == 0
    assert ask("tool result tokens", run, figures=RESULTS).provenance is Provenance.ESTIMATED


def test_share_of_a_tools_results_in_the_context():
    run = grown(1000, 2000)
    share = registry()["tool results"].of_context
    assert share is not None
    assert share(Question(run, run.turn(2), "search", figures=RESULTS)).value == 0.4


@pytest.mark.parametrize("name", ["tool result tokens", "unused tools", "re-read cost"])
def test_a_figure_whose_analysis_is_not_at_hand_is_missing_with_a_reason(name: str):
    assert ask(name, grown(1, 2)).value is None
    assert ask(name, grown(1, 2)).reason


def test_other_analyses_are_asked():
    figures = Figures(
        unused_tools=lambda _: ["map", "mail"],
        reread=lambda _run, turn: Figure(7 if turn else 70, Unit.TOKENS),
    )
    run = grown(8000)
    assert ask("unused tools", run, figures=figures).value == 2
    assert ask("unused tools", run, figures=figures).detail == "map, mail"
    assert ask("re-read cost", run, figures=figures).value == 70
    assert ask("re-read cost", run, 1, figures=figures).value == 7


def test_kv_cache_of_published_given_and_closed_models():
    # Llama 3.1 8B in bf16: 2 * 32 layers * 8 heads * 128 * 2 bytes = 128 KiB a token
    llama = run_of(turn(1, used=usage(8000, output=192), model="meta-llama/Llama-3.1-8B-Instruct"))
    closed = run_of(turn(1, used=usage(8000, output=192), model="claude-sonnet-4"))
    given = Figures(kv_specs={"claude-sonnet-4": KvSpec(layer_elements=10, full_layers=3)})
    assert ask("kv cache", llama, 1).value == 131_072 * 8192
    assert ask("kv cache", llama, 1).provenance is Provenance.ESTIMATED
    assert "closed model" in ask("kv cache", closed, 1).reason
    assert ask("kv cache", closed, 1, figures=given).value == 2 * 10 * 3 * 8192


def test_request_bytes():
    assert ask("request bytes", grown(1, 2)).value == 4

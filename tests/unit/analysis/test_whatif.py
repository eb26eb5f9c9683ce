"""What-if: each lever against a run whose cost law is known, and their order and composition."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from pytest_agentlatency.analysis import assembly, whatif
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import Replayed
from pytest_agentlatency.analysis.fits import Fit
from pytest_agentlatency.analysis.prefill import LatencyModel, Sample, fit
from pytest_agentlatency.analysis.whatif import Start
from pytest_agentlatency.budgets.budget import judge
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.verdict import Ruling
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import table
from pytest_agentlatency.testing import strategies
from pytest_agentlatency.testing.builders import edited, recording, turn, untimed
from tests.support.run_strategies import a_few

MS = 1_000_000


def law(cached: int, new: int) -> float:
    """Milliseconds of prefill."""
    return 200 + 0.1 * new * (1 + (cached + new / 2) / 60_000)


def _model() -> LatencyModel:
    found = fit([Sample(0, size, round(law(0, size) * MS)) for size in (500, 1000, 2000, 4000, 8000, 16_000, 32_000)])
    assert isinstance(found, LatencyModel)
    return found


KNOWN = Fit(_model(), "a test")
UNKNOWN = Fit(None, "nothing is known")


def start(observed, fitted=KNOWN) -> Start:
    readings = assembly.read(observed)
    run = assembly.from_readings(readings, observed)
    return Start(Replayed(run, readings, readings, observed), lambda _: fitted, counter("chars"))


def agent(turns=6, *, cache=True, tools=None, first=2000, step=1500):
    sizes = [first + step * number for number in range(turns)]
    reads = [0, *sizes[:-1]] if cache else [0] * turns
    specs = [
        turn(size, 60, prefill_ms=law(read, size - read), decode_ms=900, cached=read, tool_ms=None if last else 100)
        for size, read, last in zip(sizes, reads, [False] * (turns - 1) + [True], strict=True)
    ]
    return recording(specs, model="local", tools=tools)


def pulled(observed, name: str, fitted=KNOWN):
    begun = start(observed, fitted)
    (lever,) = whatif.by_name([name], whatif.levers(begun))
    return whatif.Outcome(lever, lever.change(begun), begun.told.run)


def test_without_its_cache_an_agent_costs_what_the_law_says():
    cached, cold = start(agent()).told.run, start(agent(cache=False)).told.run
    found = pulled(agent(), "no prefix cache")
    truth = cached.duration - cold.duration
    assert found.saving[1] <= truth <= found.saving[2]
    assert found.saving[0] == pytest.approx(truth, rel=0.1)


def test_a_perfect_cache_for_an_agent_without_one_saves_what_the_law_says():
    cached, cold = start(agent()).told.run, start(agent(cache=False)).told.run
    found = pulled(agent(cache=False), "perfect prefix cache")
    assert found.saving[0] == pytest.approx(cold.duration - cached.duration, rel=0.1)
    assert found.saving[1] <= cold.duration - cached.duration <= found.saving[2]
    assert [each.call.usage.cache_read for each in found.run.turns] == [0, 2000, 3500, 5000, 6500, 8000]


def test_half_a_context_is_half_of_every_turn():
    found = pulled(agent(cache=False), "context halved")
    assert [each.call.usage.context for each in found.run.turns] == [1000, 1750, 2500, 3250, 4000, 4750]
    assert found.saving[0] > 0


def test_decode_twice_as_fast_takes_half_of_every_decode_and_nothing_else():
    observed = agent()
    found = pulled(observed, "decode twice as fast")
    assert found.saving == (6 * 450 * MS, 6 * 450 * MS, 6 * 450 * MS)
    before = start(observed).told.run
    assert found.run.time(Phase.PREFILL) == before.time(Phase.PREFILL)
    assert found.run.time(Phase.TOOL) == before.time(Phase.TOOL)


def test_a_faster_decode_leaves_calls_that_can_not_be_split_as_they_are():
    observed = recording([turn(1000, streamed=False), turn(2000)], model="local")
    found = whatif.decode(2)(start(observed)).run
    assert found.turn(1).duration == start(observed).told.run.turn(1).duration
    assert [str(each.provenance) for each in found.turns] == ["measured", "projected"]


def test_speculative_decoding_has_an_interval():
    saved, low, high = pulled(agent(), "speculative decoding").saving
    assert low < saved < high


def test_dropping_tools_on_the_last_turn_breaks_the_cached_prefix_and_costs():
    found = pulled(agent(), "no tools on the last turn")
    assert found.saving[2] < 0
    assert any(note.startswith("breaks the cached prefix at turn 6: ") for note in found.notes)


def test_dropping_tools_on_the_last_turn_is_harmless_without_a_cache():
    found = pulled(agent(cache=False), "no tools on the last turn")
    assert found.saving[0] >= 0
    assert not found.notes


def test_unused_tools_are_named_and_used_ones_stay():
    found = pulled(agent(tools=["search", "other"]), "unused tools dropped")
    assert found.notes == ("never called: other",)
    assert found.work_saved > 0
    assert found.run.turns[-1].call.usage.cache_read > 0


def test_an_agent_that_uses_every_tool_has_no_such_lever():
    names = [lever.name for lever in whatif.levers(start(agent(tools=["search"])))]
    assert "unused tools dropped" not in names


def test_a_summary_shrinks_later_turns_and_breaks_the_prefix_once():
    found = pulled(agent(8), "history summarised after turn 4")
    before = start(agent(8)).told.run
    for old, new in zip(before.turns, found.run.turns, strict=True):
        same = new.call.usage.context == old.call.usage.context
        assert same is (new.number <= 4)
    reads = [each.call.usage.cache_read for each in found.run.turns]
    assert reads[4] < reads[3]
    assert reads[5] < reads[6] < reads[7]


def test_tool_results_cut_to_a_size_keep_the_prefix():
    found = pulled(agent(), "tool results cut to 200 tokens")
    assert found.work_saved > 3000
    assert not any("breaks" in note for note in found.notes)


def test_json_results_are_cut_to_key_fields():
    bulky = json.dumps([{"id": number, "note": "scanned " * 80, "empty": None} for number in range(20)])

    def filled(_, body):
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "tool_result":
                    block["content"] = bulky

    observed = edited(agent(cache=False), filled)
    found = pulled(observed, "tool output as key fields")
    assert found.work_saved > 1000


def test_results_that_are_no_json_have_no_key_fields():
    begun = start(agent())
    found = whatif.outcomes(begun, whatif.by_name(["tool output as key fields"], whatif.levers(begun)))
    assert found == []


def test_without_a_model_a_lever_tells_tokens_only():
    found = pulled(agent(cache=False), "context halved", UNKNOWN)
    assert found.saving is None
    assert found.work_saved > 0
    assert found.caution == "nothing is known"


def test_a_recording_without_times_tells_tokens_only():
    found = pulled(untimed(agent(cache=False)), "context halved")
    assert found.saving is None
    assert found.work_saved > 0


def test_levers_come_in_the_order_in_which_they_pay_and_are_ranked_by_what_they_save():
    begun = start(agent(cache=False))
    found = whatif.outcomes(begun, whatif.levers(begun))
    assert [each.lever.rank for each in found] == sorted(each.lever.rank for each in found)
    saved = [each.saving[0] for each in whatif.ranked(found)]
    assert saved == sorted(saved, reverse=True)


def test_changes_compose():
    begun = start(agent(cache=False))
    both = whatif.combined(whatif.halved, whatif.perfect, whatif.decode(2))(begun).run
    alone = whatif.halved(begun).run
    assert both.duration < alone.duration < begun.told.run.duration
    assert both.time(Phase.DECODE) == begun.told.run.time(Phase.DECODE) // 2


def test_a_changed_run_is_judged_and_shown_like_any_other():
    run = whatif.halved(start(agent(cache=False))).run
    assert judge(parse("context tokens under 4,750 at every turn"), run).ruling is Ruling.KEPT
    assert "~" in "\n".join(table.turns(run))


def test_an_unknown_lever_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'smaller'.*'context halved'"):
        whatif.by_name(["smaller"], whatif.levers(start(agent())))


@a_few
@given(strategies.recordings())
def test_every_lever_takes_every_run_and_keeps_its_phases_exact(observed):
    begun = start(observed)
    for found in whatif.outcomes(begun, whatif.levers(begun)):
        for run in (found.run, found.retimed.low, found.retimed.high):
            assert_exact(run)
        if found.saving is not None:
            assert found.saving[1] <= found.saving[0] <= found.saving[2]


def assert_exact(run: Run) -> None:
    assert sum(run.phases.values()) == (run.duration or 0)
    for each in run.all_turns:
        assert sum(each.phases.values()) == (each.duration or 0)
        usage = each.call.usage
        assert min(usage.uncached or 0, usage.cache_read, usage.cache_write) >= 0


def test_the_next_bottleneck_is_named():
    slow = replace(KNOWN, source="x")
    found = pulled(agent(cache=False), "decode twice as fast", slow)
    assert found.bottleneck is Phase.PREFILL

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.analysis.assembly import assemble
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.phase import Phase
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.recording import Pause
from pytest_agentlatency.model.run import Drift, Lane, Run, Verdict
from pytest_agentlatency.report.table import turns
from pytest_agentlatency.testing import builders
from tests.support.plain_runs import MS, grown, laid_out, run_of, turn, usage
from tests.support.run_strategies import a_few, runs


def test_two_turns():
    run = run_of(
        turn(1, [("prefill", 400.4), ("decode", 500.4), ("tool", 99.4)], used=usage(1200)),
        turn(2, [("prefill", 1200), ("decode", 300)], at=1000.2, used=usage(3400, cached=1000)),
    )
    assert turns(run) == [
        "turn  total     prefill    decode     tool   ttft  context  cached  output",
        "--------------------------------------------------------------------------",
        "   1  1,000    401  40%  500  50%  99  10%    400    1,200       0      40",
        "   2  1,500  1,200  80%  300  20%        -  1,200    3,400   1,000      40",
        "--------------------------------------------------------------------------",
        " run  2,500  1,601  64%  800  32%  99   4%           4,600   1,000      80",
        "",
        "times in ms, measured; beside them the share of the row's total",
        "work 2.50 s, overlap 0 ms",
    ]


@a_few
@given(runs(), st.integers(1, 130))
def test_every_run_has_a_table_within_any_width(run: Run, width: int):
    lines = turns(run, width)
    assert lines
    assert all(len(line) <= width for line in lines)


@a_few
@given(runs().filter(lambda run: run.all_turns))
def test_in_every_row_the_phases_visibly_sum_to_the_total(run: Run):
    header, _, *rows = turns(run, 10_000)
    names = re.split(r"\s{2,}", header.strip())
    for row in rows[: len(run.all_turns)] + rows[len(run.all_turns) + 1 : len(run.all_turns) + 2]:
        cells = dict(zip(names, re.split(r" {2,}(?![ <]?\d+%|<1%)", row.strip()), strict=False))
        if cells["total"] == "n/a":
            continue
        shown = [cells[name] for name in map(str, Phase) if name in cells]
        numbers = [int(re.sub(r"[~≈≥,]", "", cell.split()[0])) for cell in shown if cell not in {"n/a", "-"}]
        if "n/a" not in shown or "unsplit" in cells:
            assert sum(numbers) == int(re.sub(r"[~≈,]", "", cells["total"]))


def test_where_the_agent_handed_output_on_it_stands_beside_the_first_token():
    made = turn(1, [("prefill", 400), ("decode", 500)])
    stones = replace(made.call.milestones, delivered=Ns(made.call.milestones.call + 700 * MS))
    run = run_of(replace(made, call=replace(made.call, milestones=stones)), turn(2, at=900))
    header, _, first, second, *_ = turns(run, 200)
    assert re.search(r"  ttft  delivered  context", header)
    assert re.search(r"  400  +700  ", first)
    assert re.search(r"  500  +n/a  ", second)
    assert "delivered" not in "\n".join(turns(grown(1000)))


def test_a_run_of_microseconds_is_shown_in_microseconds():
    assert "times in us, measured; beside them the share of the row's total" in turns(
        laid_out([("prefill", 0.25), ("decode", 1)])
    )


def test_lanes_are_told_apart_when_there_are_several():
    main, side = turn(1), turn(1, at=1000, lane=2)
    lines = turns(run_of(main, side, lanes=(Lane(1, (main,)), Lane(2, (side,), parent=1))))
    assert lines[0].startswith("lane  turn  total")
    assert lines[3].startswith("   2     1  1,000")
    assert lines[5].startswith(" all   run  2,000")
    assert not turns(run_of(main))[0].startswith("lane")


def test_a_replayed_run_shows_how_each_request_stands_to_the_recorded_one():
    drift = Drift(usage(1000).context, usage(3800).context)
    run = run_of(turn(1, verdict=Verdict.IDENTICAL), turn(2, at=1000, verdict=Verdict.DRIFTED, drift=drift))
    text = "\n".join(turns(run))
    assert "identical" in text
    assert "drifted +2,800" in text
    assert "request" not in "\n".join(turns(run_of(turn(1))))


def test_marks_are_explained_where_they_occur_and_only_there():
    projected = turn(1, provenance=Provenance.PROJECTED, used=usage(10, provenance=Provenance.ESTIMATED))
    assert {"~ projected", "≈ estimated"} <= set(turns(run_of(projected)))
    assert not {"~ projected", "≈ estimated"} & set(turns(run_of(turn(1))))


def test_unknown_figures_are_never_zero():
    run = Run(lanes=run_of(turn(1, used=usage(None, output=None))).lanes)
    run = replace(run, lanes=(Lane(1, (replace(run.turns[0], start=None, end=None, segments=()),)),))
    row = turns(run)[2]
    assert row.split() == ["1", "n/a", "500", "n/a", "n/a", "n/a"]
    assert "n/a not measured" in turns(run)


def test_overlapped_work_stands_beside_the_wall():
    run = run_of(turn(1), work={Phase.TOOL: Ns(1500 * MS)})
    assert "work 1.50 s, overlap 500 ms" in turns(run)


def test_a_pause_is_left_out_and_told():
    run = replace(
        grown(1000), end=Ns(5000 * MS), paused=Ns(4000 * MS), pauses=(Pause(Ns(0), Ns(4000 * MS), "approval"),)
    )
    assert "paused 4.00 s (approval), left out" in turns(run)
    assert turns(run)[2].split()[1] == "1,000"


def test_a_short_run_says_how_many_turns_were_recorded():
    assert "short run: 2 of 5 recorded turns were made" in turns(grown(1, 2, recorded_turns=5))
    assert not any("short run" in line for line in turns(grown(1, 2, recorded_turns=2)))


def test_notes_of_the_run_follow():
    assert turns(grown(1, notes=("the client was busy",)))[-1] == "the client was busy"


def test_a_run_without_calls():
    assert turns(Run()) == ["no model calls"]


def test_published_shares_stand_beside_only_when_asked_for():
    line = next(line for line in turns(grown(1), reference=True) if "reference" in line)
    assert line.split() == ["reference", "35-45%", "20-35%", "5-15%"]
    assert "reference" not in "\n".join(turns(grown(1)))


def test_calls_that_are_not_to_be_taken_at_face_value_are_named():
    """Field note B5: a slow reader must not pass for a slow model."""
    quick, slow = builders.turn(1000, 40, tool_ms=1), builders.turn(1100, 40, decode_ms=1000, consumer_ms=900)
    run = assemble(builders.recording([quick, slow]))
    (line,) = [line for line in turns(run) if "client-bound" in line]
    assert line.startswith("turn 2 (client-bound): the agent read more slowly")

from dataclasses import replace

import pytest

from pytest_agentlatency.analysis.breaks import Break, Reason
from pytest_agentlatency.analysis.prefix import Stability
from pytest_agentlatency.budgets.figure import Figures, ToolResult
from pytest_agentlatency.budgets.steps import next_step
from pytest_agentlatency.model.provenance import Provenance
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.model.usage import Tokens
from tests.support.plain_runs import grown, laid_out, run_of, turn, usage

CACHED = run_of(*(turn(t, used=usage(5000, cached=4900 if t > 1 else 0), at=1000 * t) for t in (1, 2, 3)))
FLAT = grown(5000, 5000, 5000)


def test_a_grown_context_is_shrunk_first():
    for subject in ("prefill share", "total", "kv cache", "re-read cost", "context tokens"):
        step = next_step(subject, grown(1000, 3000, 6000), Figures())
        assert step.startswith("shrink the context: it grew from 1,000 to 6,000 tokens over 3 turns")


def test_a_context_that_stays_the_same_is_read_from_a_cache():
    found = Break(2, Reason.TOOLS_CHANGED, "tools[0]", 0, "a", "b", "", Tokens(9), 0)
    breaks = Figures(stability=lambda _run, _except: Stability((found,), ()))
    assert next_step("ttft", FLAT, Figures()) == "reuse the prefix: 0.0% of the input after turn 1 came from a cache"
    assert next_step("ttft", FLAT, breaks).endswith("it first broke at turn 2 (tools_changed)")


def test_with_the_prefix_reused_tool_output_is_trimmed():
    figures = Figures(results=lambda _: [ToolResult(2, "search", 2500), ToolResult(3, "calc", 5)])
    assert next_step("total", CACHED, figures).startswith("trim tool output: 'search' brought ≈2,500 tokens at turn 2")


def test_a_faster_model_comes_last():
    assert next_step("total", CACHED, Figures()) == "a faster model or a shorter answer: decode takes 40% of the run"


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("decode time", "a faster model"),
        ("tpot", "a faster model"),
        ("output tokens", "a faster model"),
        ("tool time", "make tool 'search' faster"),
        ("turns", "make fewer calls: each further one sends 2,000 tokens again"),
        ("overhead share", "start with decode: it takes 60% of the run"),
    ],
)
def test_a_subject_that_the_context_does_not_move_gets_its_own_step(subject: str, words: str):
    run = laid_out(*[[("prefill", 100), ("decode", 300), ("tool", 90, "search"), ("tool", 10, "calc")]] * 2)
    assert next_step(subject, run, Figures()).startswith(words)


def test_retries_point_at_the_call_that_was_retried():
    assert next_step("retries", run_of(turn(1), turn(2, tries=3)), Figures()) == "see why turn 2 was tried 3 times"


def test_unused_tools_are_named():
    assert next_step("unused tools", FLAT, Figures(unused_tools=lambda _: ["map", "mail"])).startswith(
        "don't offer map, mail"
    )


def test_a_run_that_shows_nothing_gets_no_step():
    assert next_step("prefill share", Run(), Figures()) == ""


@pytest.mark.parametrize("subject", ["context tokens", "turns", "cached share", "decode share"])
def test_a_projected_run_gets_steps_with_projected_numbers(subject: str):
    """No number of a changed run looks like one that was measured."""
    measured = grown(1000, 3000, 6000)
    turns = [
        replace(each, call=replace(each.call, usage=replace(each.call.usage, provenance=Provenance.PROJECTED)))
        for each in measured.turns
    ]
    projected = replace(run_of(*turns), provenance=Provenance.PROJECTED)
    assert "~" not in next_step(subject, measured, Figures())
    assert "~" in next_step(subject, projected, Figures())

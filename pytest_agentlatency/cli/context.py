"""`agentlatency context`: the account of a recording's context, lane by lane.

Owns what is asked of the analyses, and the order of the parts. Exit codes: 0, and 2 for a file or an option that can't
be used.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.counters import DEFAULT, Counter
from pytest_agentlatency.analysis.growth import Growth
from pytest_agentlatency.analysis.kvcache import KvSpec, NoSpec, batch, known
from pytest_agentlatency.budgets import analyses, series
from pytest_agentlatency.budgets.figure import Figures, Unit
from pytest_agentlatency.budgets.subjects import SERIES, Question, registry
from pytest_agentlatency.capture import kvconfigs
from pytest_agentlatency.cli.opening import BadInput, Opened, counter, opened, uncollected
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.model.usage import Usage
from pytest_agentlatency.report import context
from pytest_agentlatency.wire.message import Prompt

_NARROWEST = 40
_GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for."""

    counter: Counter
    spec: KvSpec | None
    """Of every model in the recording; None: what is published."""
    memory: float | None
    """Bytes for conversations' caches."""
    width: int


@click.command("context", epilog="Ends with 0, or with 2 when FILE or an option can't be used.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--counter", "name", default=DEFAULT, show_default=True, help="chars, tiktoken, claude, or another's.")
@click.option("--kv-config", type=click.Path(path_type=Path), help="The model's config.json, for its KV cache.")
@click.option("--gpu-memory", type=click.FloatRange(min=0, min_open=True), help="GB for caches: how many fit?")
@click.option("--width", type=click.IntRange(min=_NARROWEST), help="Columns; default: the terminal's, or 80.")
def command(file: Path, name: str, kv_config: Path | None, gpu_memory: float | None, width: int | None) -> None:
    """Print where the tokens of a recording are, turn by turn.

    Who holds them, what they cost again in later turns, where the prefix breaks, by which law the context grows, and
    the KV cache that it takes. FILE is any recording that `agentlatency show` reads.
    """
    with uncollected():
        found = opened(file)
        asked = Asked(
            counter(name),
            None if kv_config is None else _spec(kv_config),
            None if gpu_memory is None else gpu_memory * _GB,
            width or shutil.get_terminal_size((80, 24)).columns,
        )
        click.echo("\n".join(_lines(found, asked)))


def _spec(path: Path) -> KvSpec:
    try:
        return kvconfigs.read(path)
    except ValueError as error:
        msg = f"--kv-config: {error}"
        raise BadInput(msg) from None


def _lines(found: Opened, asked: Asked) -> Iterator[str]:
    recording = found.document.recording
    readings = assembly.read(recording)
    prompts = {reading.call.record.id: reading.prompt for reading in readings}
    run = assembly.from_readings(readings, recording, provenance=found.provenance)
    yield f"{found.path} ({found.container})"
    notes = (context.note(asked.counter.id, recording.facts.counter), *(f"doubt: {each}" for each in found.doubts))
    yield from context.folded(notes, asked.width)
    if not run.lanes:
        yield "no model calls"
    for lane in run.lanes:
        yield from ("", f"lane {lane.id}: {len(lane.turns)} turns")
        yield from _lane(replace(run, lanes=(lane,)), prompts, asked)


def _lane(run: Run, prompts: Mapping[int, Prompt], asked: Asked) -> Iterator[str]:
    account = analyses.account(run.turns, prompts, asked.counter)
    if account is None:
        yield "no turn of this lane could be read"
        return
    specs = {turn.call.model: asked.spec for turn in run.turns if asked.spec is not None}
    figures = analyses.of_account(account, specs)
    kv = [registry()["kv cache"].measure(Question(run, turn, figures=figures)) for turn in run.turns]
    cells = [str(each) for each in kv] if any(each.value is not None for each in kv) else []
    parts = (
        context.turns(account.ledger, account.prefixes, cells, asked.width),
        context.costs(account.ledger, asked.width),
        context.breaks(account.prefixes, asked.width),
        context.growth(_laws(run, figures), [_context(turn.call.usage) for turn in run.turns], asked.width),
        context.folded(_memory(run, figures, asked.memory), asked.width),
    )
    for part in parts:
        yield from ("", *part)


def _context(usage: Usage) -> float | None:
    return None if usage.multi_pass else usage.context


def _laws(run: Run, figures: Figures) -> Mapping[str, Growth]:
    points = {name: series.points(name, run, figures) for name in SERIES}
    return {
        name: series.law(name, found, run, figures)
        for name, found in points.items()
        if any(each.value is not None for each in found)
    }


def _memory(run: Run, figures: Figures, memory: float | None) -> Iterator[str]:
    """The KV cache at the last turn, and how many such conversations fit."""
    turn = run.turns[-1]
    spec = figures.kv_specs.get(turn.call.model) or known(turn.call.model)
    figure = registry()["kv cache"].measure(Question(run, turn, figures=figures))
    if isinstance(spec, NoSpec) or figure.value is None:
        yield f"kv cache: n/a ({figure.reason})"
        return
    per_token = Unit.BYTES.show(spec.bytes_per_token)
    yield f"kv cache: {figure} at turn {turn.number}, {per_token} a token"
    usage = turn.call.usage
    if memory is not None and usage.context is not None:
        fits = batch(spec, max(1, usage.context + (usage.output or 0)), round(memory))
        yield f"{Unit.BYTES.show(memory)} hold {fits} conversations of that size, weights and activations not counted"

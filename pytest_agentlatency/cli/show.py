"""`agentlatency show`: the turns of any recording, as a table or as JSON.

Owns what is printed in which order. Exit codes: 0, and 2 when the file can't be read.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.cli.opening import OURS, Opened, opened, uncollected
from pytest_agentlatency.model import units
from pytest_agentlatency.model.run import Run
from pytest_agentlatency.report import jsonfile, servers, table

_NARROWEST = 40


@click.command("show", epilog="Ends with 0, or with 2 when FILE is no recording that is known.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--width", type=click.IntRange(min=_NARROWEST), help="Columns; default: the terminal's, or 80.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON, for other programs.")
def command(file: Path, width: int | None, *, as_json: bool) -> None:
    """Print the turns and phases of a recording.

    FILE is a cassette of this plugin, or a recording of vcrpy, pytest-recording, go-vcr, Ruby's VCR or a browser (HAR).
    Times that it doesn't hold are n/a, never 0.
    """
    found = opened(file)
    with uncollected():
        readings = assembly.read(found.document.recording)
        run = assembly.from_readings(readings, found.document.recording, provenance=found.provenance)
    run = replace(run, notes=(*run.notes, *found.doubts))
    if as_json:
        click.echo(json.dumps(jsonfile.to_json(run), indent=2, ensure_ascii=False))
        return
    for line in _lines(found, run, readings, width or shutil.get_terminal_size((80, 24)).columns):
        click.echo(line)


def _lines(found: Opened, run: Run, readings: tuple[Reading, ...], width: int) -> Iterator[str]:
    yield _heading(found, run)
    yield ""
    yield from table.turns(run, width)
    told = servers.times(readings, width)
    if told:
        yield ""
        yield from told
    for call, time in found.to_headers.items():
        yield f"call {call}: {units.duration(time)} to the response headers ({found.container})"


def _heading(found: Opened, run: Run) -> str:
    """What the file is, in a line."""
    parts = [
        str(found.path) if found.container == OURS else f"{found.path} ({found.container})",
        run.facts.test,
        f"recorded {run.facts.recorded}" if run.facts.recorded else "",
        ", ".join(dict.fromkeys(call.model for call in run.calls if call.model)),
    ]
    return "; ".join(filter(None, parts))

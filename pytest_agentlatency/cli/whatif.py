"""`agentlatency whatif`: what a recorded run would have taken with less context, a warmer cache, or a faster model.

Owns the options. Exit codes: 0, and 2 when the file can't be read or no lever has the name.
"""

import json
import shutil
from pathlib import Path

import click

from pytest_agentlatency.analysis import assembly, fits, whatif
from pytest_agentlatency.analysis.drift import Replayed
from pytest_agentlatency.capture import calibrations
from pytest_agentlatency.capture.calibrations import CalibrationError
from pytest_agentlatency.cli.opening import BadInput, counter, opened
from pytest_agentlatency.report import whatif as report

_NARROWEST = 60


@click.command("whatif", epilog="Ends with 0, or with 2 when FILE is no recording that is known.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--lever", "names", multiple=True, help="Only this one, by its name; may be given several times.")
@click.option("--after", type=click.IntRange(min=1), help="Summarise the history after this turn; default: half way.")
@click.option("--summary", type=click.IntRange(min=1), default=whatif.SUMMARY_TOKENS, help="Tokens of the summary.")
@click.option(
    "--result", type=click.IntRange(min=1), default=whatif.RESULT_TOKENS, help="Tokens left of a tool result."
)
@click.option("--counter", "counter_name", default="chars", help="Token counter for differences; default: chars.")
@click.option(
    "--calibrations",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("latency-calibrations"),
    help="Folder of calibration files; default: latency-calibrations.",
)
@click.option("--width", type=click.IntRange(min=_NARROWEST), help="Columns; default: the terminal's, or 80.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON, for other programs.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    file: Path,
    names: tuple[str, ...],
    after: int | None,
    summary: int,
    result: int,
    counter_name: str,
    folder: Path,
    width: int | None,
    as_json: bool,
) -> None:
    """Project what would help a recorded run most.

    FILE is a cassette, or a recording of another tool. Four levers in the order in which they pay: shrink the context,
    reuse the prefix, trim tool output, a faster model. Without times, or with too few streamed calls to tell what a
    token costs, only tokens are told; `agentlatency calibrate` measures the rest.
    """
    start = _start(file, counter_name, folder)
    known = whatif.levers(start, after=after or 0, summary=summary, result=result)
    try:
        asked = whatif.by_name(names, known) if names else known
    except ValueError as error:
        raise BadInput(str(error)) from None
    found = whatif.outcomes(start, asked)
    if as_json:
        click.echo(json.dumps(report.to_json(start.told.run, found), indent=2))
        return
    click.echo("\n".join(report.lines(start.told.run, found, width or shutil.get_terminal_size((80, 24)).columns)))


def _start(file: Path, counter_name: str, folder: Path) -> whatif.Start:
    found = opened(file)
    recording = found.document.recording
    readings = assembly.read(recording)
    run = assembly.from_readings(readings, recording, provenance=found.provenance)
    try:
        models = fits.fits(readings, calibrations.load_all([folder]))
    except CalibrationError as error:
        raise BadInput(str(error)) from None
    told = Replayed(run, readings, readings, recording)
    return whatif.Start(told, lambda reading: models[fits.key_of(reading)], counter(counter_name))

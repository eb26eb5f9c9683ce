"""`agentlatency suggest`: budgets for an agent, from what its recordings took.

Owns what is printed in which order. Exit codes: 0, and 2 for a file or a phrase that can't be used.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

import click

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.counters import DEFAULT, Counter
from pytest_agentlatency.budgets import analyses
from pytest_agentlatency.budgets.headroom import Seen, Spread, spread
from pytest_agentlatency.budgets.phrase import Phrase, PhraseError, parse
from pytest_agentlatency.budgets.suggest import suggested
from pytest_agentlatency.cli.opening import BadInput, counter, opened, uncollected
from pytest_agentlatency.report import suggest as report

_NARROWEST = 60


@click.command("suggest", epilog="Ends with 0, or with 2 when a FILE or a PHRASE can't be used.")
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--budget", "budgets", metavar="PHRASE", multiple=True, help="Weigh this budget; may be given several times."
)
@click.option("--counter", "name", default=DEFAULT, show_default=True, help="chars, tiktoken, claude, or another's.")
@click.option("--width", type=click.IntRange(min=_NARROWEST), help="Columns; default: the terminal's, or 100.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON, for other programs.")
def command(files: tuple[Path, ...], budgets: tuple[str, ...], name: str, width: int | None, *, as_json: bool) -> None:
    """Suggest budgets that an agent's recordings keep, beside what they took.

    FILEs are recordings of one agent, the more the better: what a time is worth shows only over several. A budget of
    your own is set beside them: how many of the runs keep it, and with how much room.
    """
    asked, by = [_phrase(text) for text in budgets], counter(name)
    with uncollected():
        seen = [_seen(path, by) for path in files]
    offered, given = suggested(seen), tuple(spread(phrase, seen) for phrase in asked)
    if as_json:
        click.echo(json.dumps(report.to_json(len(seen), offered, given), indent=2, ensure_ascii=False))
        return
    click.echo("\n".join(_lines(seen, offered, given, width or shutil.get_terminal_size((100, 24)).columns)))


def _phrase(text: str) -> Phrase:
    try:
        return parse(text)
    except PhraseError as error:
        raise BadInput(str(error)) from None


def _seen(path: Path, by: Counter) -> Seen:
    found = opened(path)
    readings = assembly.read(found.document.recording)
    run = assembly.from_readings(readings, found.document.recording, provenance=found.provenance)
    if not run.turns:
        msg = f"{path} holds no model call: there is nothing to set a limit by. Leave it out."
        raise BadInput(msg)
    return Seen(run, analyses.figures(run, {each.call.record.id: each.prompt for each in readings}, by))


def _lines(seen: Sequence[Seen], offered: Sequence[Spread], given: Sequence[Spread], width: int) -> Iterator[str]:
    tests = dict.fromkeys(each.run.facts.test or "an unnamed test" for each in seen)
    yield f"{len(seen)} recording{'' if len(seen) == 1 else 's'} of {', '.join(tests)}"
    if len(tests) > 1:
        yield "These are several tests: a limit that holds for all of them is loose for some."
    yield from ("", *report.table(offered, width))
    if given:
        yield from ("", *report.table(given, width), "")
        for warning in (each for one in given for each in report.warnings(one)):
            yield from wrap(f"warning: {warning}", width, subsequent_indent="  ", break_on_hyphens=False)
    yield from ("", *report.block([each.phrase.text for each in offered]))

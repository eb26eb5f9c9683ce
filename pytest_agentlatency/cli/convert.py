"""`agentlatency convert`: a recording as plain vcrpy writes it, or as this plugin does.

Owns where the result goes. Exit codes: 0, and 2 when the file can't be read, must not be written, or is there already.
"""

from dataclasses import replace
from pathlib import Path

import click

from pytest_agentlatency.cassette import convert, document, headers, store, vetting
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import Unwritable
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cli.opening import OURS, BadInput, Opened, opened
from pytest_agentlatency.model.recording import Attempt


@click.command("convert", epilog="Ends with 0, or with 2 when FILE can't be read or OUT must not be written.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(["vcrpy", OURS]), required=True, help="The form to write.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), help="Default: standard output.")
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def command(file: Path, form: str, out: Path | None, *, force: bool) -> None:
    """Write a recording in another form; bodies stay as they are, byte for byte.

    vcrpy: for vcrpy and pytest-recording, request bodies in full; the times stay in the responses, where both ignore
    them. agentlatency: a cassette of this plugin, from such a file or from anybody's recording, whose times are
    unknown then.
    """
    found = opened(file)
    whole = found.document if found.container == OURS else _allowed(found)
    data = convert.to_vcr(whole) if form == "vcrpy" else document.dumps(whole)
    if out is None:
        click.echo(data, nl=False)
        return
    if out.exists() and not force:
        msg = f"{str(out)!r} is there already, and was left as it is: name another file, or give --force to replace it"
        raise BadInput(msg)
    try:
        store.replace(out, data)
    except Unwritable as error:
        raise BadInput(str(error)) from None


def _allowed(found: Opened) -> Document:
    """A foreign recording with the header fields that may be stored. BadInput when a secret is left in it."""
    recording = found.document.recording
    whole = replace(
        found.document, recording=replace(recording, attempts=tuple(map(_without_headers, recording.attempts)))
    )
    refused = vetting.vet(whole, Learned())
    if refused:
        msg = f"{found.path} was not converted: {refused}"
        raise BadInput(msg)
    return whole


def _without_headers(attempt: Attempt) -> Attempt:
    request = replace(attempt.request, headers=headers.keep_request(attempt.request.headers))
    response = attempt.response
    if response is not None:
        response = replace(response, headers=headers.keep_response(response.headers))
    return replace(attempt, request=request, response=response)

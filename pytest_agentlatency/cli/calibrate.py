"""`agentlatency calibrate`: measure what a token of prompt costs at an endpoint, and keep it for re-timing.

Owns the confirmation, the progress and the words. Exit codes: 0, 1 when it was called off, 2 when nothing was measured.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.prefill import LatencyModel
from pytest_agentlatency.capture import calibrations
from pytest_agentlatency.capture.sweep import OUTPUT_TOKENS, Endpoint, Measured, Sweep, SweepError, sizes
from pytest_agentlatency.cli.opening import BadInput
from pytest_agentlatency.model import units

_URLS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


@click.command(
    "calibrate",
    context_settings={"show_default": True},
    epilog="Ends with 0, with 1 when called off, with 2 when the endpoint can't be measured.",
)
@click.option("--model", required=True, help="As requests name it.")
@click.option("--api", type=click.Choice(sorted(_URLS)), default="anthropic", help="The endpoint's format.")
@click.option("--url", help="Base URL as the SDK takes it; default: the provider's.")
@click.option("--key-env", help="Environment variable that holds the key; default: the SDK's.")
@click.option("--tier", default="", help="Service tier to ask for.")
@click.option("--calls", type=click.IntRange(3, 200), default=20, help="At most; it stops when it knows enough.")
@click.option("--least", type=click.IntRange(min=100), default=2_000, help="Tokens of the smallest prompt.")
@click.option("--most", type=click.IntRange(min=200), default=100_000, help="Tokens of the largest prompt.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("latency-calibrations"), help="Folder.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    model: str,
    api: str,
    url: str | None,
    key_env: str | None,
    tier: str,
    calls: int,
    least: int,
    most: int,
    output: Path,
    yes: bool,
) -> None:
    """Send prompts of many sizes, each one new to any cache, and store how long the first token took.

    The file lets a replay project the milliseconds of a changed prompt where a recording's own calls can't tell what a
    token costs; an agent's turns on a hosted model hardly ever can.
    """
    if most <= least:
        msg = f"--most is {most}: it must be above --least, which is {least}"
        raise BadInput(msg)
    key = os.environ.get(key_env or _KEYS[api], "")
    endpoint = Endpoint(url or _URLS[api], model, api, key, tier)
    try:
        with Sweep(endpoint, sizes(calls, least, most)) as sweep:
            click.echo(
                f"{endpoint.shown}, model {model!r}: up to {calls} calls, about {sweep.tokens:,} input tokens in all "
                f"({least:,} to {most:,} each), {OUTPUT_TOKENS} output tokens each. Nothing is read from a cache."
            )
            if not yes:
                click.confirm("Send them?", abort=True)
            latency = _watched(sweep)
    except SweepError as error:
        raise BadInput(str(error)) from None
    path = calibrations.save(output, _calibration(sweep, endpoint, latency))
    click.echo("\n".join([*dict.fromkeys(sweep.notes), *_told(latency), f"written to {path}"]))


def _watched(sweep: Sweep) -> LatencyModel:
    """Run the sweep behind a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("calls"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("", total=len(sweep.asked))

        def seen(measured: Measured) -> None:
            progress.update(task, completed=measured.number, description=_line(measured))

        return sweep.run(seen)


def _line(measured: Measured) -> str:
    if measured.sample is None:
        return measured.note
    size = measured.sample.cached + measured.sample.uncached
    return f"{size:,} tokens: {units.duration(measured.sample.ttft_ns)}"


def _calibration(sweep: Sweep, endpoint: Endpoint, latency: LatencyModel) -> Calibration:
    provider = sweep.key.provider if sweep.key else endpoint.api
    tier = sweep.key.tier if sweep.key else endpoint.tier
    return Calibration(provider, endpoint.model, tier, f"{datetime.now(UTC):%Y-%m-%d}", latency)


def _told(latency: LatencyModel) -> list[str]:
    low, high = latency.token_interval
    fixed = f"{units.duration(latency.fixed_ns)} before anything"
    slope = f"{units.duration(1000 * latency.token_ns)} per 1,000 tokens"
    ends = f"{units.duration(1000 * low)} to {units.duration(1000 * high)}"
    law = f"{latency.samples} calls: {fixed}, {slope} ({ends}), twice that at {latency.attention_tokens:,.0f} tokens"
    if latency.gates:
        return [law, "good enough: projected times may fail a test"]
    return [
        law,
        f"known to a factor of {latency.width:.1f}, 1.6 is needed to fail a test: use more --calls, or more --most",
    ]

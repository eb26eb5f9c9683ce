"""The `agentlatency` command. Each subcommand is a module here, imported when it is asked for."""

import importlib
from collections.abc import Sequence

import click

COMMANDS = {
    "show": "the turns and phases of a recording",
    "context": "where a recording's tokens are, turn by turn",
    "convert": "a cassette as plain vcrpy writes it, and back",
    "suggest": "budgets that recordings of an agent keep, beside what they took",
    "whatif": "what would make a recorded run faster, and by how much",
    "calibrate": "measure what a token costs at an endpoint, for re-timing",
    "demo": "record, replay and break a budget, on a simulated model",
}
"""Name -> what it does. The module has the same name, and in it a click command `command`."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> Sequence[str]:  # type: ignore[override]  # a sequence is enough
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-agentlatency")
def main() -> None:
    """Latency of LLM agents: what a recording says, and what would help."""

"""`agentlatency demo`: the whole story in a minute, with real tools and a simulated model.

Owns the order of the acts. What runs is an ordinary agent and an ordinary test, copied to a folder of the user's.
"""

import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import click

BEFORE = "    return [match.title for match in matches]\n"
AFTER = "    return [asdict(match) for match in matches]\n"
_FILES = ("support_agent.py", "test_support_agent.py", "conftest.py", "pytest.ini")


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Put the files here and leave them; default: a temporary folder.",
)
def command(keep: Path | None) -> None:
    """Record an agent, replay it offline, change its code, and see its budget break."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _play(keep)
        return
    with tempfile.TemporaryDirectory(prefix="agentlatency-demo-") as folder:
        _play(Path(folder))


def _play(folder: Path) -> None:
    with as_file(files("pytest_agentlatency") / "demo") as source:
        for name in _FILES:
            shutil.copyfile(source / name, folder / name)
    _act("1. record: the agent talks to the model, the cassette is written when the test passes")
    _pytest(folder, "--latency-mode=record", "-rP")
    _act("2. replay: offline, no key, no waiting, the same figures")
    _pytest(folder)
    agent = folder / "support_agent.py"
    before = agent.read_text(encoding="utf-8")
    agent.write_text(before.replace(BEFORE, AFTER), encoding="utf-8")
    _act("3. a change of the agent's code: its search tool now returns whole records")
    diff = difflib.unified_diff(before.splitlines(), agent.read_text(encoding="utf-8").splitlines(), n=0, lineterm="")
    click.echo("\n".join(list(diff)[3:]))
    _act("4. replay again: nothing was re-recorded, and the test fails")
    _pytest(folder, fails=True)


def _act(title: str) -> None:
    click.echo(f"\n--- {title}\n")


def _pytest(folder: Path, *options: str, fails: bool = False) -> None:
    """Run the demo's test in a process of its own, and insist that it ends as the story says."""
    line = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", *options]
    click.echo(f"$ pytest {' '.join(options)}".rstrip())
    # The demo makes no call that costs anything, and must look the same under CI.
    environment = {key: value for key, value in os.environ.items() if key not in {"CI", "PYTEST_ADDOPTS"}}
    environment |= {"COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(  # noqa: S603  # this interpreter, our own arguments
        [sys.executable, *line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    click.echo(done.stdout.strip())
    if done.returncode != (1 if fails else 0):
        click.echo(done.stderr, err=True)
        msg = f"the demo's test ended with {done.returncode}, which the story doesn't tell: please report this"
        raise click.ClickException(msg)

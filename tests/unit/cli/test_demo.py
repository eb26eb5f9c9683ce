from click.testing import CliRunner

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cli import COMMANDS, main


def test_the_demo_records_replays_and_fails_when_the_agent_changes(tmp_path):
    """The story that it tells is checked by itself: each act must end as it says."""
    result = CliRunner().invoke(main, ["demo", "--keep", str(tmp_path)])
    assert result.exit_code == 0, result.output
    acts = result.stdout.split("\n--- ")
    assert [act.partition(":")[0] for act in acts[1:]] == [
        "1. record", "2. replay", "3. a change of the agent's code", "4. replay again",
    ]  # fmt: skip
    assert "1 passed" in acts[1]
    assert "1 passed" in acts[2]
    assert "broken" in acts[4]
    assert "drifted" in acts[4]
    cassettes = list((tmp_path / "cassettes").rglob("*.yaml"))
    assert len(store.load(cassettes[0]).recording.calls) == 6


def test_every_command_is_there_and_says_what_it_does():
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0
        assert f"main {name}" in result.stdout


def test_an_unknown_command_ends_with_2():
    result = CliRunner().invoke(main, ["race"])
    assert result.exit_code == 2
    assert "race" in result.stderr

from click.testing import CliRunner

from pytest_agentlatency.cli import COMMANDS, main


def test_a_demo_that_does_not_end_as_its_story_says_so_and_keeps_its_files(tmp_path, monkeypatch):
    """The interpreter that it starts is none. How it ends as it should, the README's test tells."""
    monkeypatch.setattr("sys.executable", "/bin/false")
    result = CliRunner().invoke(main, ["demo", "--keep", str(tmp_path / "kept")])
    assert result.exit_code == 1
    assert "ended with 1, which the story doesn't tell" in result.stderr
    assert (tmp_path / "kept" / "test_support_agent.py").exists()


def test_every_command_is_there_and_says_what_it_does():
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0
        assert f"main {name}" in result.stdout


def test_an_unknown_command_ends_with_2():
    result = CliRunner().invoke(main, ["race"])
    assert result.exit_code == 2
    assert "race" in result.stderr

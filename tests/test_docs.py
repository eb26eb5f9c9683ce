"""The pages tell the truth: phrases parse, tables are the registry's, commands, flags, settings and links exist."""

import ast
import re
from itertools import takewhile
from pathlib import Path

import click
import pytest

from pytest_agentlatency import settings
from pytest_agentlatency.agent_run import AgentRun, AgentTurn
from pytest_agentlatency.budgets.measures import SUBJECTS
from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.budgets.subjects import SERIES
from pytest_agentlatency.budgets.verdict import Ruling
from pytest_agentlatency.cassette.document import CURRENT
from pytest_agentlatency.cli import COMMANDS, main
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.settings import DriftPolicy

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES["README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
BUDGETS, CASSETTES = PAGES["budgets.md"], PAGES["cassettes.md"]
EVERYTHING = "\n".join(PAGES.values())
HIDDEN = {"probe_pass"}


def blocks(language, text=EVERYTHING):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def table(text, start):
    """Rows of the table that begins with this header, or behind this comment: cells, without the header."""
    lines = text[text.index(start) :].splitlines()
    if not start.startswith("|"):
        del lines[0]
    rows = takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows][2:]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


PHRASES = [phrase for block in blocks("budgets") for phrase in block.splitlines() if phrase]
MARKED = [
    ast.literal_eval(phrase)
    for arguments in re.findall(r"latency_budget\(([^)]*?)\)", "\n".join(blocks("python")))
    for phrase in re.findall(r'"[^"]*"', arguments)
]


@pytest.mark.parametrize("phrase", dict.fromkeys([*PHRASES, *MARKED]))
def test_every_phrase_shown_has_a_meaning(phrase):
    parse(phrase)


def test_there_are_phrases_to_check():
    assert len(PHRASES) > 20
    assert len(MARKED) >= 3


def test_the_table_of_subjects_is_the_registrys():
    rows = table(BUDGETS, "<!-- subjects:")
    named = {name: cells for cells in rows for name in quoted(cells[0])}
    assert set(named) == {name for subject in SUBJECTS for name in subject.names}
    for subject in SUBJECTS:
        _, unit, at_turn, in_total, notes = named[subject.name]
        assert str(subject.unit) in unit, subject.name
        assert (at_turn == "yes", in_total == "yes") == (subject.at_turn, subject.in_total), subject.name
        if subject.name != "tool share":  # its row is that of `tool time`
            assert ("of one tool" in notes) == subject.takes_tool, subject.name
        assert ("`each`" in notes) == subject.takes_each, subject.name
        assert ("`of context`" in notes) == (subject.of_context is not None), subject.name


def test_the_table_of_series_is_the_registrys():
    assert [quoted(row[0])[0] for row in table(BUDGETS, "<!-- series:")] == list(SERIES)


@pytest.mark.parametrize("row", table(BUDGETS, "| side | words |\n"), ids=lambda row: row[0])
def test_every_word_of_a_comparison_is_understood(row):
    for word in quoted(row[1]):
        parse(f"turns {word} 8")


@pytest.mark.parametrize("row", table(BUDGETS, "| unit | written |\n"), ids=lambda row: row[0])
def test_every_way_to_write_a_limit_is_understood(row):
    subject = {"time": "ttft", "share": "cached share", "tokens": "context", "bytes": "request bytes", "count": "turns"}
    for limit in quoted(row[1]):
        parse(f"{subject[row[0]]} under {limit}")


@pytest.mark.parametrize("row", table(BUDGETS, "| scope | judged |\n"), ids=lambda row: row[0])
def test_every_scope_is_understood(row):
    for scope in quoted(row[0]):
        parse(f"output tokens under 1k {scope}")


def test_the_tables_of_rulings_modes_and_policies_are_complete():
    assert {quoted(row[0])[0] for row in table(BUDGETS, "| ruling |")} == set(map(str, Ruling))
    assert {quoted(row[0])[0] for row in table(CASSETTES, "| mode |")} == set(Mode)
    assert {quoted(row[0])[0] for row in table(CASSETTES, "| policy |")} == set(DriftPolicy)


def test_every_flag_and_setting_named_exists():
    flags = set(re.findall(r"--latency-[a-z-]+[a-z]", EVERYTHING))
    assert flags <= {option for field, option in settings.OPTIONS.items() if field not in HIDDEN}
    names = set(re.findall(r"(?<![\w./])latency_[a-z_]+\b(?!\()", EVERYTHING)) - {"latency_budget"}
    assert names <= set(settings.INI.values())


def test_every_flag_and_setting_is_named_somewhere():
    flags = {option for field, option in settings.OPTIONS.items() if field not in HIDDEN}
    assert [name for name in (*flags, *settings.INI.values()) if name not in EVERYTHING] == []


def test_every_argument_of_the_marker_is_named_and_exists():
    shown = set(re.findall(r"agent_latency\((\w+)=", EVERYTHING))
    assert shown <= set(settings.MARKER)
    for name in settings.MARKER:
        assert f"{name}=" in EVERYTHING


def test_every_command_shown_exists_and_takes_the_options_shown():
    shown = re.findall(r"agentlatency ((?:[a-z]+)\b[^`\n#]*)", "\n".join([*blocks("console"), *inline()]))
    assert {line.split()[0] for line in shown} <= set(COMMANDS)
    context = click.Context(main)
    for line in shown:
        command = main.get_command(context, line.split()[0])
        takes = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        assert {word for word in line.split()[1:] if word.startswith("-")} <= takes, line


def inline():
    return re.findall(r"`(agentlatency [a-z][^`\n]*)`", EVERYTHING)


def test_every_command_is_named_somewhere():
    assert [name for name in COMMANDS if f"agentlatency {name}" not in EVERYTHING] == []


def test_every_figure_shown_of_agent_run_exists():
    text = "\n".join(blocks("python"))
    for name in re.findall(r"agent_run\.(\w+)", text):
        assert hasattr(AgentRun, name), name
    for name in re.findall(r"agent_run\.turn\(\d+\)\.(\w+)", text):
        assert hasattr(AgentTurn, name), name


def test_the_cassette_shown_is_of_the_current_version():
    shown = "\n".join(blocks("yaml", CASSETTES))
    assert re.search(rf"^agentlatency: .*\n  version: {CURRENT}$", shown, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    folder = ROOT if page == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)):
        if target.startswith(("http:", "https:")):
            continue
        name, _, anchor = target.partition("#")
        path = folder / name if name else folder / page
        assert path.exists(), target
        if anchor:
            assert anchor in set(map(slug, re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))), (
                target
            )


def slug(heading):
    """A heading as its anchor on the forge."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

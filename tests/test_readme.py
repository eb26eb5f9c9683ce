"""The README tells the truth: its output is the demo's, its phrases parse, its commands and pages exist."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_agentlatency.budgets.phrase import parse
from pytest_agentlatency.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(after: str) -> str:
    return re.search(rf"{re.escape(after)}\n```\w*\n(.*?)```", README, re.DOTALL)[1]


def masked(text: str) -> str:
    """What differs from run to run and machine to machine: times, with them shares, and where a line is folded."""
    text = re.sub(r"\s+", " ", re.sub(r"recorded \d{4}-\d\d-\d\dT\S+", "recorded TIME", text))
    return re.sub(r"\d+(\.\d+)? (ms|s)\b|\b\d+(\.\d+)?%", "#", text)


@pytest.fixture(scope="module")
def demo():
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_output_shown_is_the_demos(demo):
    assert masked(block("<!-- shown output -->").strip()) in masked(demo)


def test_output_is_shown_by_line_40():
    assert README[: README.index("<!-- shown output -->")].count("\n") + 3 <= 40


def test_the_demo_tells_the_whole_story(demo):
    acts = re.split(r"^--- ", demo, flags=re.MULTILINE)
    assert len(acts) == 5
    record, replay, change, broken = acts[1:]
    assert "budgets: 4 kept" in record
    assert "prefill" in record
    assert "calls: 6 identical" in replay
    assert "+    return [asdict(match) for match in matches]" in change
    assert "1 failed" in broken
    assert "5 drifted" in broken


def test_every_phrase_in_the_readme_parses():
    shown = block("when the tests are collected. Limits are inclusive.\n")
    phrases = [phrase for line in shown.splitlines() for phrase in re.split(r"\s{3,}", line.strip()) if phrase]
    assert len(phrases) == 11
    for phrase in phrases:
        parse(phrase)


def test_every_page_that_is_linked_exists():
    pages = re.findall(r"\]\(([^)#]+)\)", README)
    assert pages
    assert [page for page in pages if not (ROOT / page).exists()] == []

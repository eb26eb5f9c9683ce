"""docs/field-notes.md tells the truth: its tests exist, and no test names a case that it doesn't list."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "field-notes.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if re.match(r"\| [A-G]\d", line)]
OTHERWISE = re.compile(r'"""(?!Field note )(?:\S+ )?[A-G]\d{1,2}[:.,]')
MENTION = re.compile(r"Field note ([A-G]\d+(?:, [A-G]\d+)*)")


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """Tests of a module or class, as pytest writes them behind the path."""
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield from (f"{each.name}::{name}" for name in defined(each.body))
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name


def mentioned(text: str) -> set[str]:
    return {case for cases in MENTION.findall(text) for case in cases.split(", ")}


def test_each_case_is_listed_once_with_a_public_link():
    cases = [row[0] for row in ROWS]
    assert [case for case, times in Counter(cases).items() if times > 1] == []
    assert [row[0] for row in ROWS if len(row) != 4 or "](https://github.com/" not in row[1]] == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/]+\.py)::", PAGE))))
def test_every_test_that_is_named_exists(path):
    names = set(re.findall(rf"`{re.escape(path)}::([\w:]+)`", PAGE))
    assert names - set(defined(ast.parse((ROOT / path).read_text(encoding="utf-8")).body)) == set()


def test_a_case_without_a_test_says_that_it_is_not_done():
    without = [row for row in ROWS if "`tests/" not in row[3]]
    assert [row[0] for row in without if "Not done" not in row[2]] == []


def test_every_case_that_a_test_names_is_listed():
    named = set[str]().union(*(mentioned(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py")))
    assert {"B4", "E4", "E5"} <= named
    assert named - {row[0] for row in ROWS} == set()


def test_a_docstring_that_names_a_case_says_field_note():
    texts = {str(path): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    assert {path: found for path, text in texts.items() if (found := OTHERWISE.findall(text))} == {}


def test_several_cases_of_one_docstring_are_all_read():
    assert mentioned("Field note E4, E5. Field note B19: a clock") == {"E4", "E5", "B19"}

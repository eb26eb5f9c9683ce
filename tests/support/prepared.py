"""A user's suite whose cassettes are built, not recorded: an agent of a few lines sends the bodies in them again."""

import json
from dataclasses import replace
from pathlib import Path

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.recording import Recording

HEAD = """\
import json
import os
import time
from datetime import date, datetime
from pathlib import Path
import httpx
import pytest

def run(name, change=lambda body: None):
    for body in json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")):
        change(body)
        httpx.post("http://127.0.0.1:8000/v1/messages", json=body)
"""
TEST = """
@pytest.mark.agent_latency
@pytest.mark.latency_budget(PHRASES)
MARKS
def NAME(agent_run):
    run("NAME", CHANGE)
"""


def marked(name: str, *phrases: str, change: str = "lambda body: None", marks: str = "") -> str:
    """The source of a test: its budgets, and what its agent does to each body before it sends it."""
    words = {"NAME": name, "PHRASES": ", ".join(map(repr, phrases)), "CHANGE": change, "MARKS": marks}
    source = TEST if phrases else TEST.replace("@pytest.mark.latency_budget(PHRASES)\n", "")
    for word, text in words.items():
        source = source.replace(word, text)
    return source


def prepare(folder: Path, name: str, observed: Recording) -> None:
    """Write the cassette of a test in the module `test_agent`, and the bodies that its agent sends."""
    bodies = [json.loads(attempt.request.body) for attempt in observed.attempts]
    (folder / f"{name}.json").write_text(json.dumps(bodies), encoding="utf-8")
    whole = replace(observed, facts=replace(observed.facts, test=f"test_agent.py::{name}"))
    store.save(folder / "cassettes" / "test_agent" / f"{name}.yaml", Document(whole))

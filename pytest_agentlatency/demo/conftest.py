"""Stands in for a provider: a simulated model on this machine, started only to record."""

import pytest

from pytest_agentlatency.testing import CostModel, Reply, SimulatedModel, ToolUse

TOWNS = ["Hamburg", "Bremen", "Kassel", "Fulda", "Erfurt"]


def script(asked):
    if asked.turn <= len(TOWNS):
        query = f"parcels that left the depot in {TOWNS[asked.turn - 1]}"
        return Reply("I look up the next parcel.", tool_calls=[ToolUse("search", {"query": query})])
    return Reply("All five have left their depots. The first is DE4711, from Hamburg; the others follow it.")


@pytest.fixture(autouse=True)
def model(request, monkeypatch):
    monkeypatch.setenv("MODEL_URL", "https://model.invalid")
    if request.config.getoption("--latency-mode") != "record":
        yield
        return
    with SimulatedModel(script, costs=CostModel(prefill=100_000, decode=4_000_000)) as simulated:
        monkeypatch.setenv("MODEL_URL", simulated.url)
        yield

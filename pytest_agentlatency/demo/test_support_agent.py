import pytest
from support_agent import answer


@pytest.mark.agent_latency
@pytest.mark.latency_budget(
    "prefill share under 50% at turn 6",
    "context growth is linear",
    "context tokens under 1k at every turn",
    "turns at most 8",
)
def test_support_agent(agent_run):
    assert "DE4711" in answer("Where are my five parcels?")
    assert agent_run.turn(6).share("prefill") < 0.5

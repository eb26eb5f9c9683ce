"""The one offline call before the first that is measured."""

import sys

import anthropic
import pytest

from pytest_agentlatency.capture import warmup
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.testing import Reply, SimulatedModel
from tests.support.agents import loop
from tests.support.sessions import PLAN


@pytest.fixture(autouse=True)
def cold():
    warmup.warm_up.cache_clear()


def test_it_makes_the_sdk_build_its_types_and_sends_nothing():
    seen = []
    client = anthropic._base_client.SyncAPIClient
    original = client.request

    def counting(self, *args, **kwargs):
        seen.append(warmup.warming.get())
        return original(self, *args, **kwargs)

    client.request = counting
    try:
        warmup.warm_up("anthropic")
    finally:
        client.request = original
    assert len(seen) >= 3
    assert all(seen)


def test_no_failure_of_it_reaches_the_agent(monkeypatch):
    monkeypatch.setitem(sys.modules, "anthropic._base_client", None)
    warmup.warm_up("anthropic")


def test_an_sdk_that_is_there_is_warm_before_the_agent_starts():
    """It takes hundreds of milliseconds, which a deadline of the agent's would count."""
    with Session(PLAN):
        assert warmup.warm_up.cache_info().currsize >= 1
        misses = warmup.warm_up.cache_info().misses
        with SimulatedModel(Reply("hello")) as model:
            loop(model.url)
        assert warmup.warm_up.cache_info().misses == misses


def test_it_is_no_part_of_the_run():
    with SimulatedModel(Reply("hello")) as model, Session(PLAN) as session:
        loop(model.url)
    recording = session.document().recording
    assert len(recording.calls) == 1
    assert len(model.requests) == 1
    assert session.problems() == ()

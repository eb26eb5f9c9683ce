"""freezegun and time-machine in the suite: durations are as without them, nothing hangs (Field note B19)."""

import asyncio

import freezegun
import pytest
import time_machine

from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.testing import CostModel, SimulatedModel
from tests.support.agents import loop, loop_async, searches
from tests.support.sessions import record, record_async, replaying

MS = 1_000_000
COSTS = CostModel(fixed=60 * MS, prefill=0, decode=2 * MS)
LONG = 100_000 * MS


class Backwards:
    """time-machine, an hour back between one run and the next."""

    def __enter__(self):
        self.traveller = time_machine.travel("2031-01-01", tick=False)
        self.clock = self.traveller.__enter__()
        return self

    def step(self):
        self.clock.shift(-3600)

    def __exit__(self, *_):
        self.traveller.__exit__(None, None, None)


FREEZERS = {
    "freezegun": lambda: freezegun.freeze_time("2012-01-14"),
    "freezegun, an hour at each reading": lambda: freezegun.freeze_time("2012-01-14", auto_tick_seconds=3600),
    "time-machine": lambda: time_machine.travel("2031-01-01", tick=False),
    "time-machine, backwards": Backwards,
}


@pytest.fixture(scope="module")
def model():
    """Started before time is frozen, and stopped after it."""
    with SimulatedModel(searches(3), costs=COSTS) as running:
        yield running


@pytest.mark.parametrize("freezer", FREEZERS)
def test_runs_under_frozen_time_have_the_servers_durations(model, freezer):
    with FREEZERS[freezer]() as clock:
        recorded, document = record(loop, model.url)
        if isinstance(clock, Backwards):
            clock.step()
        with replaying(document) as session:
            loop(model.url)
        told = session.told().run
    for attempt in document.recording.attempts:
        stamps = attempt.stamps
        assert 60 * MS <= stamps.arrived[-1] - stamps.start < LONG
        assert [*stamps.arrived] == sorted(stamps.arrived)
    assert sum(told.phases.values()) == told.duration
    assert told.phases == recorded.told().run.phases
    assert session.verdicts[Verdict.IDENTICAL] == 3


async def several(url):
    return await asyncio.gather(*(loop_async(url, question=f"Task {number}") for number in range(3)))


@pytest.mark.parametrize(
    "freezer",
    [lambda: freezegun.freeze_time("2012-01-14", real_asyncio=True), FREEZERS["time-machine"]],
    ids=["freezegun", "time-machine"],
)
def test_concurrent_agents_under_frozen_time_are_recorded_and_replayed(model, freezer):
    with freezer():
        _, document = asyncio.run(record_async(several, model.url))
        with replaying(document) as session:
            asyncio.run(asyncio.wait_for(several(model.url), 3600))
    assert session.verdicts[Verdict.IDENTICAL] == 9


def test_a_replay_goes_on_where_freezegun_stops_the_loops_own_clock(model):
    """It then reads seconds since 1970, where asyncio's margin for timers is lost in rounding."""
    _, document = asyncio.run(record_async(several, model.url))
    with freezegun.freeze_time("2012-01-14"), replaying(document) as session:
        asyncio.run(several(model.url))
    assert session.verdicts[Verdict.IDENTICAL] == 9

"""Sessions without pytest: record a function against a server, replay another against what was recorded."""

from dataclasses import replace

from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.cassette import document as documents
from pytest_agentlatency.model.mode import Mode

PLAN = Plan(Mode.RECORD, "tests/test_agent.py::test_agent", counter())


def record(agent, *arguments, **options):
    """Run an agent while recording; the finished session and what it would write."""
    with Session(PLAN) as session:
        session.result = agent(*arguments, **options)
    return session, session.document()


async def record_async(agent, *arguments, **options):
    with Session(PLAN) as session:
        session.result = await agent(*arguments, **options)
    return session, session.document()


def replaying(document, **changes):
    """A session that replays a document, after a trip over the disk's format."""
    again = documents.loads(documents.dumps(document), "test")
    return Session(replace(PLAN, mode=Mode.REPLAY, document=again, **changes))

"""An agent's run on the real server: what the plugin recorded of it, beside what the server says.

Owns the alignment of the two. Any function that talks to a model through an SDK configured by its environment will do
for an agent: call `measured` once for each revision of it, and compare the runs.
"""

import json
import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.cacherules import rules_for
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.prefix import Sent
from pytest_agentlatency.analysis.promptcache import predicted_cache_n
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.model.run import Turn
from tests.support.llama_server import LlamaServer, ServerError, Truth

_MS = 1e6


@dataclass(frozen=True, slots=True)
class Compared:
    """One turn by both clocks."""

    turn: Turn
    truth: Truth

    @property
    def prefill_ms(self) -> float:
        """The phase, as the plugin reports it."""
        return (self.turn.time("prefill") or 0) / _MS

    @property
    def decode_ms(self) -> float:
        """The phase, as the plugin reports it."""
        return (self.turn.time("decode") or 0) / _MS

    @property
    def ttft_ms(self) -> float:
        """What prefill would be by the time to the first visible token."""
        return (self.turn.call.ttft or 0) / _MS


@dataclass(frozen=True, slots=True)
class Measured:
    """A recorded run and the server's word on each of its requests, in the order in which they were made."""

    document: Document
    truths: tuple[Truth, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Each call with its prompt and answer."""
        return assembly.read(self.document.recording)

    @property
    def compared(self) -> tuple[Compared, ...]:
        """Every turn of every lane beside the server's word."""
        run = assembly.assemble(self.document.recording)
        turns = sorted(run.all_turns, key=lambda turn: turn.call.record.id)
        return tuple(map(Compared, turns, self.truths))

    @property
    def predicted_cached(self) -> tuple[int, ...]:
        """What the simulator says that the server's cache held of each request."""
        rules = rules_for("llama.cpp")
        assert rules is not None
        sent = [
            Sent(each.prompt, each.call.attempts[-1].request.body, each.call.usage.context) for each in self.readings
        ]
        return predicted_cache_n(sent, rules, counter())


def measured(server: LlamaServer, agent: Callable[[], object], name: str = "agent") -> Measured:
    """Run an agent against the server under observation. ServerError when a request was tried again.

    The server's cache is empty of the agent's text at the start, and client and server are warm.
    """
    forget(server)
    earlier = len(server.truths())
    with mock.patch.dict(os.environ, server.environment), Session(Plan(Mode.RECORD, name, counter())) as session:
        agent()
    document = session.document()
    attempts = len(document.recording.attempts)
    if attempts != len(document.recording.calls):
        msg = f"{name}: {attempts} requests for {len(document.recording.calls)} calls; the server refused some"
        raise ServerError(msg)
    return Measured(document, server.truths(earlier + attempts)[earlier:])


def forget(server: LlamaServer) -> None:
    """Fill the server's one slot with something that no agent sends."""
    body = json.dumps({"prompt": "Nothing that an agent would say.", "n_predict": 4}).encode()
    before = len(server.truths())
    request = urllib.request.Request(f"{server.url}/completion", body, {"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        answer.read()
    server.truths(before + 1)

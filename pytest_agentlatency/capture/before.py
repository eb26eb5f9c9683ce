"""Before a run: fixtures of a wider scope are being set up, whose work belongs to several tests.

Owns what becomes of their model calls: they would be in the cassette of whichever test happens to come first, so they
are refused, in a recording as in a replay. Their other HTTP is nobody's, and in a replay stays on this machine.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NoReturn

from pytest_agentlatency.capture import guard, transport
from pytest_agentlatency.capture.traffic import RunFailedError
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.model.recording import Request

_MESSAGE = (
    "a model call before the test's own fixtures.\nA fixture of a wider scope (class, module, session) asks the "
    "model: it would be recorded with whichever test comes first. Give the fixture function scope, or let the agent "
    "make the call when the test runs."
)


@dataclass(slots=True)
class Refuser:
    """Stands where a run's traffic will: every model call fails."""

    stopping: Callable[[str], RunFailedError] = RunFailedError
    learned: Learned = field(default_factory=Learned)
    failures: list[RunFailedError] = field(default_factory=list[RunFailedError])

    def play(self, request: Request) -> NoReturn:
        """Refuse a model call."""
        del request
        raise self.fail(_MESSAGE)

    def fail(self, message: str) -> RunFailedError:
        """Note a failure, so that it is told even where a fixture swallows the exception; returns it to raise."""
        self.failures.append(self.stopping(message))
        return self.failures[-1]


def install(refuser: Refuser, stack: ExitStack, *, closed: bool, allow_hosts: tuple[str, ...] = ()) -> None:
    """Refuse model calls until the stack closes; closed: connections to other machines as well."""
    transport.install(refuser, transport.leaves(), stack)
    if closed:
        stack.callback(guard.install(refuser.fail, (), allow_hosts).remove)

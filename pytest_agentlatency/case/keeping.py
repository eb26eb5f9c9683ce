"""The cassette of a recorded run, written or refused.

Owns what makes a recording worth keeping, and where one that isn't goes.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.redaction import RedactionError
from pytest_agentlatency.cassette.vetting import vet
from pytest_agentlatency.model.mode import Mode


@dataclass
class Keeper:
    """Writes the cassette of one test."""

    path: Path
    _kept: Document | None = None
    """What was written as the cassette."""

    def keep(self, session: Session, *, trustworthy: bool, passed: bool) -> str:
        """Write the cassette, or the rejected one beside it; says what a reader of a failure must know of it."""
        if session.plan.mode is not Mode.RECORD or not session.recorder.observed_calls:
            return ""
        try:
            document = session.document()
            refused = vet(document, session.learned, session.asked())
        except RedactionError as error:
            return f"not recorded: {error}"
        if refused:
            return f"not recorded: {refused}"
        try:
            return self._written(document, trustworthy=trustworthy, passed=passed)
        except CassetteError as error:
            return f"not recorded: {error}"

    def _written(self, document: Document, *, trustworthy: bool, passed: bool) -> str:
        if trustworthy and passed:
            store.save(self.path, document)
            self._kept = document
            return ""
        told = f"the recording was not kept: it is at {store.reject(self.path, document)}"
        if not trustworthy:
            return f"{told}, for a look only."
        return (
            f"{told}, and the cassette is as it was. "
            f"If it is right and only a budget is not, rename it to {self.path.name} and mend the budget."
        )

    def add_clean_up(self, session: Session) -> str:
        """Other HTTP that fixtures did after the verdict: a replay will ask for it."""
        if self._kept is None:
            return ""
        others, kept = session.others, self._kept
        if len(others) == len(kept.others):
            return ""
        self._kept = None
        refused = vet(replace(kept, others=others), session.learned)
        try:
            if not refused:
                store.save(self.path, replace(kept, others=others))
        except CassetteError as error:
            refused = str(error)
        return f"the cassette lacks what fixtures did after the test: {refused}" if refused else ""

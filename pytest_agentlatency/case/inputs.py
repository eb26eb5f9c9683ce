"""What a run needs before it begins: its cassette, its counter, latency models, KV configurations.

Owns what is said when one of them can't be had. Refuses to run anything.
"""

from dataclasses import dataclass
from pathlib import Path

from pytest_agentlatency.analysis import counters
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import Counter, CounterError
from pytest_agentlatency.analysis.kvcache import KvSpec
from pytest_agentlatency.capture import calibrations, kvconfigs
from pytest_agentlatency.capture.calibrations import CalibrationError
from pytest_agentlatency.case.place import Identity
from pytest_agentlatency.cassette import foreign, store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.model.recording import Recording
from pytest_agentlatency.settings import INI, Settings


@dataclass
class Inputs:
    """Read one by one; what is wrong is kept, and something harmless is given in its place."""

    identity: Identity
    settings: Settings
    path: Path
    named: bool
    """The path was given by the marker, so that several tests may share it."""
    fatal: str = ""
    """Why the test can't run at all."""

    def counter(self) -> Counter:
        """The token counter that is set."""
        try:
            return counters.counter(self.settings.counter)
        except CounterError as error:
            self.fatal = str(error)
            return counters.counter()

    def calibrations(self) -> tuple[Calibration, ...]:
        """Latency models from sweeps."""
        try:
            return calibrations.load_all(map(Path, self.settings.calibrations))
        except CalibrationError as error:
            self.fatal = self.fatal or str(error)
            return ()

    def kv_specs(self) -> dict[str, KvSpec]:
        """What decides the KV cache of models whose configuration the user names."""
        try:
            return {model: kvconfigs.read(path) for model, path in self.settings.kv_configs}
        except ValueError as error:
            self.fatal = self.fatal or f"{error}. It is named in the ini value {INI['kv_configs']}"
            return {}

    def document(self, counter: Counter) -> Document:
        """The cassette to replay, counted by the same counter and recorded by the same test."""
        try:
            if not self.path.exists():
                self.fatal = self._missing()
                return Document(Recording())
            document = store.load(self.path)
            if not document.recording.attempts and document.others:
                document = foreign.read(self.path).document  # plain vcrpy's: the same calls, without their times
            counters.check_recorded(document.recording.facts.counter, counter)
        except (CassetteError, CounterError) as error:
            self.fatal = str(error)
            return Document(Recording())
        recorded_by = document.recording.facts.test
        if not self.named and recorded_by and not self.identity.same_as(recorded_by):
            self.fatal = (
                f"cassette of another test: {self.path} was recorded by {recorded_by}.\n"
                f"Rename it back, or record this test: {self.identity.record_command}"
            )
        return document

    def _missing(self) -> str:
        rejected = self.path.with_name(f"{self.path.name}.rejected")
        kept = f"\nA recording that was rejected is at {rejected}; its test failed." if rejected.exists() else ""
        return (
            f"no cassette to replay: {self.path} doesn't exist.\n"
            f"Record it once, with a key; that calls the model for real:\n\n    {self.identity.record_command}\n{kept}"
        ).rstrip()

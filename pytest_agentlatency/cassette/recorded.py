"""The model calls of a recording, each with its lane and turn.

Owns the grouping of attempts into calls. Leaves the question which conversation a call continues to `wire.lineage`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_agentlatency.cassette import likeness
from pytest_agentlatency.cassette.likeness import Opening
from pytest_agentlatency.model.recording import Attempt, CallRecord, Recording, Request
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.lineage import Exchange, place_all
from pytest_agentlatency.wire.message import Answer, Prompt


@dataclass(frozen=True, slots=True)
class Read:
    """What reading a recorded call takes: its bodies are taken apart for it."""

    lane: int
    turn: int
    opening: Opening
    answer: Answer
    """What its last attempt was answered."""
    repeats: bool
    """It asks the same as its lane's call before it."""


class _Reading:
    """All calls of a recording, read when one is asked about; a replay whose requests are equal asks about none."""

    def __init__(self, tried: Sequence["RecordedCall"]) -> None:
        self._tried = tried

    @cached_property
    def calls(self) -> tuple[Read, ...]:
        questions = [asked(each.attempts[-1].request) for each in self._tried]
        exchanges = [_exchange(prompt, each.attempts) for (_, prompt), each in zip(questions, self._tried, strict=True)]
        return tuple(
            Read(place.lane, place.turn, likeness.opening(provider, place.prompt), exchange.answer, place.repeats)
            for (provider, _), exchange, place in zip(questions, exchanges, place_all(exchanges), strict=True)
        )


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A model call of the cassette and where it stands."""

    record: CallRecord
    attempts: tuple[Attempt, ...]
    _index: int
    _reading: _Reading

    @property
    def read(self) -> Read:
        """Its lane, turn and answer."""
        return self._reading.calls[self._index]

    @property
    def lane(self) -> int:
        """From 1."""
        return self.read.lane

    @property
    def turn(self) -> int:
        """Of its lane, from 1."""
        return self.read.turn

    @property
    def request(self) -> Request:
        """What its first attempt sent."""
        return self.attempts[0].request


def recorded_calls(recording: Recording) -> tuple[RecordedCall, ...]:
    """Return the model calls of a recording, in the order in which they were made."""
    records = {record.id: record for record in recording.calls}
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in recording.attempts:
        if registry.recognise(attempt.request) is not None:
            attempts[attempt.call].append(attempt)
    calls: list[RecordedCall] = []
    reading = _Reading(calls)
    calls.extend(
        RecordedCall(records.get(id_, CallRecord(id_)), tuple(attempts[id_]), index, reading)
        for index, id_ in enumerate(sorted(attempts))
    )
    return tuple(calls)


def asked(request: Request) -> tuple[str, Prompt]:
    """Name of the provider whose format a request has, and its prompt; nothing of a request in no known format."""
    provider = registry.recognise(request)
    return ("", Prompt("")) if provider is None else (provider.name, provider.prompt(request))


def _exchange(prompt: Prompt, attempts: tuple[Attempt, ...]) -> Exchange:
    first, last = attempts[0].stamps, attempts[-1].stamps
    return Exchange(prompt, _answer(attempts[-1]), first.start if first else None, last.end if last else None)


def _answer(attempt: Attempt) -> Answer:
    provider = registry.recognise(attempt.request)
    return Answer() if provider is None or attempt.response is None else provider.answer(attempt.response)

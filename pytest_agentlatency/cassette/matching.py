"""Which recorded call answers a live one.

Owns the pairing and its three verdicts. Leaves equality to `canonical`, conversations to `wire.lineage`, likeness to
`likeness`, and what a difference costs to the floors above.

A live call is paired once, at its first attempt:
1. With an equal request: byte for byte, else as JSON (identical), else as JSON without volatile spans (drifted, and
   `masked`). Order between lanes doesn't matter; equal requests are taken first in, first out.
2. Else by lane and turn: the next turn of the recorded lane that this live lane has been following; a lane that follows
   none yet, the most alike recorded lane that nobody follows (drifted).
3. Else it is unmatched.
Its later attempts are given the later attempts of the same recorded call.

`strict` refuses what is drifted, except where only volatile spans differ: those are declared not to matter.
"""

import shlex
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from pytest_agentlatency.cassette import canonical, likeness
from pytest_agentlatency.cassette.difference import SNIPPET, characters, difference
from pytest_agentlatency.cassette.headers import clean_url
from pytest_agentlatency.cassette.likeness import Opening
from pytest_agentlatency.cassette.livelanes import LiveLanes
from pytest_agentlatency.cassette.masks import Masks, differing
from pytest_agentlatency.cassette.recorded import RecordedCall, recorded_calls
from pytest_agentlatency.cassette.secrets import NOTHING_LEARNED, Learned, hidden
from pytest_agentlatency.model.recording import Attempt, CallRecord, Recording, Request
from pytest_agentlatency.model.run import Difference, Verdict
from pytest_agentlatency.wire.lineage import Placement


@dataclass(frozen=True, slots=True)
class Match:
    """The recorded attempt that answers a live one."""

    recorded: Attempt
    call: RecordedCall
    """Whose attempt it is."""
    verdict: Verdict
    difference: Difference | None = None
    """The first place where the requests differ; None when they are identical."""
    masked: bool = False
    """Only volatile spans differ."""

    @property
    def record(self) -> CallRecord:
        """Of the recorded call."""
        return self.call.record

    @property
    def lane(self) -> int:
        """Of the recorded call."""
        return self.call.lane

    @property
    def turn(self) -> int:
        """Of the recorded call."""
        return self.call.turn


class Unmatched(Exception):  # noqa: N818  # a verdict's name
    """A live call that no recorded one answers. Its text is under 15 lines and holds no secret."""

    def __init__(
        self, reason: str, live: Request, nearest: RecordedCall | None, found: Difference | None, rerun: str
    ) -> None:
        self.reason = reason
        self.live = live
        self.nearest = nearest
        self.difference = found
        self.characters = characters(live.body) - characters(nearest.request.body) if nearest else None
        """Size of the live request minus that of the nearest recorded one, in characters."""
        self._rerun = rerun
        super().__init__(self.priced(""))

    def priced(self, price: str) -> str:
        """The text with what the request would cost as a change of the nearest recorded call."""
        return "\n".join(self._lines(price))

    def _lines(self, price: str) -> Iterable[str]:
        yield self.reason
        if self.nearest is not None:
            yield f"  nearest recorded call: lane {self.nearest.lane}, turn {self.nearest.turn}"
            yield f"  size: {characters(self.live.body):,} characters, {self.characters:+,} against the recorded one"
        if price:
            yield f"  as a change of it: {price}"
        if self.difference is not None:
            yield f"  first difference: {self.difference.path}"
            yield f"    recorded: {self.difference.recorded}"
            yield f"    live:     {self.difference.live}"
        yield f"  When the agent was meant to change, record again: {self._rerun}"


@dataclass(slots=True)
class _Slot:
    """A recorded call, and whether a live one was paired with it."""

    call: RecordedCall
    taken: bool = False


@dataclass(slots=True)
class _Pair:
    """A live call and what answers it."""

    call: RecordedCall
    verdict: Verdict
    difference: Difference | None = None
    masked: bool = False
    attempts: int = 0
    """How many of the recorded attempts were given out."""


_Index = Mapping[canonical.Key, list[_Slot]]


class Matcher:
    """Pairs the live calls of one run with a recording's. Safe to use from several threads."""

    def __init__(
        self,
        recording: Recording,
        *,
        masks: Masks | None = None,
        strict: bool = False,
        learned: Learned = NOTHING_LEARNED,
    ) -> None:
        """`learned` credentials are shown in no difference; they may be learned while the matcher is in use."""
        self._masks = masks.fresh() if masks else Masks()
        self._strict = strict
        self._learned = learned
        self._slots = [_Slot(call) for call in recorded_calls(recording)]
        test = recording.facts.test
        self._rerun = f"pytest {shlex.quote(test)} --latency-mode=record" if test else "pytest --latency-mode=record"
        self._pairs: dict[int, _Pair] = {}
        self._live = LiveLanes()
        self._lock = threading.Lock()

    def take(self, live_call: int, request: Request) -> Match:
        """Return the recorded attempt that answers the next attempt of a live call.

        Raises Unmatched when there is none and, when strict, for a request that drifted.
        """
        with self._lock:
            pair = self._pairs.get(live_call) or self._paired(live_call, request)
            call = pair.call
            if pair.attempts == len(call.attempts):
                reason = (
                    f"model call {live_call} made {pair.attempts + 1} attempts; the recorded one made {pair.attempts}."
                )
                raise self._unmatched(reason, request, call)
            pair.attempts += 1
            recorded = call.attempts[pair.attempts - 1]
            return Match(recorded, call, pair.verdict, pair.difference, pair.masked)

    @property
    def recorded(self) -> tuple[RecordedCall, ...]:
        """The recorded model calls, in the order in which they were made."""
        return tuple(slot.call for slot in self._slots)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Live call and recorded call (`CallRecord.id`), in the order in which the live calls were paired."""
        with self._lock:
            return tuple((live, pair.call.record.id) for live, pair in self._pairs.items())

    def unused(self) -> tuple[RecordedCall, ...]:
        """Return the recorded calls that no live call was paired with."""
        with self._lock:
            return tuple(slot.call for slot in self._slots if not slot.taken)

    def _paired(self, live_call: int, request: Request) -> _Pair:
        """Rules 1 to 3 for a live call that was not met before."""
        slot, verdict, masked = self._equal(request)
        if slot is not None:
            self._live.later(request, slot.call)
        else:
            slot = self._by_turn(live_call, request)
        found = None if verdict is Verdict.IDENTICAL else self._differs(slot.call.request, request)
        if self._strict and verdict is Verdict.DRIFTED and not masked:
            reason = f"model call {live_call} differs from the recorded one, and matching is strict."
            raise self._unmatched(reason, request, slot.call)
        slot.taken = True
        pair = self._pairs[live_call] = _Pair(slot.call, verdict, found, masked)
        return pair

    def _equal(self, request: Request) -> tuple[_Slot | None, Verdict, bool]:
        """Rule 1: the slot, the verdict, and whether only masks made them equal."""
        if slots := _free(self._exact, canonical.exact(request)):
            return slots[0], Verdict.IDENTICAL, False
        plain, masked = canonical.meaning(request, self._masks)
        if slots := _free(self._meanings[0], plain):
            return slots[0], Verdict.IDENTICAL, False
        slots = _free(self._meanings[1], masked)
        slot = min(slots, key=lambda each: self._breaks(each, request)) if slots else None
        return slot, Verdict.DRIFTED, slot is not None

    @cached_property
    def _exact(self) -> _Index:
        return _indexed((canonical.exact(slot.call.request), slot) for slot in self._slots)

    @cached_property
    def _meanings(self) -> tuple[_Index, _Index]:
        """By meaning, and by meaning without volatile spans; most replays never need them."""
        keyed = [(canonical.meaning(slot.call.request, self._masks), slot) for slot in self._slots]
        return _indexed((plain, slot) for (plain, _), slot in keyed), _indexed((key, slot) for (_, key), slot in keyed)

    def _breaks(self, slot: _Slot, request: Request) -> int:
        """How many volatile spans differ."""
        recorded, live = (self._masks.spans(canonical.parsed(each.body)) for each in (slot.call.request, request))
        return len(differing(recorded, live))

    def _by_turn(self, live_call: int, request: Request) -> _Slot:
        """Rule 2. Raises Unmatched when it doesn't apply."""
        opening, placement = self._live.place(request)
        followed = self._live.following.get(placement.lane)
        slot = self._next_turn(followed, placement) if followed else None
        if slot is None and (followed is None or placement.repeats):  # equal requests may have been parallel lanes
            slot = self._most_alike(opening)
        if slot is None or not likeness.answerable(slot.call.read.opening, opening):
            raise self._no_counterpart(live_call, request, opening, placement)
        self._live.follow(placement, slot.call)
        return slot

    def _next_turn(self, followed: RecordedCall, placement: Placement) -> _Slot | None:
        """The first turn left in a followed lane. A re-ask is answered by a re-ask only, and the other way round."""
        return next(
            (
                slot
                for slot in self._slots
                if not slot.taken
                and (slot.call.lane, slot.call.read.repeats) == (followed.lane, placement.repeats)
                and slot.call.turn > followed.turn
            ),
            None,
        )

    def _most_alike(self, opening: Opening) -> _Slot | None:
        """The first turn of the most alike lane that nobody follows; the earlier of two that are as alike."""
        followed = {slot.call.lane for slot in self._slots if slot.taken}
        scored = [
            (likeness.score(slot.call.read.opening, opening), slot)
            for slot in self._slots
            if slot.call.turn == 1
            and slot.call.lane not in followed
            and likeness.answerable(slot.call.read.opening, opening)
        ]
        best, slot = max(scored, key=lambda each: each[0], default=(0.0, None))
        return slot if best >= likeness.ENOUGH else None

    def _no_counterpart(self, live_call: int, request: Request, opening: Opening, placement: Placement) -> Unmatched:
        equal = self._meanings[0].get(canonical.meaning(request, self._masks)[0], [])
        if equal:
            reason = f"model call {live_call} makes a request once more that the cassette holds {len(equal)} time(s)."
            return self._unmatched(reason, request, equal[-1].call)
        followed = self._live.following.get(placement.lane)
        if followed is not None:
            lane = [slot.call for slot in self._slots if slot.call.lane == followed.lane]
            turns = f"lane {followed.lane} of the cassette holds {len(lane)} turn(s)"
            reason = (
                f"model call {live_call} has no counterpart: {turns}, and no turn after {followed.turn} is left for it."
            )
            return self._unmatched(
                reason, request, next((each for each in lane if each.turn > followed.turn), lane[-1])
            )
        reason = f"model call {live_call} starts a conversation that the cassette doesn't hold."
        nearest = max(self.recorded, key=lambda call: likeness.score(call.read.opening, opening), default=None)
        return self._unmatched(reason, request, nearest)

    def _unmatched(self, reason: str, request: Request, nearest: RecordedCall | None) -> Unmatched:
        found = self._differs(nearest.request, request) if nearest else None
        return Unmatched(reason, request, nearest, found, self._rerun)

    def _differs(self, recorded: Request, live: Request) -> Difference | None:
        found = difference(recorded.body, live.body, partial(hidden, learned=self._learned))
        if found is None and canonical.exact(recorded) != canonical.exact(live):
            one, other = (f"{each.method} {clean_url(each.url)}" for each in (recorded, live))
            return Difference("url", one[:SNIPPET], other[:SNIPPET]) if one != other else None
        return found


def _indexed(keyed: Iterable[tuple[canonical.Key, _Slot]]) -> _Index:
    index: dict[canonical.Key, list[_Slot]] = defaultdict(list)
    for key, slot in keyed:
        index[key].append(slot)
    return index


def _free(index: _Index, key: canonical.Key) -> list[_Slot]:
    return [slot for slot in index.get(key, ()) if not slot.taken]

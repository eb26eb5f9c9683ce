"""Which lanes the live calls of a replay form, and which recorded lane each of them follows.

Owns that state. Refuses to know which recorded call answers a live one: it is told.
"""

from pytest_agentlatency.cassette import likeness
from pytest_agentlatency.cassette.likeness import Opening
from pytest_agentlatency.cassette.recorded import RecordedCall, asked
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire.lineage import Lineage, Placement


class LiveLanes:
    """The lanes so far.

    Reading a request costs time: calls that are equal to a recorded one are placed when the first comes that isn't.
    """

    def __init__(self) -> None:
        self.following: dict[int, RecordedCall] = {}
        """Live lane -> the recorded call that it was paired with last."""
        self._lineage = Lineage()
        self._later: list[tuple[Request, RecordedCall]] = []

    def later(self, request: Request, call: RecordedCall) -> None:
        """Take note of a pair found without lanes."""
        self._later.append((request, call))

    def place(self, request: Request) -> tuple[Opening, Placement]:
        """Place a live request."""
        for earlier, call in self._later:
            self.follow(self._placed(earlier)[1], call)
        self._later.clear()
        return self._placed(request)

    def follow(self, placement: Placement, call: RecordedCall) -> None:
        """Take note of the pair of the request just placed."""
        self.following[placement.lane] = call
        self._lineage.answered(placement.lane, call.read.answer)

    def _placed(self, request: Request) -> tuple[Opening, Placement]:
        provider, prompt = asked(request)
        placement = self._lineage.place(prompt)
        return likeness.opening(provider, placement.prompt), placement

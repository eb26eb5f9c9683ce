"""Hand-overs of the agent's output to its user in a replay, beside those of the recording.

Owns what is said where the two differ. Refuses to measure: the moment is the recorder's, and a replay's figures are
the recorded ones.
"""

from collections.abc import Collection, Iterator, Sequence

from pytest_agentlatency.capture.traffic import Played
from pytest_agentlatency.cassette.matching import Match

EARLY = "agent_run.delivered() was called before the first model call: it belongs to no turn, and no figure holds it"
_UNRECORDED = (
    "the agent hands its output on at {turns}, and the cassette doesn't say when: delivered is unknown there. Record "
    "the run again with --latency-mode=record"
)
_UNMADE = (
    "the agent doesn't call agent_run.delivered() at {turns}, as it did when it was recorded: delivered is the "
    "recorded time"
)


def notes(handed_over: Collection[int], played: Sequence[Played]) -> Iterator[str]:
    """What a reader of a replay must know; `handed_over`: live calls at whose turn the agent handed its output on."""
    answers = {each.live_call: each.match for each in played}
    for text, live in ((_UNRECORDED, True), (_UNMADE, False)):
        turns = [
            _place(match)
            for call, match in answers.items()
            if (call in handed_over) is live and (match.record.delivered is not None) is not live
        ]
        if turns:
            yield text.format(turns=", ".join(turns))


def _place(match: Match) -> str:
    return f"turn {match.turn}" if match.lane == 1 else f"lane {match.lane} turn {match.turn}"

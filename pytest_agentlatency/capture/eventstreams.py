"""Event streams that are no model call: a tool server's, which may stay open as long as the agent lives.

Owns how they are stored among the other HTTP and given back. vcrpy would read them to an end that never comes; here
they are teed like a model's answer, and one that was still open when the agent let go of it stays open in a replay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agentlatency.capture.openattempt import OpenAttempt
from pytest_agentlatency.cassette.headers import clean_url
from pytest_agentlatency.cassette.interactions import Interaction
from pytest_agentlatency.cassette.vcr import Filters
from pytest_agentlatency.model.recording import Attempt, Outcome

_MARK = "agentlatency-stream"
"""Response field of a stored stream that had not ended. A field, because vcrpy keeps and plays those."""


def asks_for_events(request: Any) -> bool:
    """Whether a request of an httpx family opens an event stream."""
    return request.method == "GET" and "text/event-stream" in request.headers.get("accept", "")


def interactions(streams: Iterable[OpenAttempt], hooks: Mapping[str, Any]) -> tuple[Interaction, ...]:
    """What was seen of the streams, in vcrpy's form, with the user's redaction hooks run over it."""
    seen = [attempt for each in streams if (attempt := each.attempt()).response is not None]
    if not hooks or not seen:
        return tuple(_interaction(attempt) for attempt in seen)
    filters = Filters(hooks)
    return tuple(kept for attempt in seen if (kept := _filtered(filters, _interaction(attempt))) is not None)


def _interaction(attempt: Attempt) -> dict[str, Any]:
    request, response = attempt.request, attempt.response
    if response is None:
        msg = "a stream without a response is no interaction"
        raise ValueError(msg)
    headers = {name: [value] for name, value in response.headers}
    if attempt.outcome is not Outcome.COMPLETE:
        headers[_MARK] = ["open"]
    return {
        "request": {
            "method": request.method,
            "uri": request.url,
            "headers": {name: [value] for name, value in request.headers},
            "body": request.body or None,
        },
        "response": {
            "status": {"code": response.status, "message": response.reason},
            "headers": headers,
            "body": {"string": response.body},
        },
    }


def _filtered(filters: Filters, interaction: dict[str, Any]) -> dict[str, Any] | None:
    asked = interaction["request"]
    headers = {name: values[0] for name, values in asked["headers"].items()}
    request: Any = filters.request(asked["method"], asked["uri"], headers, asked["body"] or b"")
    if request is None:
        return None
    response = filters.response(interaction["response"])
    if response is None:
        return None
    kept = {name: [str(value)] for name, value in request.headers.items()}
    return {"request": {**asked, "uri": request.uri, "headers": kept}, "response": dict(response)}


def is_open(interaction: Interaction) -> bool:
    """Whether a stored interaction is a stream that had not ended."""
    return _MARK in interaction["response"]["headers"]


@dataclass(slots=True)
class OpenStreams:
    """The recorded streams that had not ended, for a replay."""

    recorded: list[Interaction] = field(default_factory=list[Interaction])
    _taken: dict[str, Interaction] = field(default_factory=dict[str, Interaction])

    def take(self, url: str) -> Interaction | None:
        """The next stream recorded at a URL; the last one again for a client that connects once more."""
        wanted = clean_url(url)
        for index, each in enumerate(self.recorded):
            if each["request"]["uri"] == wanted:
                self._taken[wanted] = self.recorded.pop(index)
                break
        return self._taken.get(wanted)

"""Whether a document may become a cassette: no secret in it, and it reads back as what was observed.

Owns the last look before anything is written, rejected recordings included.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pytest_agentlatency.cassette import document as documents
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.matching import Matcher, Unmatched
from pytest_agentlatency.cassette.secrets import Learned, scan
from pytest_agentlatency.model.recording import Headers, Request, Response
from pytest_agentlatency.model.run import Verdict
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.message import Answer

_SHOWN = 5


def vet(document: Document, learned: Learned, asked: Sequence[tuple[int, Request]] | None = None) -> str:
    """Why a document must not be written; empty when it may. Names places and kinds, never a secret's value.

    `asked`: model calls and requests as a replay will ask for them, where that is not as they are stored.
    """
    findings = scan(fields(document), learned)
    if findings:
        places = [f"  {each.place}: {each.kind}" for each in findings[:_SHOWN]]
        more = [f"  and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
        return "\n".join(
            [
                "the run holds what looks like secrets, so nothing was written:",
                *places,
                *more,
                "Take them out of the agent's prompts, tools and URLs; in headers they are never stored.",
            ]
        )
    stored = [(attempt.call, attempt.request) for attempt in document.recording.attempts]
    return _unfaithful(document, stored if asked is None else asked)


def fields(document: Document) -> Iterator[tuple[str, bytes | str]]:
    """Every text of a document with the place where a person finds it."""
    for number, attempt in enumerate(document.recording.attempts, start=1):
        place = f"model call {attempt.call} (exchange {number})"
        yield f"{place} url", attempt.request.url
        yield f"{place} request body", attempt.request.body
        yield from _headers(f"{place} request", attempt.request.headers)
        if attempt.response is not None:
            yield f"{place} response body", attempt.response.body
            yield from _said(place, attempt.request, attempt.response)
            yield from _headers(f"{place} response", attempt.response.headers)
        if attempt.failure is not None:
            yield f"{place} failure", attempt.failure.message
            if attempt.failure.system is not None:
                yield f"{place} failure", attempt.failure.system.message
    for number, interaction in enumerate(document.others, start=1):
        yield from _walk(f"other HTTP {number}", interaction)
    for tool in document.recording.tools:
        yield "tool name", tool.name
    for pause in document.recording.pauses:
        yield "pause", pause.reason


def _said(place: str, request: Request, response: Response) -> Iterator[tuple[str, str]]:
    """What a stream says: in its bytes a secret may lie in two events, in two frames, in the base64 of each."""
    provider = registry.recognise(request)
    answer = provider.answer(response) if provider is not None else Answer()
    if answer.streamed:
        yield from ((f"{place} answer, block {at}", block.text) for at, block in enumerate(answer.blocks, start=1))


def _headers(place: str, headers: Headers) -> Iterator[tuple[str, str]]:
    return ((f"{place} header {name}", value) for name, value in headers)


def _walk(place: str, value: Any) -> Iterator[tuple[str, bytes | str]]:
    if isinstance(value, str | bytes):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, Any]", value).items():
            yield from _walk(f"{place} {key}", each)
    elif isinstance(value, list | tuple):
        for each in cast("Iterable[Any]", value):
            yield from _walk(place, each)


def _unfaithful(document: Document, asked: Sequence[tuple[int, Request]]) -> str:
    """Read the document back and replay it in memory, before it replaces anything."""
    try:
        again = documents.loads(documents.dumps(document), "the recording")
    except CassetteError as error:
        return f"the recording can't be read back: {error}"
    if again.recording != document.recording:
        return "the recording reads back as something else; please report this with the rejected run's agent"
    matcher = Matcher(again.recording)
    try:
        matches = [matcher.take(call, request) for call, request in asked]
    except Unmatched as miss:
        return f"the recording doesn't replay: {miss}"
    drifted = next((match for match in matches if match.verdict is not Verdict.IDENTICAL), None)
    if drifted is None:
        return ""
    place = f" {drifted.difference.path} differs." if drifted.difference else ""
    return (
        f"the recording doesn't replay as itself: model call {drifted.record.id} drifts.{place}\n"
        "A hook of vcr_config that gives something else at each run does that; without one, please report this."
    )

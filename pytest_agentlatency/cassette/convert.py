"""A document as a file for plain vcrpy and pytest-recording, and back, byte for byte.

Request bodies stand in full, the layout is the one that vcrpy writes itself, times stay in the responses, and what is
said once rides with the first exchange. Refuses to know recordings that others made.
"""

from pytest_agentlatency.cassette import document as documents
from pytest_agentlatency.cassette import emit, exchange, facts
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.limits import DEFAULT, Limits


def to_vcr(document: Document) -> bytes:
    """The cassette as plain vcrpy would have written it: UTF-8 YAML."""
    models: list[emit.Value] = []
    for attempt in document.recording.attempts:
        said: dict[str, emit.Value] = {"version": documents.CURRENT}
        if not models:
            said["run"] = facts.write(document.recording)
        models.append(exchange.write(attempt, documents.stored(attempt.request.body), said))
    others = [documents.plain(each) for each in document.others]
    return emit.document({"interactions": [*models, *others], "version": documents.VCRPY}).encode("utf-8")


def from_vcr(data: bytes, source: str = "the given file", limits: Limits = DEFAULT) -> Document:
    """The document of such a file. Interactions without our key are other HTTP. Raises what `document.loads` raises."""
    return documents.loads(data, source, limits)

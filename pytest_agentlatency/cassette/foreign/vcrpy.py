"""vcrpy's own form and its relatives.

Plain vcrpy and pytest-recording (YAML or JSON), pydantic-ai's `parsed_body`, the httpx-era response (`content`,
`http_version`, `status_code`), and langchain's two parallel lists. Owns their shapes. No times are in any of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.foreign.exchange import (
    Exchange,
    listed,
    mapping,
    request,
    response,
    stored_body,
)


def recognises(tree: Mapping[str, Any]) -> bool:
    """Whether the document has vcrpy's `interactions`, or the parallel `requests` and `responses`."""
    return "interactions" in tree or {"requests", "responses"} <= set(tree)


def exchanges(tree: Mapping[str, Any]) -> list[Exchange]:
    """The exchanges of a vcrpy-like document, in file order. Unreadable, with the place, when broken."""
    return [exchange(pair, where) for where, pair in _pairs(tree)]


def exchange(pair: Mapping[str, Any], where: str) -> Exchange:
    """One `{request, response}` mapping."""
    asked = mapping(pair.get("request"), f"{where}.request")
    answered = mapping(pair.get("response"), f"{where}.response")
    url = _url(asked, where)
    sent, sent_notes = stored_body(asked, f"{where}.request")
    got, got_notes = stored_body(answered, f"{where}.response")
    version = answered.get("http_version", answered.get("protocol"))
    result = response(answered, f"{where}.response", got, version)
    return Exchange(request(asked, url, sent), result, notes=tuple(dict.fromkeys(sent_notes + got_notes)))


def _url(asked: Mapping[str, Any], where: str) -> Any:
    url = asked.get("uri", asked.get("url"))
    if isinstance(url, str):
        return url
    msg = f"{where}.request has no uri: this is no recording of HTTP, or it was edited"
    raise Unreadable(msg)


def _pairs(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "interactions" in tree:
        for index, pair in enumerate(_interactions(tree["interactions"])):
            yield f"interactions[{index}]", mapping(pair, f"interactions[{index}]")
        return
    requests, responses = listed(tree["requests"], "requests"), listed(tree["responses"], "responses")
    if len(requests) != len(responses):
        msg = (
            f"{len(requests)} requests stand beside {len(responses)} responses; the file may be cut off: "
            "restore it from version control, or record it again"
        )
        raise Unreadable(msg)
    for index, (asked, answered) in enumerate(zip(requests, responses, strict=True)):
        yield f"requests[{index}]", {"request": asked, "response": answered}


def _interactions(value: Any) -> list[Any]:
    if value is None:  # `interactions:` with nothing below, as a run without a request leaves it
        return []
    if isinstance(value, dict):  # keyed by number or name instead of listed
        return list(mapping(value, "interactions").values())
    return listed(value, "interactions")

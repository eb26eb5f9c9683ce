"""HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), from browsers, proxies and Polly.js.

Owns its shape and its times: an entry begins at `startedDateTime` (1 ms) and its `timings` follow one another. A body
is stored whole, so its chunks have no times; and where `receive` is 0 the recorder put the whole exchange into `wait`
(Polly.js does), so that the moment of the headers is unknown too.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_agentlatency.cassette.errors import Unreadable
from pytest_agentlatency.cassette.foreign.exchange import (
    Exchange,
    from_base64,
    listed,
    mapping,
    octets,
    request,
    response,
)
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Outcome, Stamps

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = 1_000_000
_LONGEST_MS = 7 * 24 * 3600 * 1000


def recognises(tree: Mapping[str, Any]) -> bool:
    """Whether the document has a `log` with `entries`."""
    log = tree.get("log")
    return isinstance(log, dict) and "entries" in log


def exchanges(tree: Mapping[str, Any]) -> list[Exchange]:
    """The exchanges, by their beginning. Unreadable, with the place, when broken."""
    entries = listed(mapping(tree["log"], "log")["entries"], "log.entries")
    found = [_exchange(each, f"log.entries[{index}]") for index, each in enumerate(entries)]
    return found if any(each.began is None for each in found) else sorted(found, key=lambda each: each.began or 0)


def _exchange(value: Any, where: str) -> Exchange:
    entry = mapping(value, where)
    asked = mapping(entry.get("request"), f"{where}.request")
    answered = mapping(entry.get("response"), f"{where}.response")
    if not isinstance(asked.get("url"), str):
        msg = f"{where}.request has no url"
        raise Unreadable(msg)
    sent = request(asked, asked["url"], _posted(asked))
    began = _began(entry.get("startedDateTime"))
    stamps = _stamps(entry)
    dated = (_EPOCH + timedelta(seconds=began // 10**9)).isoformat() if began is not None else ""
    if answered.get("status") in {0, "0", None}:
        failure = str(answered.get("_error") or answered.get("statusText") or "no response")
        return Exchange(sent, None, dated, began, stamps, outcome=Outcome.ERROR, failure=failure)
    got = response(answered, f"{where}.response", _content(answered, where), answered.get("httpVersion"))
    return Exchange(sent, got, dated, began, stamps)


def _posted(asked: Mapping[str, Any]) -> bytes:
    data = asked.get("postData")
    return octets(mapping(data, "postData").get("text")) if isinstance(data, dict) else b""


def _content(answered: Mapping[str, Any], where: str) -> bytes:
    content = answered.get("content")
    if not isinstance(content, dict):
        return b""
    inner = mapping(content, where)
    text = inner.get("text")
    if inner.get("encoding") != "base64":
        return octets(text)
    return b"".join(from_base64(piece, f"{where}.response.content.text") for piece in _pieces(text))


def _pieces(text: Any) -> list[Any]:
    # Polly.js keeps a compressed body as JSON: a list with the base64 of each chunk.
    if isinstance(text, str) and text.startswith("["):
        try:
            return listed(json.loads(text), "content.text")
        except (ValueError, RecursionError):
            return [text]
    return [text]


def _began(value: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(value)
        return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1) * 1000
    except (TypeError, ValueError, OverflowError):
        return None


def _stamps(entry: Mapping[str, Any]) -> Stamps | None:
    timings = entry.get("timings")
    spent = {name: _ns(each) for name, each in mapping(timings, "").items()} if isinstance(timings, dict) else {}
    wait = spent.get("wait")
    if wait is None:
        return None
    before = (spent.get("blocked") or 0) + (spent.get("dns") or 0)
    opened = before + (spent.get("connect") or 0)
    sent = opened + (spent.get("send") or 0)
    receive = spent.get("receive")
    return Stamps(
        start=Ns(0),
        connect=(Ns(before), Ns(opened)) if opened > before else None,
        sent=Ns(sent) if spent.get("send") is not None else None,
        headers=Ns(sent + wait) if receive else None,
        end=Ns(max(sent + wait + (receive or 0), _ns(entry.get("time")) or 0)),
    )


def _ns(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_MS:
        return None  # -1: does not apply
    return None if math.isnan(value) else round(value * _MS)

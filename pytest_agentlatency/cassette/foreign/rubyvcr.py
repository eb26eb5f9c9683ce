"""Ruby's VCR and R's vcr: `http_interactions`, bodies with an encoding, a date on each.

Owns that shape. `recorded_at` has a resolution of a second and marks the end of the exchange: it dates a recording and
times nothing.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pytest_agentlatency.cassette.foreign import vcrpy
from pytest_agentlatency.cassette.foreign.exchange import Exchange, listed, mapping


def recognises(tree: Mapping[str, Any]) -> bool:
    """Whether the document has `http_interactions`."""
    return "http_interactions" in tree


def exchanges(tree: Mapping[str, Any]) -> list[Exchange]:
    """The exchanges, in file order. Unreadable, with the place, when broken."""
    found = listed(tree["http_interactions"] or [], "http_interactions")
    return [_exchange(each, f"http_interactions[{index}]") for index, each in enumerate(found)]


def _exchange(value: Any, where: str) -> Exchange:
    pair = mapping(value, where)
    read = vcrpy.exchange(pair, where)
    return Exchange(read.request, read.response, dated=_date(pair.get("recorded_at")), notes=read.notes)


def _date(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    for parsed in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parsed(value.removesuffix(" UTC"))
            return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
    return ""

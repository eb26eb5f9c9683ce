"""go-vcr, format 1 and 2 (written by its releases 1 to 4): `url`, `code`, and a `duration` on each response.

Owns that shape. `duration` is what Go's `RoundTrip` took, which returns when the response headers are there; the body
is read after it, untimed. So it is time to headers, and the end of the exchange is unknown.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pytest_agentlatency.cassette.foreign import vcrpy
from pytest_agentlatency.cassette.foreign.exchange import Exchange, listed, mapping
from pytest_agentlatency.model.clock import Ns

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(f"(?:{_PART}){{1,6}}")


def recognises(tree: Mapping[str, Any]) -> bool:
    """Whether the first interaction carries go-vcr's `url`, and `code` or `duration`."""
    found = tree.get("interactions")
    first = found[0] if isinstance(found, list) and found else None  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(first, dict):
        return False
    asked, answered = (_keys(first.get(side)) for side in ("request", "response"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
    return "url" in asked and "uri" not in asked and bool({"code", "duration"} & answered)


def exchanges(tree: Mapping[str, Any]) -> list[Exchange]:
    """The exchanges, in file order. Unreadable, with the place, when broken."""
    found = listed(tree["interactions"], "interactions")
    return [
        _exchange(mapping(each, f"interactions[{index}]"), f"interactions[{index}]") for index, each in enumerate(found)
    ]


def _exchange(value: Any, where: str) -> Exchange:
    pair = mapping(value, where)
    read = vcrpy.exchange(pair, where)
    answered = mapping(pair["response"], where)
    return Exchange(read.request, read.response, to_headers=duration(answered.get("duration")), notes=read.notes)


def duration(value: Any) -> Ns | None:
    """Nanoseconds of a Go duration (`1m2.5s`, `310.2ms`, or an integer of nanoseconds). None when absent or zero.

    Source of the form: Go's `time.ParseDuration`. Zero is what go-vcr writes when it measured nothing.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Ns(value) if 0 < value < 2**63 else None
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        return None
    total = sum(int(Decimal(number) * _UNITS[unit]) for number, unit in re.findall(_PART, value))
    return Ns(total) if 0 < total < 2**63 else None


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()  # pyright: ignore[reportUnknownArgumentType]

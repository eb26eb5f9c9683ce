"""Exchanges to a recording: which of them are model calls, and which are further attempts of one.

Owns the grouping and the clock that dated exchanges share. Refuses to know any container.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_agentlatency.cassette.foreign.exchange import Exchange
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Facts, Failure, Recording, Stamps
from pytest_agentlatency.wire import registry

_RETRIED = frozenset({408, 409, 429})
"""With every 5xx, the statuses after which the SDKs of Anthropic and OpenAI try again by themselves."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Exchanges, told apart."""

    recording: Recording
    others: tuple[Exchange, ...]
    to_headers: dict[int, Ns]
    """Call id -> nanoseconds from its last attempt's request to the response headers, where no more is known."""


def sort(exchanges: Sequence[Exchange]) -> Sorted:
    """Model calls as a recording, in file order, and the rest. Equal requests after a failure are attempts of one."""
    models = [each for each in exchanges if registry.recognise(each.request) is not None]
    chosen = {id(each) for each in models}
    origin = _origin(exchanges)
    calls = _numbered(models)
    attempts = tuple(_attempt(each, call, origin) for each, call in zip(models, calls, strict=True))
    records = tuple(CallRecord(call) for call in dict.fromkeys(calls))
    dates = sorted(each.dated for each in exchanges if each.dated)
    facts = Facts(recorded=dates[0] if dates else "")
    return Sorted(
        Recording(attempts, records, facts=facts),
        tuple(each for each in exchanges if id(each) not in chosen),
        {call: each.to_headers for each, call in zip(models, calls, strict=True) if each.to_headers is not None},
    )


def _origin(exchanges: Iterable[Exchange]) -> int | None:
    """Nanoseconds since the epoch at which the run's clock starts; None unless every exchange says when it began."""
    began = [each.began for each in exchanges]
    known = [each for each in began if each is not None]
    return min(known) if known and len(known) == len(began) else None


def _numbered(models: Sequence[Exchange]) -> list[int]:
    numbers: list[int] = []
    for index, each in enumerate(models):
        again = index > 0 and _retries(models[index - 1], each)
        numbers.append(numbers[-1] if again else (numbers[-1] + 1 if numbers else 1))
    return numbers


def _retries(before: Exchange, after: Exchange) -> bool:
    one, other = before.request, after.request
    same = (one.method, one.url, one.body) == (other.method, other.url, other.body)
    return same and _failed(before)


def _failed(exchange: Exchange) -> bool:
    if exchange.response is None:
        return True
    status = exchange.response.status
    return status in _RETRIED or status >= 500  # noqa: PLR2004


def _attempt(exchange: Exchange, call: int, origin: int | None) -> Attempt:
    failure = Failure("TransportError", exchange.failure) if exchange.failure else None
    return Attempt(
        call, exchange.request, exchange.response, _stamps(exchange, origin), outcome=exchange.outcome, failure=failure
    )


def _stamps(exchange: Exchange, origin: int | None) -> Stamps | None:
    """The exchange's stamps on the run's clock; None when they can't be brought onto one."""
    own = exchange.stamps
    if own is None or origin is None or exchange.began is None:
        return None
    offset = exchange.began - origin

    def moved(moment: Ns) -> Ns:
        return Ns(moment + offset)

    return replace(
        own,
        start=moved(own.start),
        end=moved(own.end),
        connect=(moved(own.connect[0]), moved(own.connect[1])) if own.connect else None,
        sent=moved(own.sent) if own.sent is not None else None,
        headers=moved(own.headers) if own.headers is not None else None,
    )

"""The seam: the leaf transports of httpx and httpx2, sync and async, where every SDK's requests end.

Owns the patches and the two thin adapters. Knows nothing of what becomes of the observations.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast
from unittest import mock

from pytest_agentlatency.capture import coding, failures, streams
from pytest_agentlatency.capture.eventstreams import asks_for_events
from pytest_agentlatency.capture.openattempt import OpenAttempt
from pytest_agentlatency.capture.traffic import Observer, Playback, Player, Traffic
from pytest_agentlatency.capture.warmup import OWN_TRANSPORT
from pytest_agentlatency.cassette.headers import clean_url, keep_other_request, keep_request, keep_response
from pytest_agentlatency.cassette.vcr import beneath, bypassed
from pytest_agentlatency.model.recording import Failure, Headers, Outcome, Request
from pytest_agentlatency.wire import registry

FAMILIES = ("httpx", "httpx2")
_WRAPPING_DEPTH = 3
# A replayed body is given decoded and whole; these headers would announce something else.
_FRAMING = {"content-encoding", "content-length", "transfer-encoding"}

Send = Callable[[Any, Any], Any]
Leaves = Mapping[tuple[str, str], Send]


def leaves() -> Leaves:
    """The leaf methods as they are now, by family and method name."""
    found: dict[tuple[str, str], Send] = {}
    for family in installed():
        found[family.__name__, "handle_request"] = family.HTTPTransport.handle_request
        found[family.__name__, "handle_async_request"] = family.AsyncHTTPTransport.handle_async_request
    return found


def installed() -> Iterable[ModuleType]:
    """The httpx families of this environment, imported."""
    for name in FAMILIES:
        try:
            yield sys.modules.get(name) or importlib.import_module(name)
        except ImportError:
            continue


def install(traffic: Traffic, originals: Leaves, stack: ExitStack) -> None:
    """Put the seam in place in every family until the stack closes.

    `originals` are the leaf methods from before vcrpy patched them: a model call goes there. What is no model call goes
    to the method as it is now, which is vcrpy's.
    """
    for family in installed():
        for side in _sides(family):
            seam = _Seam(family, traffic, originals[family.__name__, side.method], getattr(side.leaf, side.method))
            stack.enter_context(mock.patch.object(side.leaf, side.method, side.adapt(seam)))
            stack.enter_context(mock.patch.object(side.client, "_transport_for_url", _picker(seam, side)))


@dataclass(frozen=True, slots=True)
class _Seam:
    """What both adapters share: everything but the awaiting."""

    family: ModuleType
    traffic: Traffic
    send: Send
    other: Send

    def model(self, request: Any) -> Request | None:
        """A request, body read, as a value that may be stored; None when it is no model call."""
        sent = Request(request.method, str(request.url), _pairs(request.headers), request.content)
        if registry.recognise(sent) is None:
            return None
        self.traffic.learned.add(sent)
        return Request(sent.method, clean_url(sent.url), keep_request(sent.headers), sent.body)

    def observed(self, request: Any, model: Request, traffic: Observer, trace: Callable[..., Any]) -> OpenAttempt:
        """A request about to leave, with the transport's own trace events wired to its attempt."""
        attempt = traffic.observe(model)
        request.extensions = {**request.extensions, "trace": trace(attempt, request.extensions.get("trace"))}
        return attempt

    def answered(self, attempt: OpenAttempt, response: Any, tee: type) -> Any:
        """The response with its body teed."""
        whole = response.is_closed  # a mock's answer: its body is there, read and decoded, and no stream will be
        coded = "" if whole else response.headers.get("content-encoding", "")
        attempt.answered(
            response.status_code,
            keep_response(_pairs(response.headers)),
            reason=response.reason_phrase,
            http_version=response.http_version,
            coding=coded,
            decoder=coding.decoder(coded),
        )
        if whole:
            attempt.whole(response.content)
        else:
            response.stream = tee(response.stream, attempt)
        return response

    def streaming(self, request: Any) -> OpenAttempt | None:
        """An event stream about to be opened and recorded; None where it is not."""
        if not isinstance(self.traffic, Observer) or self.traffic.event_streams is None:
            return None
        sent = Request(request.method, str(request.url), _pairs(request.headers))
        self.traffic.learned.add(sent)
        kept = tuple((name, value) for name, value in sent.headers if keep_other_request(name))
        recorder = self.traffic.recorder
        attempt = OpenAttempt(recorder, 0, Request(sent.method, clean_url(sent.url), kept), recorder.now())
        self.traffic.event_streams.append(attempt)
        return attempt

    def held(self, request: Any, hold: type) -> Any:
        """A recorded event stream that had not ended, open again; None where there is none."""
        if not isinstance(self.traffic, Player):
            return None
        recorded = self.traffic.open_streams.take(str(request.url))
        if recorded is None:
            return None
        response = recorded["response"]
        headers = [(name, value) for name, values in response["headers"].items() for value in values]
        return self.family.Response(
            response["status"]["code"],
            headers=[pair for pair in headers if pair[0].lower() not in _FRAMING],
            stream=hold(response["body"]["string"]),
        )

    def played(self, playback: Playback, play: type) -> Any:
        """A recorded attempt as a response of the family; raises what the recorded one raised before any header."""
        recorded = playback.recorded.response
        if recorded is None and playback.recorded.outcome is Outcome.CANCELLED:
            msg = (
                "the agent waits for an answer where the recorded run gave up waiting: the cassette holds none. "
                "Record it again with --latency-mode=record."
            )
            raise playback.traffic.fail(msg)
        if recorded is None:
            failure = playback.recorded.failure or Failure("ReadError", "recorded without an answer")
            raise failures.raised(self.family, failure)
        return self.family.Response(
            recorded.status,
            headers=[(name, value) for name, value in recorded.headers if name.lower() not in _FRAMING],
            stream=play(playback, self.family),
            extensions={"http_version": recorded.http_version.encode(), "reason_phrase": recorded.reason.encode()},
        )


def _unseen(send: Send) -> Send:
    """A model call past the seam is recorded already: vcrpy, below it, must not take it down a second time."""

    def bypassing(transport: Any, request: Any) -> Any:
        with bypassed():
            return send(transport, request)

    return bypassing


def _unseen_async(send: Send) -> Send:
    async def bypassing(transport: Any, request: Any) -> Any:
        with bypassed():
            return await send(transport, request)

    return bypassing


def _sync(seam: _Seam) -> Send:
    bodies = streams.of(seam.family)

    def handle_request(transport: Any, request: Any) -> Any:
        if asks_for_events(request):
            attempt = seam.streaming(request)
            if attempt is not None:
                return seam.answered(attempt, seam.send(transport, request), bodies.tee)
            return seam.held(request, bodies.hold) or seam.other(transport, request)
        if not _may_be_model(request):
            return seam.other(transport, request)
        request.read()
        model = seam.model(request)
        if model is None:
            return seam.other(transport, request)
        if not isinstance(seam.traffic, Observer):
            return seam.played(seam.traffic.play(model), bodies.play)
        attempt = seam.observed(request, model, seam.traffic, _trace)
        try:
            response = seam.send(transport, request)
        except BaseException as error:
            attempt.finish(streams.outcome_of(error), failures.failure_of(error))
            raise
        return seam.answered(attempt, response, bodies.tee)

    return handle_request


def _async(seam: _Seam) -> Send:
    bodies = streams.of(seam.family)

    async def handle_async_request(transport: Any, request: Any) -> Any:
        if asks_for_events(request):
            attempt = seam.streaming(request)
            if attempt is not None:
                return seam.answered(attempt, await seam.send(transport, request), bodies.async_tee)
            return seam.held(request, bodies.async_hold) or await seam.other(transport, request)
        if not _may_be_model(request):
            return await seam.other(transport, request)
        await request.aread()
        model = seam.model(request)
        if model is None:
            return await seam.other(transport, request)
        if not isinstance(seam.traffic, Observer):
            playback = seam.traffic.play(model)
            await playback.wait_async(None)
            if playback.recorded.response is None:
                await playback.until_cancelled()
            return seam.played(playback, bodies.async_play)
        attempt = seam.observed(request, model, seam.traffic, _async_trace)
        try:
            response = await seam.send(transport, request)
        except BaseException as error:
            attempt.finish(streams.outcome_of(error), failures.failure_of(error))
            raise
        return seam.answered(attempt, response, bodies.async_tee)

    return handle_async_request


def _may_be_model(request: Any) -> bool:
    """Cheap, and before the body is read: uploads and downloads of the agent's tools are left alone."""
    kind = request.headers.get("content-type")
    if kind is None:  # a body given as bytes, of which raw clients often don't say what it is
        return request.method == "POST" and "content-length" in request.headers
    return request.method == "POST" and "json" in kind


def _pairs(headers: Any) -> Headers:
    return tuple(headers.multi_items())


def _trace(attempt: OpenAttempt, user: Any) -> Callable[[str, Any], None]:
    def trace(event: str, info: Any) -> None:
        attempt.traced(event)
        if user is not None:
            user(event, info)

    return trace


def _async_trace(attempt: OpenAttempt, user: Any) -> Callable[[str, Any], Any]:
    async def trace(event: str, info: Any) -> None:
        attempt.traced(event)
        if user is not None:
            await user(event, info)

    return trace


@dataclass(frozen=True, slots=True)
class _Side:
    """The sync or the async half of a family."""

    client: Any
    leaf: type
    method: str
    adapt: Callable[[_Seam], Send]
    unseen: Callable[[Send], Send]


def _sides(family: ModuleType) -> Iterable[_Side]:
    yield _Side(family.Client, family.HTTPTransport, "handle_request", _sync, _unseen)
    yield _Side(family.AsyncClient, family.AsyncHTTPTransport, "handle_async_request", _async, _unseen_async)


def _picker(seam: _Seam, side: _Side) -> Send:
    """A client's choice of transport, with one that never reaches a leaf put behind the seam.

    Such are aiohttp behind an httpx face, mocks, a user's own: they would be neither seen nor, in a replay, stopped.
    """
    original = side.client._transport_for_url  # noqa: SLF001  # no public hook sees every client's transport

    @functools.wraps(original)
    def pick(self: Any, url: Any) -> Any:
        transport: object = original(self, url)
        if getattr(transport, OWN_TRANSPORT, False) or reaches(transport, side.leaf):
            return transport
        send = getattr(type(transport), side.method)
        return _Shielded(transport, side.adapt(_Seam(seam.family, seam.traffic, side.unseen(beneath(send)), send)))

    return pick


class _Shielded:
    """A foreign transport whose requests pass the seam first."""

    def __init__(self, transport: Any, handle: Send) -> None:
        self._transport, self._handle = transport, handle

    def handle_request(self, request: Any) -> Any:
        return self._handle(self._transport, request)

    async def handle_async_request(self, request: Any) -> Any:
        return await self._handle(self._transport, request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def reaches(transport: object, leaf: type, depth: int = _WRAPPING_DEPTH) -> bool:
    """Whether a transport is a leaf, or holds one in its attributes at most `depth` objects down."""
    if isinstance(transport, leaf):
        return True
    if depth == 0 or not hasattr(transport, "__dict__"):
        return False
    inner = (item for value in tuple(vars(transport).values()) for item in _held(value))
    return any(reaches(item, leaf, depth - 1) for item in inner if not isinstance(item, type))


def _held(value: Any) -> Iterable[Any]:
    return cast("Mapping[Any, Any]", value).values() if isinstance(value, dict) else (value,)

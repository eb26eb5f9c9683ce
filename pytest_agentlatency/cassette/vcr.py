"""HTTP that is no model call, recorded and replayed by vcrpy: the one file that imports it.

Owns what is taken down, what is refused in replay, and how vcrpy is put in place. Writes no file. Refuses to
know model calls: they are taken by whoever patches on top.
"""

import http.client
import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import Any, Self
from unittest import mock

from pytest_agentlatency.cassette import callers, plainbody
from pytest_agentlatency.cassette.headers import clean_url
from pytest_agentlatency.cassette.interactions import (
    Interaction,
    Origin,
    Seen,
    cleaned,
    copied,
    interaction,
    origin,
    same_body,
    seen,
)
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.model.recording import Request as Sent

_BYPASS: ContextVar[bool] = ContextVar("agentlatency_bypass", default=False)
_BEFORE_REQUEST = "before_record_request"
_ASKED = "agentlatency_asked"
_BY_HOST = ("ignore_hosts", "ignore_localhost")
HONOURED = (
    "filter_headers", "filter_query_parameters", "filter_post_data_parameters", "filter_nested_post_data_parameters",
    _BEFORE_REQUEST, "before_record_response", *_BY_HOST,
)  # fmt: skip
"""Names of vcrpy's configuration that work here; what ignores hosts is for HTTP that is no model call only."""
_MATCH = ("method", "path", "query", "agentlatency_origin", "agentlatency_body")


class OtherHTTP:
    """Context in which vcrpy serves or records every request that reaches it.

    In replay a request that wasn't recorded raises vcrpy's CannotOverwriteExistingCassetteException and stands in
    `misses`. In record mode `interactions` holds what was recorded, in the order in which it was asked for.
    """

    def __init__(
        self,
        interactions: Sequence[Interaction] = (),
        *,
        record: bool,
        hooks: Mapping[str, Any] | None = None,
        learned: Learned | None = None,
        refuse: Callable[[Seen], BaseException] | None = None,
        models: Iterable[str] = (),
        called: Callable[[], Iterable[str]] = tuple[str],
    ) -> None:
        """`hooks`: what of vcrpy's configuration is honoured, see `HONOURED`; run on what is live, never on loading.

        `learned` is told the credentials that requests carried. `refuse` makes what a missing request raises in place
        of vcrpy's exception: a client would take that one for a broken connection, try again and tell nothing of it.
        `models` are the URLs of the recorded model calls, `called` gives those of the live ones so far: what is asked
        of a model's host beside them moves with it.
        """
        self._models, self._called = frozenset(map(origin, models)), called
        self._refuse = refuse
        self._learned = learned or Learned()
        self._recorded = tuple(interactions)
        self._record = record
        self._hooks = honoured(hooks or {})
        self._context = ExitStack()
        self._cassette: Any = None
        self.misses: list[Seen] = []
        self._stacks: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Import vcrpy and patch the HTTP libraries that are installed."""
        self._context = ExitStack()
        self._cassette = self._context.enter_context(self._use_cassette())
        _let_aiohttp_by(self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the HTTP libraries back."""
        self._context.__exit__(kind, error, trace)

    @property
    def interactions(self) -> tuple[Interaction, ...]:
        """In record mode what was recorded so far, else what was given; bodies are bytes."""
        if not self._record or self._cassette is None:
            return self._recorded
        # Completed later isn't asked for later: of equal requests a replay answers the first first.
        pairs = sorted(self._cassette.data, key=lambda pair: getattr(pair[0], _ASKED, sys.maxsize))
        return tuple(interaction(*pair) for pair in pairs)

    @property
    def unused(self) -> tuple[Seen, ...]:
        """Recorded requests that the agent has not made."""
        if self._record or self._cassette is None:
            return ()
        counts = self._cassette.play_counts
        return tuple(seen(each) for at, each in enumerate(self._cassette.requests) if not counts[at])

    def _same_origin(self, live: Any, recorded: Any) -> bool:
        """The recorded host; or another one in place of the model's, where the agent's client has a new base URL."""
        asked, held = origin(live.uri), origin(recorded.uri)
        if asked == held or held not in self._models:
            return asked == held
        return asked in map(origin, self._called()) or asked not in self._origins

    @cached_property
    def _origins(self) -> frozenset[Origin]:
        return self._models | {origin(str(each["request"]["uri"])) for each in self._recorded}

    def stack(self, url: str) -> str:
        """The HTTP library that asked for a URL, as `interactions` spell it, while this context was in place."""
        return self._stacks.get(url, "another client")

    def _learn(self, request: Any) -> Any:
        self._stacks[clean_url(request.uri)] = callers.library(inspect.currentframe())
        fields = tuple((name, plainbody.header(value)) for name, value in request.headers.items())
        self._learned.add(Sent(request.method, request.uri, fields, b""))
        return request

    def _missing(self, request: Any) -> None:
        refused = seen(request, callers.library(inspect.currentframe()))
        if refused not in self.misses:
            self.misses.append(refused)
        if self._refuse is not None:
            raise self._refuse(refused)

    def _use_cassette(self) -> Any:
        import vcr  # noqa: PLC0415 -- half a second, for those who record or replay only

        vcrpy: Any = vcr
        missing, order = self._missing, count()

        class Noting(vcrpy.cassette.Cassette):  # type: ignore[misc]
            """A cassette that keeps which requests were refused."""

            agentlatency = True
            loading = False

            def _load(self) -> None:
                """Without the hooks, which would run over what is stored and may drop it."""
                plain: Any = super()
                self.loading = True
                plain._load()  # noqa: SLF001 -- the one place where vcrpy fills a cassette
                self.loading = False

            def append(self, request: Any, response: Any) -> None:
                """Take an exchange, as it is when it is loaded."""
                plain: Any = super()
                if self.loading:
                    self.data.append((request, response))
                else:
                    plain.append(request, response)

            def can_play_response_for(self, request: Any) -> Any:
                """Called by every stub as its first question about a request."""
                plain: Any = super()
                if not hasattr(request, _ASKED):
                    setattr(request, _ASKED, next(order))
                return plain.can_play_response_for(request)

            def filter_request(self, request: Any) -> Any:
                """Called by every stub as its last question before it refuses, and not otherwise in replay."""
                plain: Any = super()
                kept = plain.filter_request(request)
                if kept and self.write_protected:
                    missing(request)
                return kept

            def play_response(self, request: Any) -> Any:
                """Called unasked for where a redirect leads, which then may not be there."""
                plain: Any = super()
                try:
                    return plain.play_response(request)
                except vcrpy.errors.UnhandledHTTPRequestError:
                    missing(request)
                    raise

        recorder = vcrpy.VCR(match_on=_MATCH, decode_compressed_response=True)
        recorder.register_matcher("agentlatency_body", same_body)
        recorder.register_matcher("agentlatency_origin", self._same_origin)
        recorder.register_persister(_Memory(self._recorded))
        mode = vcrpy.mode.ALL if self._record else vcrpy.mode.NONE
        hooks = {
            **self._hooks,
            _BEFORE_REQUEST: (_unless_bypassed, self._learn, *_several(self._hooks, _BEFORE_REQUEST), cleaned),
        }
        config = recorder.get_merged_config(path="agentlatency", record_mode=mode, **hooks)
        return vcrpy.cassette.CassetteContextDecorator.from_args(Noting, **config)


class Filters:
    """A user's hooks over single requests and responses, as vcrpy runs them; None: the hook drops it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        import vcr  # noqa: PLC0415

        vcrpy: Any = vcr
        hooks = {name: value for name, value in honoured(config).items() if name not in _BY_HOST}
        merged = vcrpy.VCR().get_merged_config(path="agentlatency", **hooks)
        self._before = merged["before_record_request"], merged["before_record_response"]

    def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Any:
        """A request of vcrpy's, with `method`, `uri`, `headers` and `body`."""
        from vcr.request import Request  # noqa: PLC0415

        return self._before[0](Request(method, url, body, dict(headers)))

    def response(self, response: dict[str, Any]) -> Mapping[str, Any] | None:
        """A response in vcrpy's form: `status`, `headers`, `body`."""
        filtered: Mapping[str, Any] | None = self._before[1](response)
        return filtered


def honoured(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a vcrpy configuration is taken over; modes, paths, matchers and formats are not vcrpy's here."""
    return {name: config[name] for name in HONOURED if config.get(name)}


def _several(hooks: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    value: Iterable[Any] | Callable[..., Any] = hooks.get(name, ())
    return (value,) if callable(value) else tuple(value)


@contextmanager
def bypassed() -> Generator[None]:
    """Let requests of this context through to the network unseen: what a recorded call does beneath its transport."""
    token = _BYPASS.set(True)
    try:
        yield
    finally:
        _BYPASS.reset(token)


def foreign_cassette_active() -> bool:
    """Whether a vcrpy cassette that isn't ours is in place now: pytest-recording's marker, a plain `use_cassette`."""
    if "vcr" not in sys.modules:
        return False
    cassette = getattr(http.client.HTTPConnection, "cassette", None)
    return cassette is not None and not getattr(cassette, "agentlatency", False)


def beneath(method: Callable[..., Any]) -> Callable[..., Any]:
    """What vcrpy put its stub in place of, where a method is one: it reads a whole body before it hands it on."""
    stubbed = getattr(method, "__globals__", {}).get("__name__") == "vcr.stubs.httpx_stubs"
    return getattr(method, "__wrapped__", method) if stubbed else method


def _let_aiohttp_by(stack: ExitStack) -> None:
    """Get bypassed requests around vcrpy's stub of aiohttp, which reads the whole body before it hands it on."""
    aiohttp: Any = sys.modules.get("aiohttp")
    if aiohttp is None:
        return
    stubbed = aiohttp.ClientSession._request  # noqa: SLF001 -- what vcrpy patches
    original = inspect.unwrap(stubbed)

    async def request(session: Any, *args: Any, **kwargs: Any) -> Any:
        return await (original if _BYPASS.get() else stubbed)(session, *args, **kwargs)

    stack.enter_context(mock.patch.object(aiohttp.ClientSession, "_request", request))


class _Memory:
    """vcrpy's persister seam, without a file."""

    def __init__(self, interactions: Sequence[Interaction]) -> None:
        self._interactions = interactions

    def load_cassette(self, _path: object, serializer: object) -> tuple[list[Any], list[Any]]:
        del serializer
        from vcr.request import Request  # noqa: PLC0415

        requests = [cleaned(Request(**each["request"])) for each in self._interactions]
        return requests, [copied(each["response"]) for each in self._interactions]

    def save_cassette(self, _path: object, _cassette: object, serializer: object) -> None:
        """Nothing is written: the interactions are taken from the cassette."""


def _unless_bypassed(request: Any) -> Any:
    return None if _BYPASS.get() else request

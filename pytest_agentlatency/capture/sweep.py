"""A sweep against a live endpoint: prompts of many sizes that no cache knows, timed at the transport.

Owns the requests, their order and when it has seen enough. Refuses to know terminals and files; the timing is the
session's, the fit `analysis.prefill`'s.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Self
from uuid import uuid4

from pytest_agentlatency.analysis import assembly, fits, prefill
from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.fits import Key
from pytest_agentlatency.analysis.prefill import LatencyModel, NoFit, Sample
from pytest_agentlatency.capture import transport
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.cassette.headers import clean_url
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.veil import Veil
from pytest_agentlatency.model.mode import Mode

OUTPUT_TOKENS = 4
"""Few, because they cost time and say nothing of prefill; below 8, a fast answer isn't taken for a buffered one."""
ENOUGH = 6
"""Calls before which a sweep doesn't stop by itself."""
_WARM_UP = 50
_FIRST_ERROR = 400
_TOO_LARGE = frozenset({400, 413, 422})
_CHARACTERS = 4.0  # a token, until the endpoint has said how many it counts
_SNIPPET = 300
_TIMEOUT = 600.0
_TEXT = """agent answer before parcel driver street number table window morning result search light paper river garden
letter market winter yellow simple bridge doctor engine family island"""


class SweepError(Exception):
    """The endpoint can't be measured: what it answered, and what to do."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What is measured."""

    url: str
    """Base URL as the provider's SDK takes it: without `/v1` for Anthropic, with it for OpenAI and its likes."""
    model: str
    api: str = "anthropic"
    """`anthropic` (Messages) or `openai` (Chat Completions)."""
    key: str = field(default="", repr=False)
    tier: str = ""
    """Service tier to ask for; empty for the default."""

    @property
    def address(self) -> str:
        """Where requests go."""
        return f"{self.url.rstrip('/')}/{'v1/messages' if self.api == 'anthropic' else 'chat/completions'}"

    @property
    def shown(self) -> str:
        """The address as it may be shown."""
        return Veil(Learned([self.key])).over(clean_url(self.address))

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request."""
        # A connection each: some servers drop those that they said they would keep. Connecting is not part of prefill.
        if self.api == "anthropic":
            return {"x-api-key": self.key or "none", "anthropic-version": "2023-06-01", "connection": "close"}
        return {"authorization": f"Bearer {self.key or 'none'}", "connection": "close"}

    def body(self, text: str) -> dict[str, Any]:
        """A streamed request that puts a text before the model."""
        common: dict[str, Any] = {
            "model": self.model,
            "stream": True,
            "max_tokens": OUTPUT_TOKENS,
            "messages": [{"role": "user", "content": text}],
        }
        common |= {"service_tier": self.tier} if self.tier else {}
        return common if self.api == "anthropic" else common | {"stream_options": {"include_usage": True}}


def sizes(calls: int, least: int, most: int) -> tuple[int, ...]:
    """Prompt sizes in tokens, evenly spaced in their logarithm, small and large by turns, the smallest first.

    A server that gets slower while it is measured must not look like one that large prompts slow down.
    """
    ratio = (most / least) ** (1 / max(1, calls - 1))
    rising = [round(least * ratio**step) for step in range(calls)]
    half = (calls + 1) // 2
    mixed = chain.from_iterable(zip_longest(rising[:half], reversed(rising[half:])))
    return tuple(each for each in mixed if each is not None)


@dataclass(frozen=True, slots=True)
class Measured:
    """One call of a sweep, and what is known after it."""

    number: int
    asked: int
    """Tokens that were aimed at."""
    sample: Sample | None
    """None: the call gave no usable time, or was refused as too large."""
    model: LatencyModel | None
    note: str = ""


@dataclass(slots=True)
class Sweep:
    """A sweep under way; a context manager that holds the connection."""

    endpoint: Endpoint
    asked: Sequence[int]
    samples: list[Sample] = field(default_factory=list[Sample])
    key: Key | None = None
    """Provider, model and tier, as the endpoint's answers say."""
    notes: list[str] = field(default_factory=list[str])
    _client: Any = None
    _characters: float = _CHARACTERS
    _most: int | None = None

    def __enter__(self) -> Self:
        family = next(iter(transport.installed()), None)
        if family is None:
            msg = "a sweep needs httpx or httpx2: pip install httpx"
            raise SweepError(msg)
        self._client = family.Client(timeout=_TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def tokens(self) -> int:
        """Input tokens that the whole sweep would send, about."""
        return sum(self.asked) + _WARM_UP

    def run(self, seen: Callable[[Measured], object] = lambda _: None) -> LatencyModel:
        """Make the calls until the model may gate, or all are made. SweepError when nothing could be learned."""
        self._call(_WARM_UP)  # connection and first-use costs are nobody's prefill
        for number, tokens in enumerate(self.asked, 1):
            if self._most is None or tokens < self._most:
                measured = self._measure(number, tokens)
                seen(measured)
                if measured.model is not None and measured.model.gates and len(self.samples) >= ENOUGH:
                    return measured.model
        found = self._fitted()
        if found is None:
            msg = f"only {len(self.samples)} of {len(self.asked)} calls gave a time: three are needed. {self._said()}"
            raise SweepError(msg)
        return found

    def _said(self) -> str:
        return " ".join(dict.fromkeys(self.notes)) or "Does the endpoint stream, and report its usage?"

    def _measure(self, number: int, tokens: int) -> Measured:
        reading = self._call(tokens)
        if reading is None:
            self._most = tokens
            return Measured(number, tokens, None, self._fitted(), f"refused {tokens:,} tokens: no larger ones are sent")
        sample, note = fits.sample(reading), ""
        if sample is None:
            note = f"a call of {tokens:,} tokens gave no time ({', '.join(sorted(reading.call.flags)) or 'no stream'})."
            self.notes.append(note)
        else:
            self.samples.append(sample)
            if sample.cached > sample.uncached:
                note = f"{sample.cached:,} tokens of a new prompt came from a cache."
                self.notes.append(note)
        return Measured(number, tokens, sample, self._fitted(), note)

    def _fitted(self) -> LatencyModel | None:
        found = prefill.fit(self.samples)
        return None if isinstance(found, NoFit) or found.from_prior else found

    def _call(self, tokens: int) -> Reading | None:
        """One call; None when the endpoint refused it as too large."""
        text = prompt(round(tokens * self._characters))
        with Session(Plan(Mode.LIVE, "", counter())) as session:
            refusal = self._send(text)
            recording = session.recording()
        if refusal is not None:
            self._refused(*refusal, tokens)
            return None
        reading = next(iter(assembly.read(recording)), None)
        if reading is None:
            msg = f"no model call was recognised at {self.endpoint.shown}: is --api {self.endpoint.api!r} right?"
            raise SweepError(msg)
        self.key = fits.key_of(reading)
        if reading.call.usage.context and tokens > _WARM_UP:
            self._characters = len(text) / reading.call.usage.context
        return reading

    def _send(self, text: str) -> tuple[int, str] | None:
        """Send one request and read its answer to the end; status and text of a refusal."""
        family = next(iter(transport.installed()))
        endpoint = self.endpoint
        try:
            with self._client.stream(
                "POST", endpoint.address, headers=dict(endpoint.headers), json=endpoint.body(text)
            ) as response:
                body = b"".join(response.iter_bytes())
        except family.HTTPError as error:
            said = f"can't be reached: {type(error).__name__}: {error}"
            raise self._failure(said) from None
        return None if response.status_code < _FIRST_ERROR else (response.status_code, body.decode(errors="replace"))

    def _refused(self, status: int, said: str, tokens: int) -> None:
        if status in _TOO_LARGE and self.samples:
            self.notes.append(f"{tokens:,} tokens were refused with status {status}.")
            return
        answer = f"answered {status}: {said}"
        raise self._failure(answer)

    def _failure(self, said: str) -> SweepError:
        """What went wrong at the endpoint; some echo the key."""
        shown = Veil(Learned([self.endpoint.key])).over(said)
        return SweepError(f"{self.endpoint.shown} {shown[:_SNIPPET]}")


def prompt(characters: int) -> str:
    """A text of about so many characters that no cache has seen: what differs stands in front."""
    nonce = uuid4().hex
    return f"{nonce} Say yes. " + " ".join(_drawn(nonce, characters))


def _drawn(seed: str, characters: int) -> Iterator[str]:
    drawn, words, length = random.Random(seed), _TEXT.split(), 0  # noqa: S311 - filler, nothing secret
    while length < characters:
        word = drawn.choice(words)
        length += len(word) + 1
        yield word

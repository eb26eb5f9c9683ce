"""What was observed, before anything is made of it: bytes with times. A cassette stores this and nothing else.

Times are integer nanoseconds on the run's clock. A None time was not seen; it is never filled in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_agentlatency.model.clock import Ns

Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order, names as received."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, body complete."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response: its body at the boundaries at which it arrived, content coding removed."""

    status: int
    headers: Headers = ()
    chunks: tuple[bytes, ...] = ()
    reason: str = ""
    http_version: str = "HTTP/1.1"
    coding: str = ""
    """`content-encoding` as received (`gzip`, `br`, ...); the chunks are decoded."""

    @property
    def body(self) -> bytes:
        """The chunks joined."""
        return b"".join(self.chunks)

    def header(self, name: str) -> str | None:
        """First value of a header field, by case-insensitive name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Outcome(StrEnum):
    """How an attempt ended, seen from the transport."""

    COMPLETE = "complete"
    CLOSED = "closed"
    """The agent closed the response before its end."""
    ERROR = "error"
    """The connection or the stream failed; `Attempt.failure` says how. An HTTP error status is `complete`."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SystemFailure:
    """An error of the operating system, which an SDK may look for below its HTTP library's."""

    kind: str
    """Class name: `ConnectionResetError`, `gaierror`."""
    message: str
    code: str = ""
    """Name of its number, `ECONNRESET`, as the number itself differs between systems; empty where it has none."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as it can be raised again."""

    kind: str
    """Class name as the HTTP library calls it, without its module: `ReadError`, `ConnectTimeout`."""
    message: str = ""
    system: SystemFailure | None = None
    """The operating system's error at the bottom of its causes."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """When the bytes of one attempt moved."""

    start: Ns
    """The transport was entered."""
    end: Ns
    """The body was read to its end, closed, or failed."""
    connect: tuple[Ns, Ns] | None = None
    """TCP and TLS set-up, when this attempt opened a connection."""
    sent: Ns | None = None
    """The request body was on its way, complete."""
    headers: Ns | None = None
    asked: tuple[Ns, ...] = ()
    """For each chunk, when the consumer asked for it."""
    arrived: tuple[Ns, ...] = ()
    """For each chunk, when it arrived."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP try of a call."""

    call: int
    """`CallRecord.id` of the call that it tries to answer."""
    request: Request
    response: Response | None = None
    """None when the attempt failed before any header came."""
    stamps: Stamps | None = None
    """None for a foreign recording that carries no times."""
    outcome: Outcome = Outcome.COMPLETE
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One model call as the SDK's caller sees it. Numbered from 1 in the order in which the calls were made."""

    id: int
    sdk: str = ""
    """`anthropic 2.14.0`; empty when no SDK hook saw the call."""
    entered: Ns | None = None
    returned: Ns | None = None
    """The SDK gave back control: a message, or, for a stream, the stream object."""
    backoffs: tuple[tuple[Ns, Ns], ...] = ()
    """Sleeps of the SDK between attempts."""
    parent: int | None = None
    """`ToolRecord.id` of the tool whose body made the call (a sub-agent)."""
    delivered: Ns | None = None
    """The agent handed its first output of this turn on to its user. None: it was not told."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One execution of a tool."""

    id: int
    name: str
    start: Ns
    """Arguments handed over, not yet validated."""
    end: Ns
    body: tuple[Ns, Ns] | None = None
    """The tool's own function, when validation around it could be told apart."""
    parent: int | None = None
    """Id of the tool in whose body this one ran."""
    error: bool = False
    rejected: bool = False
    """Its arguments failed validation, so that the body never ran: the model must ask again."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Time that is nobody's latency (a human's approval); taken out of every figure, and reported."""

    start: Ns
    end: Ns
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a cassette says of itself beside the bytes."""

    test: str = ""
    """Node id of the test that recorded it, without the root directory."""
    recorded: str = ""
    """UTC time of the recording, ISO 8601, seconds."""
    counter: str = ""
    """Id of the token counter in force."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Distribution name -> version of what took part (python, SDK, HTTP library, this plugin)."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that was observed of one run."""

    attempts: tuple[Attempt, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    tools: tuple[ToolRecord, ...] = ()
    pauses: tuple[Pause, ...] = ()
    bounds: tuple[Ns, Ns] | None = None
    """Start and end of the run where the test stated them; otherwise first and last thing observed."""
    facts: Facts = Facts()

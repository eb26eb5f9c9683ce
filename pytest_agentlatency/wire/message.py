"""The common form of what goes over the wire: a prompt, an answer, and the moments inside a stream.

Owns no provider's field names. A provider (see `Provider`) turns bytes into these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_agentlatency.model.recording import Request, Response
from pytest_agentlatency.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Block:
    """One content block of a message, of the system prompt, or of a tool's result."""

    kind: str
    """`text`, `thinking`, `tool_use`, `tool_result`, `image`, `document`, or the provider's own word."""
    text: str
    """What a tokenizer would be given: text, a call's arguments as JSON, a result's text; no base64, no signature."""
    path: str
    """Where it stands in the request: `messages[4].content[0]`, `system[0]`."""
    raw: str
    """The block as canonical JSON (sorted keys, no spaces) without cache markers: two blocks are equal when this is."""
    name: str = ""
    """Tool name, for a tool call (for a result, when the call is in the same request)."""
    id: str = ""
    """Tool call id."""
    media: bytes = b""
    """Leading bytes of an image or document, enough to read its dimensions."""
    cache_marked: bool = False
    """The block carries a cache breakpoint."""
    error: bool = False
    """A tool result that reports an error."""
    wire: str = field(default="", compare=False)
    """The block as it was sent: JSON in its key order, without cache markers and nulls. Empty: look into the body."""
    cache_ttl: str = field(default="", compare=False)
    """The lifetime that its breakpoint asks for, as sent (`1h`); known where `wire` is."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the history."""

    role: str
    blocks: tuple[Block, ...]
    path: str


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool offered to the model."""

    name: str
    raw: str
    """The definition as canonical JSON without cache markers."""
    path: str
    wire: str = ""
    """The definition as it was sent, key order kept: a set reordered is told from a set changed by this."""
    cache_marked: bool = False
    cache_ttl: str = field(default="", compare=False)
    """The lifetime that its breakpoint asks for, as sent (`1h`)."""
    deferred: bool = False
    """Not in the context until it is referenced."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request puts before the model, in the provider's order: tools, system, messages."""

    model: str
    tools: tuple[ToolDefinition, ...] = ()
    system: tuple[Block, ...] = ()
    messages: tuple[Message, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every other top-level field of the body -> canonical JSON."""
    streamed: bool = False
    previous_id: str = ""
    """Id of the answer that this request continues, when the server keeps the history."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """System and message blocks, in order."""
        return self.system + tuple(block for message in self.messages for block in message.blocks)


@dataclass(frozen=True, slots=True)
class Marks:
    """Moments of a stream as indices of the chunk that completed the event; None: it never came."""

    first_event: int | None = None
    first_token: int | None = None
    first_output: int | None = None
    first_text: int | None = None
    last_token: int | None = None
    inferred: bool = False
    """first_token was taken from a block's opening because its content is hidden (thinking display omitted)."""


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """One generated block and the chunks between which it was open."""

    kind: str
    """`thinking`, `text`, `tool_json`, or the provider's own word."""
    text: str = ""
    """Text, thinking, or the arguments' JSON."""
    name: str = ""
    id: str = ""
    first_chunk: int | None = None
    last_chunk: int | None = None


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """What a server says of its own time, in nanoseconds; None: it doesn't."""

    queue: int | None = None
    prefill: int | None = None
    decode: int | None = None
    total: int | None = None
    ttft: int | None = None
    source: str = ""
    """The field it was read from: `timings.prompt_ms`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one response says."""

    id: str = ""
    model: str = ""
    usage: Usage = Usage()
    blocks: tuple[AnswerBlock, ...] = ()
    stop_reason: str = ""
    marks: Marks = Marks()
    streamed: bool = False
    """The body was a stream of events."""
    finished: bool = False
    """The provider's own end was seen (`message_stop`, `[DONE]`, a complete JSON body)."""
    error: str = ""
    """The provider's error type (`overloaded_error`), also one that came inside a 200 stream."""
    unknown_events: tuple[str, ...] = ()
    """Event types that this version doesn't know; kept in the bytes, without effect on any figure."""
    miss_reason: str = ""
    """The provider's own diagnosis of a prompt-cache miss."""
    server: ServerTimes = ServerTimes()
    message: Message | None = None
    """The answer as the next request's history would carry it (role assistant)."""


class Provider(Protocol):
    """One provider's format. Pure: the same bytes give the same values, and no input raises."""

    name: str

    def recognises(self, request: Request) -> bool:
        """Whether the request is a call of a model in this format, by method, path and body shape; never by host."""
        ...

    def prompt(self, request: Request) -> Prompt:
        """What the request puts before the model. A malformed body gives an empty prompt, not an error."""
        ...

    def answer(self, response: Response) -> Answer:
        """What the response says, whatever of it arrived."""
        ...

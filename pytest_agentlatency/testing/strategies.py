"""Hypothesis strategies for what the plugin works on: recordings, prompts, replies, streams cut anywhere.

The one module here that needs hypothesis. Everything drawn is well-formed unless its docstring says otherwise; it
shrinks towards one short turn.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from pytest_agentlatency.model.recording import Attempt, Recording, Request
from pytest_agentlatency.testing import chat_api, messages_api
from pytest_agentlatency.testing.bodies import encoded
from pytest_agentlatency.testing.builders import URL, recording, untimed
from pytest_agentlatency.testing.costs import Cost, InputTokens
from pytest_agentlatency.testing.faults import Buffer, Cut, ErrorEvent, Fault, LineEnds, comment, ping, unknown_event
from pytest_agentlatency.testing.observing import Client
from pytest_agentlatency.testing.plan import Speech
from pytest_agentlatency.testing.script import Reply, ToolUse
from pytest_agentlatency.testing.specs import FailureSpec, ToolSpec, TurnSpec
from pytest_agentlatency.wire import registry
from pytest_agentlatency.wire.message import Prompt

NAMES = ("search", "calculator", "read_file")
_LEAST, _MOST = 100, 400  # tokens of a context: enough for three tool definitions, few enough to be read in a failure
_durations = st.integers(0, 3_000_000_000)
_texts = st.text(st.characters(codec="utf-8"), max_size=40)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Any reply: empty, text of any script, thinking, shown or hidden, several tool calls."""
    arguments = st.dictionaries(st.sampled_from(["query", "path"]), _texts | st.integers(-9, 9), max_size=2)
    calls = st.lists(st.builds(ToolUse, st.sampled_from(NAMES), arguments), max_size=3)
    return Reply(draw(_texts), draw(_texts), draw(calls), hide_thinking=draw(st.booleans()))


@st.composite
def tools(draw: st.DrawFn, *, depth: int = 1) -> ToolSpec:
    """A tool execution; with a depth, some run a sub-agent."""
    inner = draw(st.lists(turns(depth=depth - 1), max_size=2)) if depth and draw(st.booleans()) else []
    return ToolSpec(draw(st.sampled_from(NAMES)), draw(_durations), turns=tuple(inner), error=draw(st.booleans()))


@st.composite
def turns(draw: st.DrawFn, *, depth: int = 1, retries: bool = True) -> TurnSpec:
    """A turn of `recording`: any times, cached parts, overlapping tools, failed attempts, streamed or not."""
    context = draw(st.integers(_LEAST, _MOST))
    cached = draw(st.integers(0, context))
    failures = st.lists(st.builds(FailureSpec, st.sampled_from([0, 429, 500, 529]), _durations, _durations), max_size=2)
    return TurnSpec(
        context,
        output=draw(st.integers(20, 60)),
        prefill=draw(_durations),
        decode=draw(_durations),
        cached=cached,
        written=draw(st.integers(0, context - cached)),
        thinking=draw(st.integers(0, 10)),
        tools=tuple(draw(st.lists(tools(depth=depth), max_size=3))),
        parallel=draw(st.booleans()),
        failures=tuple(draw(failures)) if retries else (),
        streamed=draw(st.booleans()),
        events=draw(st.integers(1, 8)),
        early_prelude=draw(st.booleans()),
        serialization=draw(_durations),
        overhead=draw(_durations),
        client=Client(draw(_durations), draw(st.integers(0, 1_000_000))),
    )


@st.composite
def recordings(
    draw: st.DrawFn, *, most_turns: int = 4, lanes: bool = True, retries: bool = True, whole: bool = False
) -> Recording:
    """A recording of at least one turn.

    Unless `whole`, the last answer may be closed early, cut or broken by an error event, stamps may be missing, or all
    times, or what SDK hooks see.
    """
    specs = draw(st.lists(turns(depth=int(lanes), retries=retries), min_size=1, max_size=most_turns))
    if whole:
        return recording(specs)
    specs[-1] = draw(_endings(specs[-1]))
    made = recording(specs, sdk=draw(st.sampled_from(["anthropic 2.14.0", ""])))
    return draw(st.sampled_from([made, untimed(made)]) | _with_gaps(made))


@st.composite
def _endings(draw: st.DrawFn, spec: TurnSpec) -> TurnSpec:
    count = draw(st.integers(0, 6))
    faults: list[tuple[Fault, ...]] = [(), (Cut(count),), (Cut(count, reset=True),), (ErrorEvent(count),)]
    early = replace(spec, client=replace(spec.client, close_after=count))
    return draw(st.sampled_from([*(replace(spec, faults=each) for each in faults), early]))


@st.composite
def _with_gaps(draw: st.DrawFn, made: Recording) -> Recording:
    """The recording with some of the optional stamps not seen."""

    def gapped(attempt: Attempt) -> Attempt:
        kept = attempt.stamps
        if kept is None:
            return attempt
        unseen: dict[str, Any] = {name: None for name in ("connect", "sent", "headers") if draw(st.booleans())}
        unseen |= {"asked": ()} if draw(st.booleans()) else {}
        return replace(attempt, stamps=replace(kept, **unseen))

    return replace(made, attempts=tuple(gapped(attempt) for attempt in made.attempts))


@st.composite
def request_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """JSON bodies of Anthropic requests: text of any script, tool calls with results, markers, several messages."""
    body: dict[str, Any] = {"model": "claude-simulated", "max_tokens": 100, "stream": draw(st.booleans())}
    body["messages"] = [{"role": "user", "content": draw(_contents())}]
    for number in range(draw(st.integers(0, 3))):
        content = messages_api.content(draw(replies()), f"msg_{number}")
        results = [_result(block["id"], draw(_texts)) for block in content if block["type"] == "tool_use"]
        body["messages"] += [{"role": "assistant", "content": content}]
        body["messages"] += [{"role": "user", "content": results or draw(_contents())}]
    body |= {"system": draw(_contents())} if draw(st.booleans()) else {}
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    body |= {"tools": [{"name": name, "input_schema": {"type": "object"}} for name in names]} if names else {}
    return body


def _contents() -> st.SearchStrategy[Any]:
    marks = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])
    return _texts | st.lists(st.builds(_text_block, _texts, marks), min_size=1, max_size=3)


def _text_block(text: str, mark: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": text, **mark}


def _result(call: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": text}


def prompts() -> st.SearchStrategy[Prompt]:
    """What the plugin reads in such a body."""
    return request_bodies().map(_prompt)


def _prompt(body: dict[str, Any]) -> Prompt:
    request = Request("POST", URL, (), encoded(body))
    provider = registry.recognise(request)
    return provider.prompt(request) if provider else Prompt("")


@st.composite
def sse_streams(draw: st.DrawFn, *, whole: bool = False) -> tuple[bytes, ...]:
    """The bytes of a streamed answer, Anthropic's or OpenAI's, in chunks cut anywhere, inside a character too.

    Unless `whole`, with pings, comments, unknown events, other line ends, bursts, or an end before its time.
    """
    reply = draw(replies())
    cost = Cost(output=reply.output_tokens)
    speech = Speech("msg_0001", "m", InputTokens(10), cost, streamed=True, tokens_per_event=draw(st.integers(1, 9)))
    plan = draw(st.sampled_from([messages_api, chat_api])).plan(reply, speech)
    places = st.integers(1, 8)
    faults = (
        st.builds(ping, places)
        | st.builds(comment, places)
        | st.builds(unknown_event, places)
        | st.builds(LineEnds, st.sampled_from([b"\r\n", b"\r"]))
        | st.builds(Buffer, places)
        | st.builds(Cut, places)
        | st.builds(ErrorEvent, places)
    )
    for fault in () if whole else draw(st.lists(faults, max_size=3)):
        plan = fault.change(plan)
    return draw(rechunked(b"".join(frame.data for frame in plan.frames)))


@st.composite
def rechunked(draw: st.DrawFn, body: bytes) -> tuple[bytes, ...]:
    """The bytes in pieces cut at any places; joined they are the same, and none is empty."""
    places = draw(st.lists(st.integers(0, len(body)), max_size=8))
    edges = sorted({0, len(body), *places})
    return tuple(body[start:end] for start, end in pairwise(edges))

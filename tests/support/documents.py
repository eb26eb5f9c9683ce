"""Cassette documents to test on: one small and readable, and Hypothesis strategies for any."""

import json

from hypothesis import strategies as st

from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import (
    Attempt,
    CallRecord,
    Facts,
    Failure,
    Outcome,
    Pause,
    Recording,
    Request,
    Response,
    Stamps,
    SystemFailure,
    ToolRecord,
)

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)


def body_of(messages, system="You are the support agent of a parcel service.", **fields) -> bytes:
    """A request body as the Anthropic SDK writes it: compact, fields in this order."""
    body = {"max_tokens": 1024, "messages": messages, "model": "claude-sonnet-5", "system": system, **fields}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def history(turns, result="It is in the depot of town "):
    """The messages of the n-th request of an agent that calls one tool a turn."""
    messages = [{"role": "user", "content": "Where is my parcel?"}]
    for turn in range(1, turns):
        call = {"type": "tool_use", "id": f"toolu_{turn:02}", "name": "track", "input": {"parcel": turn}}
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{turn:02}", "content": f"{result}{turn}."}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return messages


def attempt(body: bytes, call: int = 1, start: int = 0) -> Attempt:
    """One streamed exchange of a given request."""
    chunks = (b"event: message_start\ndata: {}\n\n", "data: Grüße 📦\n\n".encode(), b"data: [DONE]\n\n")
    arrived = tuple(Ns(start + at) for at in (310_000_000, 330_000_123, 350_000_000))
    asked = tuple(Ns(at - 9_000_000) for at in arrived)
    stamps = Stamps(
        Ns(start), Ns(start + 351_000_000), None, Ns(start + 40_000), Ns(start + 290_000_000), asked, arrived
    )
    request = Request("POST", "https://api.example.com/v1/messages?beta=true", JSON, body)
    return Attempt(call, request, Response(200, SSE, chunks, "OK", coding="gzip"), stamps)


def session(turns: int, **changes) -> Document:
    """The cassette of an agent of so many turns."""
    bodies = [body_of(history(turn, **changes)) for turn in range(1, turns + 1)]
    attempts = tuple(attempt(body, at + 1, at * 400_000_000) for at, body in enumerate(bodies))
    calls = tuple(CallRecord(each.call, "anthropic 2.14.0", each.stamps.start, each.stamps.end) for each in attempts)
    facts = Facts("tests/test_agent.py::test_parcel", "2026-01-31T12:00:00Z", "characters", {"python": "3.13.1"})
    tools = (ToolRecord(1, "track", Ns(360_000_000), Ns(390_000_000), (Ns(361_000_000), Ns(389_000_000))),)
    return Document(Recording(attempts, calls, tools, (), (Ns(0), Ns(turns * 400_000_000)), facts), (tool_call(),))


def tool_call() -> dict:
    """HTTP of a tool, as vcrpy has it."""
    return {
        "request": {"method": "GET", "uri": "https://track.example.com/p/7", "body": None, "headers": {"a": ["b"]}},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"Content-Type": ["application/json"]},
            "body": {"string": b'{"town": "Bath"}'},
        },
    }


moments = st.integers(-(2**63), 2**63).map(Ns)
texts = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates included
names = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
_YAML_TRAPS = [
    "", "null", "~", "yes", "0x1F", "1e3", "1_000", "12:30:45", "2026-01-01", "- a", "a: b", "#", "'", '"', "|", ">",
    "{}", "[]", "&a", "*a", "!!x", "%", "@", "`", "---", "...", "\ufeff", " x", "x ", "\t", "\n", "\r\n", "a\n b\n",
    "\n\n", " \n", "a\n\n", "\x85", "\u2028", "a\r", "x\u2029y", "\x7f", "📦", "a: \n", "\0", "=", "<<", "?", ":", "-",
]  # fmt: skip
bodies = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from(_YAML_TRAPS), max_size=4).map(lambda parts: "".join(parts).encode()),
    texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.builds(lambda a, b: (a + b).encode("utf-8", "replace"), st.just("agentlatency delta of -1\n"), texts),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
    st.builds(lambda turns: body_of(history(turns)), st.integers(1, 6)),
)
headers = st.lists(st.tuples(names, texts), max_size=4).map(
    lambda fields: tuple(sorted(fields, key=lambda field: field[0]))
)
urls = names.map("https://example.com/{}?a=b%20c#d".format)
requests = st.builds(Request, st.sampled_from(["POST", "GET"]), urls, headers, bodies)
responses = st.builds(
    Response,
    st.integers(100, 598),
    headers,
    st.lists(bodies, max_size=5).map(tuple),
    texts,
    st.sampled_from(["HTTP/1.1", "HTTP/2"]),
    st.sampled_from(["", "gzip", "br"]),
)
series = st.lists(moments, max_size=5).map(tuple)
stamps = st.builds(
    Stamps,
    moments,
    moments,
    st.none() | st.tuples(moments, moments),
    st.none() | moments,
    st.none() | moments,
    series,
    series,
)
attempts = st.builds(
    Attempt,
    st.integers(1, 9),
    requests,
    st.none() | responses,
    st.none() | stamps,
    st.sampled_from(Outcome),
    st.none() | st.builds(Failure, names, texts, st.none() | st.builds(SystemFailure, names, texts, texts)),
)
calls = st.builds(
    CallRecord,
    st.integers(1, 9),
    texts,
    st.none() | moments,
    st.none() | moments,
    st.lists(st.tuples(moments, moments), max_size=2).map(tuple),
    st.none() | st.integers(1, 9),
    st.none() | moments,
)
tools = st.builds(
    ToolRecord,
    st.integers(1, 9),
    texts,
    moments,
    moments,
    st.none() | st.tuples(moments, moments),
    st.none() | st.integers(1, 9),
    st.booleans(),
)
facts = st.builds(Facts, texts, texts, texts, st.dictionaries(names, texts, max_size=2))
recordings = st.builds(
    Recording,
    st.lists(attempts, max_size=5).map(tuple),
    st.lists(calls, max_size=2).map(tuple),
    st.lists(tools, max_size=2).map(tuple),
    st.lists(st.builds(Pause, moments, moments, texts), max_size=2).map(tuple),
    st.none() | st.tuples(moments, moments),
    facts,
)
interactions = st.fixed_dictionaries(
    {
        "request": st.fixed_dictionaries(
            {
                "method": st.just("GET"),
                "uri": urls,
                "body": st.none() | bodies,
                "headers": st.dictionaries(names, st.lists(texts, min_size=1, max_size=2), max_size=2),
            }
        ),
        "response": st.fixed_dictionaries(
            {
                "status": st.fixed_dictionaries({"code": st.integers(100, 599), "message": texts}),
                "headers": st.dictionaries(names, st.lists(texts, min_size=1, max_size=2), max_size=2),
                "body": st.fixed_dictionaries({"string": bodies}),
            }
        ),
    }
)
documents = st.builds(Document, recordings, st.lists(interactions, max_size=3).map(tuple))

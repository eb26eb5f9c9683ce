"""One small conversation, written the way each recorder writes it. Composed here; nobody's recording."""

import base64
import gzip
import json
from typing import Any

import yaml

URL = "https://api.anthropic.com/v1/messages"
QUESTION: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Where is parcel 7? Größe: 3 kg 📦"}],
}
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "In Köln."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 21, "output_tokens": 5},
}
SECOND = {
    **QUESTION,
    "messages": [
        *QUESTION["messages"],
        {"role": "assistant", "content": "In Köln."},
        {"role": "user", "content": "And parcel 8?"},
    ],
}
SSE = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant",'
    '"model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":34,"output_tokens":1}}}\n\n'
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    '"content_block":{"type":"text","text":""}}\n\n'
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    '"delta":{"type":"text_delta","text":"In Bonn."}}\n\n'
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    '"usage":{"output_tokens":6}}\n\n'
    'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
TOOL_URL = "https://parcels.example/7"


def text(value: Any) -> str:
    """JSON as the SDKs send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def vcrpy_tree() -> dict[str, Any]:
    """Two model calls, with a tool's own request between them."""
    return {
        "version": 1,
        "interactions": [
            {
                "request": {
                    "method": "POST",
                    "uri": URL,
                    "body": text(QUESTION),
                    "headers": {"content-type": ["application/json"]},
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"content-type": ["application/json"], "content-encoding": ["gzip"]},
                    "body": {"string": text(ANSWER)},
                },
            },
            {
                "request": {"method": "GET", "uri": TOOL_URL, "body": None, "headers": {"accept": ["*/*"]}},
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {},
                    "body": {"string": "Köln"},
                },
            },
            {
                "request": {"method": "POST", "uri": URL, "body": text(SECOND), "headers": {}},
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"content-type": ["text/event-stream"]},
                    "body": {"string": gzip.compress(SSE.encode(), mtime=0)},
                },
            },
        ],
    }


def vcrpy() -> bytes:
    return dumped(vcrpy_tree())


def vcrpy_json() -> bytes:
    tree = vcrpy_tree()
    tree["interactions"][2]["response"]["body"] = {"string": SSE}
    return json.dumps(tree).encode()


def dumped(tree: Any) -> bytes:
    return yaml.dump(tree, allow_unicode=True, sort_keys=False).encode()


def parsed_body() -> bytes:
    """As pydantic-ai's serializer writes it."""
    tree = vcrpy_tree()
    first = tree["interactions"][0]
    del first["request"]["body"], first["response"]["body"]
    first["request"]["parsed_body"], first["response"]["parsed_body"] = QUESTION, ANSWER
    return dumped(tree)


def parallel_lists() -> bytes:
    """As langchain's compressing persister writes it."""
    pairs = vcrpy_tree()["interactions"]
    tree = {"requests": [each["request"] for each in pairs], "responses": [each["response"] for each in pairs]}
    return gzip.compress(dumped(tree), mtime=0)


def httpx_era() -> bytes:
    tree = vcrpy_tree()
    first, tool, last = tree["interactions"]
    first["response"] = {"content": text(ANSWER), "headers": {}, "http_version": "HTTP/2", "status_code": 200}
    tool["response"] = {"content": "Köln", "headers": {}, "http_version": "HTTP/1.1", "status_code": 200}
    last["response"] = {"content": SSE, "headers": {}, "http_version": "HTTP/1.1", "status_code": 200}
    return dumped(tree)


def multidict_tags() -> bytes:
    """Headers of an aiohttp client, as PyYAML writes keys of a str subclass."""
    return (
        "interactions:\n- request:\n    body: '" + text(QUESTION) + "'\n    headers:\n"
        "      ? !!python/object/new:multidict._multidict.istr\n      - Content-Type\n      : - application/json\n"
        "      ? !!python/object/apply:multidict._multidict.istr\n        args: [X-Two]\n      : a\n"
        f"    method: POST\n    uri: {URL}\n"
        "  response:\n    body:\n      string: '" + text(ANSWER) + "'\n    headers: {}\n"
        "    status: {code: 200, message: OK}\nversion: 1\n"
    ).encode()


def go_vcr() -> bytes:
    return f"""---
version: 2
interactions:
    - id: 0
      request:
        proto: HTTP/1.1
        content_length: 10
        transfer_encoding: []
        host: api.anthropic.com
        body: '{text(QUESTION)}'
        form: {{}}
        headers:
            Content-Type: [application/json]
        url: {URL}
        method: POST
      response:
        proto: HTTP/2.0
        content_length: -1
        uncompressed: true
        body: '{text(ANSWER)}'
        headers:
            Content-Type: [application/json]
        status: 200 OK
        code: 200
        duration: 2.218456s
    - id: 1
      request:
        body: ""
        form: {{}}
        headers: {{}}
        url: {TOOL_URL}
        method: GET
      response:
        body: Köln
        headers: {{}}
        status: 200 OK
        code: 200
        duration: 31.5ms
    - id: 2
      request:
        body: '{text(SECOND)}'
        form: {{}}
        headers: {{}}
        url: {URL}
        method: POST
      response:
        body: {json.dumps(SSE)}
        headers:
            Content-Type: [text/event-stream]
        status: 200 OK
        code: 200
        duration: 1m2.5s
""".encode()


def ruby_vcr() -> bytes:
    packed = base64.b64encode(text(ANSWER).encode()).decode()
    return f"""---
http_interactions:
- request:
    method: post
    uri: {URL}
    body:
      encoding: UTF-8
      string: '{text(QUESTION)}'
    headers:
      Content-Type:
      - application/json
  response:
    status:
      code: 200
      message: OK
    headers: {{}}
    body:
      encoding: ASCII-8BIT
      string: !binary |-
        {packed}
  recorded_at: Wed, 19 Aug 2026 12:00:00 GMT
- request:
    method: get
    uri: {TOOL_URL}
    body: {{encoding: US-ASCII, string: ''}}
    headers: {{}}
  response:
    status: 200
    headers: {{}}
    body: {{string: Köln}}
  recorded_at: 2026-08-19 12:00:04
- request:
    method: post
    uri: {URL}
    body: {{base64_string: {base64.b64encode(text(SECOND).encode()).decode()}}}
    headers: {{}}
  response:
    status: {{status_code: 200}}
    headers: {{content-type: text/event-stream}}
    body: {{raw_gzip: {base64.b64encode(gzip.compress(SSE.encode(), mtime=0)).decode()}}}
  recorded_at: 2026-08-19 12:00:05 UTC
recorded_with: VCR 6.3.1
""".encode()


def single() -> bytes:
    return json.dumps({
        "request": {"method": "POST", "url": URL, "headers": {"Accept": "*/*"}, "body": text(QUESTION)},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {},
            "body": "base64:" + base64.b64encode(text(ANSWER).encode()).decode(),
        },
    }).encode()  # fmt: skip


def har_tree() -> dict[str, Any]:
    """A proxy's file: entries out of order, the last one without an answer."""

    def entry(began: str, sent: Any, content: dict[str, Any], timings: dict[str, float]) -> dict[str, Any]:
        return {
            "startedDateTime": began,
            "time": sum(spent for name, spent in timings.items() if spent > 0 and name != "ssl"),
            "request": {
                "method": "POST",
                "url": URL,
                "headers": [{"name": "Content-Type", "value": "application/json"}],
                "postData": {"mimeType": "application/json", "text": text(sent)},
            },
            "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/2", "headers": [], "content": content},
            "timings": timings,
        }

    packed = {"encoding": "base64", "text": base64.b64encode(gzip.compress(SSE.encode(), mtime=0)).decode()}
    timed = {"blocked": -1, "dns": -1, "connect": -1, "send": 0.5, "wait": 200.25, "receive": 99.25}
    first = {"blocked": 2, "dns": 3, "connect": 20, "ssl": 15, "send": 1, "wait": 400, "receive": 10}
    lost = entry("2026-08-19T12:00:02.000Z", SECOND, {}, {"send": 0, "wait": 50, "receive": 0})
    lost["response"] |= {"status": 0, "statusText": "", "_error": "net::ERR_CONNECTION_RESET"}
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "proxy"},
            "entries": [
                entry("2026-08-19T12:00:01.500Z", SECOND, packed, timed),
                entry("2026-08-19T12:00:00.000Z", QUESTION, {"text": text(ANSWER)}, first),
                lost,
            ],
        },
    }


def har() -> bytes:
    return json.dumps(har_tree()).encode()


EVERY = {
    "vcrpy yaml": vcrpy,
    "vcrpy json": vcrpy_json,
    "vcrpy gz": lambda: gzip.compress(vcrpy(), mtime=0),
    "pydantic-ai parsed_body": parsed_body,
    "langchain parallel lists": parallel_lists,
    "httpx era": httpx_era,
    "go-vcr": go_vcr,
    "ruby and R vcr": ruby_vcr,
}
"""The same three exchanges in each: two model calls around one of a tool."""
ALONE = {"multidict tags": multidict_tags, "single exchange": single, "har": har}

"""Prompts for tests, made by the real provider from real bodies."""

import json
import struct

from pytest_agentlatency.analysis.prefix import Sent
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire.anthropic import Anthropic

SONNET = "claude-sonnet-4-5"
URL = "https://api.anthropic.com/v1/messages"


def claude(messages, *, system=None, tools=None, model=SONNET, **params):
    """The prompt of an Anthropic request with these fields, in the order in which the SDK sends them."""
    body = {"max_tokens": 1024, "messages": messages, "model": model}
    body |= {"system": system} if system is not None else {}
    body |= {"tools": tools} if tools is not None else {}
    return Anthropic().prompt(Request("POST", URL, body=json.dumps(body | params).encode()))


def sent(messages, *, context=None, model=SONNET, **fields):
    """A request as its bytes, and what the real provider reads in them."""
    body = json.dumps({"messages": messages, "model": model} | fields).encode()
    return Sent(Anthropic().prompt(Request("POST", URL, body=body)), body, context)


def user(*content):
    return {"role": "user", "content": content[0] if len(content) == 1 and isinstance(content[0], str) else [*content]}


def assistant(*content):
    return {"role": "assistant", "content": [*content]}


def text(words, **more):
    return {"type": "text", "text": words, **more}


def call(number, name="search", **arguments):
    return {"type": "tool_use", "id": f"toolu_{number:02}", "name": name, "input": arguments}


def result(number, content, **more):
    return {"type": "tool_result", "tool_use_id": f"toolu_{number:02}", "content": content, **more}


def tool(name="search", description="Search the shop.", **properties):
    schema = {"type": "object", "properties": properties or {"query": {"type": "string"}}}
    return {"name": name, "description": description, "input_schema": schema}


def words(count, seed="word"):
    """A text of that many words, each of them one token in most vocabularies."""
    return " ".join([seed] * count)


def used(uncached, read=0, write=0, output=50, **more):
    return Usage(Tokens(uncached), Tokens(read), Tokens(write), Tokens(output), **more)


def png(width, height, padding=0):
    """The leading bytes of a PNG of that size, and some more."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\0" * padding

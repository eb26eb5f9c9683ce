"""What `agentlatency context` costs on recordings of 200 turns whose context grows to 100,000 tokens.

    python benchmarks/context.py [--turns 200] [--tokens 100000] [--rounds 5] [--keep DIRECTORY]

Three sessions: `built` is the package's own builder's; `anthropic` and `openai` have what real agents send: prose and
JSON, 20 tool definitions, a long system prompt, three calls every fifth turn, thinking, and cache markers that move.
Each is saved as a cassette, and the command is run on it as a process of its own. CPU is user and system time of the
whole process, the interpreter's start included, the least of the rounds; the ratio is over what it takes to parse all
request bodies once with `json`, in the same round.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, CallRecord, Recording, Request
from pytest_agentlatency.testing import builders, chat_api, messages_api
from pytest_agentlatency.testing.costs import Cost, InputTokens
from pytest_agentlatency.testing.observing import Client, observe
from pytest_agentlatency.testing.plan import Plan, Speech
from pytest_agentlatency.testing.script import Reply, ToolUse

FIRST = 6000
"""Tokens of the first request: system prompt, tools, the task."""
MARK = {"cache_control": {"type": "ephemeral"}}
WORDS = "parcel depot delivery customer address delayed weather route the was and of to in is it for not with that on"
COMMAND = "from pytest_agentlatency.cli import main; main()"
MS = 1_000_000

Json = dict[str, Any]
Encode = Callable[[list[Json], str, list[Json]], Json]
"""Messages, system prompt and tools in the neutral form below -> a request's body."""


@dataclass(frozen=True)
class Format:
    """A provider's requests and answers."""

    url: str
    body: Encode
    plan: Callable[[Reply, Speech], Plan]


def prose(rng: random.Random, tokens: int) -> str:
    """About so many tokens of words and sentences."""
    return ". ".join(
        " ".join(rng.choices(WORDS.split(), k=12)) + f" {rng.randrange(1000)}" for _ in range(max(1, tokens // 16))
    )


def record(rng: random.Random, tokens: int) -> str:
    """About so many tokens of JSON, as tools answer."""
    rows = [
        {"id": rng.randrange(10**6), "status": rng.choice(WORDS.split()), "note": prose(rng, 16), "price": rng.random()}
        for _ in range(max(1, tokens // 48))
    ]
    return json.dumps({"results": rows, "next": None})


def tool(rng: random.Random, at: int) -> Json:
    fields = {f"field_{number}": {"type": "string", "description": prose(rng, 16)} for number in range(4)}
    schema = {"type": "object", "properties": fields, "required": ["field_0"]}
    return {"name": f"tool_{at}", "description": prose(rng, 64), "input_schema": schema}


def turns(rng: random.Random, count: int, tokens: int) -> Iterator[tuple[list[Json], Reply]]:
    """The history of each turn in a neutral form, and what the model says to it: the last says no more than a text."""
    step = (tokens - FIRST) // max(1, count - 1)
    history: list[Json] = [{"role": "user", "text": prose(rng, 100)}]
    for number in range(1, count + 1):
        calls = 3 if number % 5 == 0 else 1
        uses = [ToolUse(f"tool_{rng.randrange(12)}", {"field_0": prose(rng, 16), "limit": 5}) for _ in range(calls)]
        thought = prose(rng, 48) if number % 4 == 0 else ""
        reply = Reply(prose(rng, 64), thought, uses if number < count else ())
        yield history, reply
        results = [record(rng, (step - 150) // calls) for _ in uses]
        history = [*history, {"role": "assistant", "reply": reply, "at": number}, {"role": "tool", "results": results}]


def anthropic_body(history: list[Json], system: str, tools: list[Json]) -> Json:
    """As the SDK orders it; the marker stands on the last block of the last message."""
    messages: list[Json] = []
    for each in history:
        if each["role"] == "user":
            messages.append({"role": "user", "content": [{"type": "text", "text": each["text"]}]})
        elif each["role"] == "assistant":
            content = messages_api.content(each["reply"], f"msg_{each['at']:04}")
            messages.append({"role": "assistant", "content": content})
        else:
            asked = [block["id"] for block in messages[-1]["content"] if block["type"] == "tool_use"]
            messages.append({"role": "user", "content": list(map(result, asked, each["results"]))})
    *others, last = messages[-1]["content"]
    messages[-1] = {"role": "user", "content": [*others, last | MARK]}
    return {
        "max_tokens": 4096,
        "messages": messages,
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": system} | MARK],
        "tools": [*tools[:-1], tools[-1] | MARK],
        "stream": True,
    }


def result(call: str, text: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": text}]}


def openai_body(history: list[Json], system: str, tools: list[Json]) -> Json:
    messages: list[Json] = [{"role": "system", "content": system}]
    for each in history:
        if each["role"] == "user":
            messages.append({"role": "user", "content": each["text"]})
        elif each["role"] == "assistant":
            said = chat_api.completion(each["reply"], speech(each["at"], each["reply"], InputTokens(0)))
            messages.append(said["choices"][0]["message"])
        else:
            asked = [call["id"] for call in messages[-1]["tool_calls"]]
            messages += [
                {"role": "tool", "tool_call_id": id_, "content": text}
                for id_, text in zip(asked, each["results"], strict=True)
            ]
    functions = [
        {
            "type": "function",
            "function": {"parameters" if key == "input_schema" else key: value for key, value in each.items()},
        }
        for each in tools
    ]
    return {"messages": messages, "model": "gpt-5.5", "stream": True, "tools": functions}


FORMATS = {
    "anthropic": Format("https://api.example.com/v1/messages", anthropic_body, messages_api.plan),
    "openai": Format("https://api.example.com/v1/chat/completions", openai_body, chat_api.plan),
}


def real(form: Format, count: int, tokens: int, seed: int = 1) -> Recording:
    """A session in a provider's format; the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    system, tools = prose(rng, 2500), [tool(rng, at) for at in range(20)]
    attempts: list[Attempt] = []
    now, before = 0, 0
    for number, (history, reply) in enumerate(turns(rng, count, tokens), 1):
        data = json.dumps(form.body(history, system, tools), separators=(",", ":"), ensure_ascii=False).encode()
        request = Request("POST", form.url, (("content-type", "application/json"),), data)
        context = FIRST + (tokens - FIRST) * (number - 1) // max(1, count - 1)
        plan = form.plan(reply, speech(number, reply, InputTokens(context - before, before)))
        attempts.append(observe(plan, request, call=number, at=now, client=Client()))
        stamps = attempts[-1].stamps
        now, before = (stamps.end if stamps else now) + 50 * MS, context
    calls = tuple(CallRecord(attempt.call) for attempt in attempts)
    return Recording(tuple(attempts), calls, bounds=(Ns(0), Ns(now)))


def speech(number: int, reply: Reply, tokens: InputTokens) -> Speech:
    """How the model says it: 40 microseconds for a token that isn't cached, 15 ms for one that it generates."""
    output = reply.output_tokens
    cost = Cost(0, 300 * MS + 40_000 * tokens.work, 15 * MS * output, output)
    return Speech(f"msg_{number:04}", "m", tokens, cost, streamed=True, tokens_per_event=4)


def built(count: int, tokens: int) -> Recording:
    """The package's own builder's session."""
    sizes = [2000 + (tokens - 2000) * number // max(1, count - 1) for number in range(count)]
    return builders.recording([builders.turn(each, 50, tool_ms=10 if each < tokens else None) for each in sizes])


def cpu(path: Path) -> float:
    """Seconds, user and system, of the command as a process."""
    command = [sys.executable, "-c", COMMAND, "context", str(path)]
    before = children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 -- this interpreter
    return children() - before


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def parsing(bodies: list[bytes]) -> float:
    start = time.process_time()
    for body in bodies:
        json.loads(body)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="Leave the cassettes there.")
    asked = parser.parse_args()
    sessions = {"built": built(asked.turns, asked.tokens)}
    sessions |= {name: real(form, asked.turns, asked.tokens) for name, form in FORMATS.items()}
    print(f"{'session':>10} {'bodies':>9} {'file':>8} {'CPU':>7} {'json':>7} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, recording in sessions.items():
            path = (asked.keep or Path(folder)) / f"{name}.yaml"
            store.save(path, Document(recording))
            bodies = [attempt.request.body for attempt in recording.attempts]
            rounds = [(cpu(path), parsing(bodies)) for _ in range(asked.rounds)]
            ratio = min(spent / parsed for spent, parsed in rounds)
            spent, parsed = (min(column) for column in zip(*rounds, strict=True))
            sizes = f"{sum(map(len, bodies)) / 1e6:>6.1f} MB {path.stat().st_size / 1e6:>5.1f} MB"
            print(f"{name:>10} {sizes} {spent:>5.2f} s {parsed:>5.2f} s {ratio:>6.1f}")


if __name__ == "__main__":
    main()

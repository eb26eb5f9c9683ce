"""What a cassette of an agent session costs on disk and to save and load, ours against plain vcrpy's, in one run.

    python benchmarks/cassette_size.py [TURNS ...]

The session is synthetic: every request carries the whole history, each turn adds about 1 KB, answers are streamed in 20
events. Times are CPU seconds of one process, the least of three; exponents are slopes of log(value) over log(turns).
Beside it, a session of few turns whose tool results make a file of 20 MB: what a cassette takes to be loaded whole.
"""

import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcr.persisters.filesystem import FilesystemPersister
from vcr.request import Request as VcrRequest
from vcr.serializers import jsonserializer, yamlserializer

from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.clock import Ns
from pytest_agentlatency.model.recording import Attempt, Recording, Request, Response, Stamps

TURNS = (10, 50, 100, 200, 500)
ROUNDS = 3
RESULT = 600
"""Characters of a tool's result."""
LARGE = (42, 500_000)
"""Turns, and characters of a result, of a file of 20 MB."""
WORDS = ("parcel", "tracking", "depot", "delivery", "customer", "address", "delayed", "weather", "route", "driver")


@dataclass(frozen=True)
class Cost:
    """Of one format at one length."""

    size: int
    save: float
    load: float


def session(turns: int, seed: int = 1, result: int = RESULT) -> Document:
    """The recording of an agent of so many turns, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    system, tools = prose(rng, 1500), [tool(rng, at) for at in range(8)]
    messages: list[object] = [{"role": "user", "content": prose(rng, 80)}]
    attempts, now = [], 0
    for call in range(1, turns + 1):
        body = {
            "max_tokens": 1024,
            "messages": messages,
            "model": "claude",
            "stream": True,
            "system": system,
            "tools": tools,
        }
        wire = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        attempt = exchange(rng, call, wire, now)
        attempts.append(attempt)
        now = attempt.stamps.end + 20_000_000
        messages = [*messages, *turn(rng, call, result)]
    return Document(Recording(tuple(attempts)))


def prose(rng: random.Random, size: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(size // 8))


def tool(rng: random.Random, at: int) -> object:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return {"name": f"tool_{at}", "description": prose(rng, 200), "input_schema": schema}


def turn(rng: random.Random, call: int, size: int) -> list[object]:
    use = {"type": "tool_use", "id": f"toolu_{call:04}", "name": "tool_1", "input": {"query": prose(rng, 40)}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{call:04}", "content": prose(rng, size)}
    said = {"type": "text", "text": prose(rng, 200)}
    return [{"role": "assistant", "content": [said, use]}, {"role": "user", "content": [result]}]


def exchange(rng: random.Random, call: int, body: bytes, start: int) -> Attempt:
    chunks = tuple(event(rng) for _ in range(20))
    arrived = [start + 300_000_000 + rng.randrange(50_000_000)]
    arrived += [arrived[0] + at * 20_000_000 + rng.randrange(5_000_000) for at in range(1, len(chunks))]
    asked = [at - rng.randrange(9_000_000) for at in arrived]
    stamps = Stamps(
        start=Ns(start),
        end=Ns(arrived[-1] + 100_000),
        headers=Ns(start + 290_000_000),
        asked=tuple(map(Ns, asked)),
        arrived=tuple(map(Ns, arrived)),
    )
    request = Request("POST", "https://api.example.com/v1/messages", (("content-type", "application/json"),), body)
    return Attempt(call, request, Response(200, (("content-type", "text/event-stream"),), chunks, "OK"), stamps)


def event(rng: random.Random) -> bytes:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": prose(rng, 16)}}
    return f"event: content_block_delta\ndata: {json.dumps(delta)}\n\n".encode()


def ours(document: Document, path: Path) -> Cost:
    """Load is checked to give back what was saved."""
    save = least(lambda: store.save(path, document))
    load = least(lambda: store.load(path))
    assert store.load(path) == document
    return Cost(path.stat().st_size, save, load)


def plain(serializer: object) -> Callable[[Document, Path], Cost]:
    """Plain vcrpy with one of its serializers; the same requests and responses, without times."""

    def measure(document: Document, path: Path) -> Cost:
        pairs = [(attempt.request, attempt.response) for attempt in document.recording.attempts]

        def cassette() -> dict[str, list[object]]:
            requests = [VcrRequest(each.method, each.url, each.body, dict(each.headers)) for each, _ in pairs]
            return {"requests": requests, "responses": [response(each) for _, each in pairs]}

        save = least(lambda: FilesystemPersister.save_cassette(path, cassette(), serializer))
        load = least(lambda: FilesystemPersister.load_cassette(path, serializer))
        return Cost(path.stat().st_size, save, load)

    return measure


def response(each: Response) -> dict[str, object]:
    status = {"code": each.status, "message": each.reason}
    return {"status": status, "headers": {name: [value] for name, value in each.headers}, "body": {"string": each.body}}


def least(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


FORMATS = {"ours": ours, "vcrpy yaml": plain(yamlserializer), "vcrpy json": plain(jsonserializer)}


def exponent(turns: Sequence[int], values: Sequence[float]) -> float:
    """Least-squares slope of log(value) over log(turns), from 50 turns on: below, what is constant still weighs."""
    points = [(math.log(n), math.log(max(value, 1e-6))) for n, value in zip(turns, values, strict=True) if n >= 50]
    if len(points) < 2:
        return math.nan
    x, y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def main(turns: Sequence[int]) -> None:
    print(f"{'turns':>6} {'bodies MB':>10}", *(f"| {name:>10}: KB    save s  load s" for name in FORMATS))
    costs: dict[str, list[Cost]] = {name: [] for name in FORMATS}
    with tempfile.TemporaryDirectory() as folder:
        for number in turns:
            document = session(number)
            for name, measure in FORMATS.items():
                costs[name].append(measure(document, Path(folder, f"{name}.yaml")))
            bodies = sum(len(attempt.request.body) for attempt in document.recording.attempts)
            cells = (
                f"| {each[-1].size / 1e3:>14,.0f} {each[-1].save:>9.3f} {each[-1].load:>7.3f}"
                for each in costs.values()
            )
            print(f"{number:>6} {bodies / 1e6:>10.2f}", *cells)
    fitted = (
        f"| {exponent(turns, [e.size for e in each]):>14.2f} {exponent(turns, [e.save for e in each]):>9.2f} "
        f"{exponent(turns, [e.load for e in each]):>7.2f}"
        for each in costs.values()
    )
    print(f"{'exponent':>17}", *fitted)
    large()


def large() -> None:
    """One file of many megabytes, ours only: in full, its bodies would be hundreds."""
    number, size = LARGE
    with tempfile.TemporaryDirectory() as folder:
        cost = ours(session(number, result=size), Path(folder, "large.yaml"))
    print(f"\n{number} turns with results of {size:,} characters: {cost.size / 1e6:.1f} MB, load {cost.load:.3f} s")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or TURNS)

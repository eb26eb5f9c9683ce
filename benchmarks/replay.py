"""What replaying an agent costs, ours against plain vcrpy's, in one run.

    python benchmarks/replay.py [--turns 10 50 100 200 500] [--matched 10 50 100]

The agent runs on the real Anthropic SDK, streamed; every request carries the whole history, each turn adds about 1 KB,
answers come in 25 events. It is recorded once a length against a transport inside the process; vcrpy is given the same
exchanges. Times are CPU seconds of this process. `floor` is the agent on that transport alone, with no recorder; a
row's own cost is what it takes beyond it. Exponents are least-squares slopes of log(value) over log(turns), from 50
turns on. vcrpy is measured as it is by default, where any request of the path takes the next answer, and with `body`
among its matchers, as far as `--matched` says: that is cubic in the turns.
"""

import argparse
import gc
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import vcr
from vcr.persisters.filesystem import FilesystemPersister
from vcr.request import Request as VcrRequest
from vcr.serializers import jsonserializer, yamlserializer

from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.capture.session import Plan, Session
from pytest_agentlatency.cassette import store
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.model.mode import Mode
from pytest_agentlatency.testing.messages_api import event

URL = "http://model.example"
RESULT = "The parcel left the depot on its way to the customer and is delayed by weather on the route. " * 6
TOOLS = [
    {"name": f"tool_{at}", "description": RESULT[:200], "input_schema": {"type": "object", "properties": {}}}
    for at in range(8)
]
USAGE = {"input_tokens": 900, "output_tokens": 60}


@cache
def answer(turn: int) -> list[bytes]:
    """The events of one turn: a sentence, a tool call. Made once, so that the floor isn't the making of answers."""
    use = {"type": "tool_use", "id": f"toolu_{turn:04}", "name": "tool_1", "input": {}}
    message = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m", "content": []}
    words = [{"type": "text_delta", "text": f"word {turn}.{at} "} for at in range(18)]
    return [
        event("message_start", {"message": {**message, "stop_reason": None, "usage": USAGE}}),
        event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        *(event("content_block_delta", {"index": 0, "delta": word}) for word in words),
        event("content_block_stop", {"index": 0}),
        event("content_block_start", {"index": 1, "content_block": use}),
        event("content_block_stop", {"index": 1}),
        event("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 60}}),
        event("message_stop", {}),
    ]


class Body(httpx2.SyncByteStream):
    def __init__(self, events: list[bytes]) -> None:
        self.events = events

    def __iter__(self) -> Any:
        return iter(self.events)


class Model(httpx2.BaseTransport):
    """Answers inside the process."""

    def __init__(self) -> None:
        self.turn = self.sent = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.turn += 1
        self.sent += len(request.content)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(answer(self.turn)))


LEAF = httpx2.HTTPTransport()
"""The library's own, for which a replay answers; made once, because making one reads certificates."""


def agent(turns: int, transport: httpx2.BaseTransport) -> None:
    """The loop of so many turns."""
    with anthropic.Anthropic(
        base_url=URL, api_key="x", max_retries=0, http_client=httpx2.Client(transport=transport)
    ) as client:
        messages: list[Any] = [{"role": "user", "content": "Where is it?"}]
        for _ in range(turns):
            with client.messages.stream(
                model="m", max_tokens=1024, system=RESULT * 3, tools=TOOLS, messages=messages
            ) as stream:
                said = stream.get_final_message()
            call = said.content[-1].id
            messages.append({"role": "assistant", "content": [block.to_dict() for block in said.content]})
            result = {"type": "tool_result", "tool_use_id": call, "content": RESULT}
            messages.append({"role": "user", "content": [result]})


def plan(mode: Mode, document: Document | None = None) -> Plan:
    extra = {"document": document} if document else {}
    return Plan(mode, "benchmarks/replay.py::agent", counter(), **extra)


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


@dataclass(frozen=True)
class Cost:
    """Of one format at one length."""

    size: int
    load: float
    replay: float


def record(turns: int) -> tuple[Document, int]:
    model = Model()
    with Session(plan(Mode.RECORD)) as session:
        agent(turns, model)
        return session.document(), model.sent


def ours(document: Document, turns: int, folder: Path) -> Cost:
    path = folder / "ours.yaml"
    store.save(path, document)
    load = min(cpu(lambda: store.load(path)) for _ in range(3))
    loaded = store.load(path)

    def replay() -> None:
        with Session(plan(Mode.REPLAY, loaded)) as session:
            agent(turns, LEAF)
        assert not session.problems()

    return Cost(path.stat().st_size, load, cpu(replay))


def vcrpy(serializer: Any, name: str, match: Sequence[str]) -> Callable[[Document, int, Path], Cost]:
    def measure(document: Document, turns: int, folder: Path) -> Cost:
        path = folder / f"vcrpy.{name}"
        pairs = [(each.request, each.response) for each in document.recording.attempts]
        cassette = {
            "requests": [VcrRequest(each.method, each.url, each.body, dict(each.headers)) for each, _ in pairs],
            "responses": [
                {
                    "status": {"code": each.status, "message": each.reason},
                    "headers": {key: [value] for key, value in each.headers},
                    "body": {"string": each.body},
                }
                for _, each in pairs
            ],
        }
        FilesystemPersister.save_cassette(path, cassette, serializer)
        load = min(cpu(lambda: FilesystemPersister.load_cassette(path, serializer)) for _ in range(3))
        recorder = vcr.VCR(serializer=name, record_mode="none", match_on=match)

        def replay() -> None:
            with recorder.use_cassette(str(path)):
                agent(turns, LEAF)

        return Cost(path.stat().st_size, load, cpu(replay) - load)

    return measure


BLIND = ("method", "scheme", "host", "port", "path", "query")
FORMATS = {
    "ours": ours,
    "vcrpy yaml": vcrpy(yamlserializer, "yaml", BLIND),
    "vcrpy json": vcrpy(jsonserializer, "json", BLIND),
}
MATCHED = {
    "vcrpy yaml + body": vcrpy(yamlserializer, "yaml", (*BLIND, "body")),
    "vcrpy json + body": vcrpy(jsonserializer, "json", (*BLIND, "body")),
}


def exponent(xs: Sequence[float], ys: Sequence[float], start: float = 0) -> str:
    points = [(math.log(x), math.log(y)) for x, y in zip(xs, ys, strict=True) if x >= start and y > 0]
    if len(points) < 2:
        return "n/a"
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return f"{slope:.2f}"


def compare(lengths: Sequence[int], matched: Sequence[int]) -> None:
    print(
        f"{'':>18} {'turns':>6} {'sent MB':>8} {'file KB':>9} {'load s':>8} {'replay s':>9} {'beyond the floor s':>19}"
    )
    sent: dict[int, int] = {}
    rows: dict[str, dict[int, tuple[Cost, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turns in lengths:
            document, sent[turns] = record(turns)
            floor = cpu(lambda turns=turns: agent(turns, Model()))
            print(f"{'floor':>18} {turns:>6} {sent[turns] / 1e6:>8.2f} {'':>9} {'':>8} {floor:>9.3f}")
            for name, measure in {**FORMATS, **(MATCHED if turns in matched else {})}.items():
                cost = measure(document, turns, Path(folder))
                rows.setdefault(name, {})[turns] = cost, cost.replay - floor
                print(
                    f"{name:>18} {turns:>6} {'':>8} {cost.size / 1e3:>9,.0f} {cost.load:>8.3f} {cost.replay:>9.3f} "
                    f"{cost.replay - floor:>19.3f}",
                    flush=True,
                )
    print("\nexponents over turns, from 50 on: file, load, replay; and of what is beyond the floor over bytes sent")
    for name, row in rows.items():
        at = [turns for turns in row if turns >= 50] or list(row)
        sizes, loads, replays = ([getattr(row[n][0], part) for n in at] for part in ("size", "load", "replay"))
        beyond = exponent([sent[n] for n in at], [row[n][1] for n in at])
        print(f"{name:>18} {exponent(at, sizes)} {exponent(at, loads)} {exponent(at, replays)}; {beyond}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--turns", type=int, nargs="*", default=[10, 50, 100, 200, 500])
    parser.add_argument("--matched", type=int, nargs="*", default=[10, 50, 100])
    options = parser.parse_args()
    print(json.dumps({"anthropic": anthropic.__version__, "httpx2": httpx2.__version__, "vcrpy": vcr.__version__}))
    agent(3, Model())  # the SDK builds its types
    compare(options.turns, options.matched)


if __name__ == "__main__":
    main()

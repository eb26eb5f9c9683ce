"""How well a recorded request's tokens are predicted from another request of the same lane.

    python benchmarks/token_prediction.py [--counter chars] [--cache .cache/recordings]

Downloads pinned source distributions and wheels that carry public recordings (nothing is executed, nothing is kept in
the repository), reads them as the plugin would, and predicts each request of 1,000 tokens or more from its
neighbour's usage, with a ruler fitted on the lane's other calls. With tiktoken and ctok installed, a second table edits
the longest prompts (tools dropped, system and results cut, history trimmed) and takes those tokenizers as the truth.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pytest_agentlatency.analysis import assembly
from pytest_agentlatency.analysis.counters import Counter, CounterError, counter
from pytest_agentlatency.analysis.tokens import Ruler, items, server_side, size
from pytest_agentlatency.cassette import foreign
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.model.usage import Tokens, Usage
from pytest_agentlatency.wire.message import Block, Prompt
from pytest_agentlatency.wire.registry import recognise

SDISTS = (
    "langchain-anthropic==1.7.10",
    "chatlas==0.23.0",
    "crewai==1.15.30",
    "magentic==0.41.1",
    "opentelemetry-instrumentation-anthropic==0.62.4",
    "opentelemetry-instrumentation-openai==0.62.4",
)
WHEELS = ("promptreplay==0.2.0", "agentperf-local==0.3.4")
SMALLEST = 1_000
Lane = list[tuple[Prompt, Usage]]


@dataclass(frozen=True)
class Guess:
    source: str
    error: float
    """Tokens, as a part of the true total."""
    sign_right: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counter", default="chars")
    parser.add_argument("--cache", type=Path, default=Path(".cache/recordings"))
    options = parser.parse_args()
    ruler = counter(options.counter)
    download(options.cache)
    known = list(lanes(options.cache))
    table(f"Neighbours in a lane ({ruler.id})", neighbours(known, ruler))
    for truth, model in (("claude", "claude-sonnet-4-5"), ("tiktoken", "gpt-5")):
        try:
            table(f"Revisions, counted by {truth} ({ruler.id})", revisions(known, ruler, counter(truth), model))
        except CounterError as missing:
            print(f"\nRevisions, counted by {truth}: left out. {missing}")


def download(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
    any_python = ["--only-binary", ":all:", "--python-version", "3.13"]
    for name, how in [(n, ["--no-binary", ":all:"]) for n in SDISTS] + [(n, any_python) for n in WHEELS]:
        stem = name.replace("==", "-").replace("-", "_")
        if not any(path.name.replace("-", "_").startswith(stem) for path in cache.iterdir()):
            subprocess.run([*pip, *how, name], check=True)  # noqa: S603


def lanes(cache: Path) -> Iterator[tuple[str, Lane]]:
    for path in sorted(cache.iterdir()):
        source = path.name.split("-")[0]
        if path.name.endswith(".tar.gz"):
            yield from ((source, lane) for lane in cassettes(path))
        elif path.name.endswith(".whl"):
            yield from ((source, lane) for lane in traces(path))


def cassettes(archive: Path) -> Iterator[Lane]:
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and ("cassettes" in member.name or "/_vcr/" in member.name) and ".y" in member.name:
                yield from _lanes_in(tar.extractfile(member).read())


def _lanes_in(data: bytes) -> Iterator[Lane]:
    try:
        recording = foreign.read(data).recording
    except Exception:  # noqa: BLE001 - another room's errors; a file that can't be read is no evidence here
        return
    by_lane: dict[tuple[int, str], Lane] = defaultdict(list)
    for reading in assembly.read(recording):
        usage = reading.call.usage
        if usage.context and not usage.multi_pass and reading.whole and not server_side(reading.prompt):
            by_lane[reading.lane, reading.prompt.model].append((reading.prompt, usage))
    yield from by_lane.values()


def traces(wheel: Path) -> Iterator[Lane]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("sample-trace.jsonl.gz"):
                yield [_claude_code(json.loads(line)) for line in gzip.decompress(archive.read(name)).splitlines()]
            elif "/traces/" in name and name.endswith(".jsonl"):
                turns = map(json.loads, archive.read(name).splitlines())
                yield [_task(turn) for turn in turns if turn.get("recorded_prompt_tokens")]


def _claude_code(turn: dict) -> tuple[Prompt, Usage]:
    used = turn["response"]["usage"]
    usage = Usage(Tokens(used["input_tokens"]), Tokens(used.get("cache_read_input_tokens", 0)))
    return _prompt("/v1/messages", turn["body"]), usage


def _task(turn: dict) -> tuple[Prompt, Usage]:
    body = {"model": "local", "messages": turn["messages"], "tools": turn.get("tools") or []}
    return _prompt("/v1/chat/completions", body), Usage(Tokens(turn["recorded_prompt_tokens"]))


def _prompt(path: str, body: dict) -> Prompt:
    request = Request("POST", f"https://model.example{path}", body=json.dumps(body).encode())
    provider = recognise(request)
    assert provider
    return provider.prompt(request)


def neighbours(known: Iterable[tuple[str, Lane]], ruler: Counter) -> Iterator[Guess]:
    for source, lane in known:
        points = [(size(prompt, ruler), usage.context) for prompt, usage in lane]
        for at, (count, true) in enumerate(points if len(points) > 1 else []):
            if true < SMALLEST:
                continue
            near, anchor = points[at - 1 if at else 1]
            others = points[:at] + points[at + 1 :]
            change = Ruler.fit(others, ruler, lane[at][0].model).scaled(count - near)
            yield Guess(source, abs(anchor + change - true) / true, change * (true - anchor) >= 0)


def revisions(known: Iterable[tuple[str, Lane]], ruler: Counter, truth: Counter, model: str) -> Iterator[Guess]:
    """Edits of each long lane's eighth prompt, both ways; the ruler knows the lane's turns up to there."""
    rng = random.Random(7)  # noqa: S311 - not a secret
    for source, lane in known:
        prompts = [replace(prompt, model=model) for prompt, _ in lane[:8]]
        if len(prompts) < 4 or lane[0][1].context < SMALLEST:
            continue
        fitted = Ruler.fit([(size(each, ruler), billed(each, truth)) for each in prompts], ruler, model)
        for edited in edits(prompts[-1], rng):
            for before, after in ((prompts[-1], edited), (edited, prompts[-1])):
                was, true = billed(before, truth), billed(after, truth)
                change = fitted.scaled(size(after, ruler) - size(before, ruler))
                yield Guess(source, abs(was + change - true) / true, change * (true - was) >= 0)


def billed(prompt: Prompt, truth: Counter) -> int:
    return 500 + sum(truth.count(item.text) + item.fixed for item in items(prompt))


def edits(prompt: Prompt, rng: random.Random) -> Iterator[Prompt]:
    for dropped in (1, 4, 12):
        if len(prompt.tools) > dropped:
            yield replace(prompt, tools=tuple(rng.sample(prompt.tools, len(prompt.tools) - dropped)))
    for part in (0.2, 0.5, 0.9):
        if prompt.system:
            yield replace(prompt, system=tuple(_cut(block, part) for block in prompt.system))
        yield _blockwise(prompt, lambda block, part=part: _cut(block, part) if block.kind == "tool_result" else block)
    yield replace(prompt, messages=prompt.messages[:1] + prompt.messages[3:])


def _blockwise(prompt: Prompt, change: Callable[[Block], Block]) -> Prompt:
    changed = (replace(each, blocks=tuple(map(change, each.blocks))) for each in prompt.messages)
    return replace(prompt, messages=tuple(changed))


def _cut(block: Block, part: float) -> Block:
    return replace(block, text=block.text[: int(part * len(block.text))])


def table(title: str, guesses: Iterable[Guess]) -> None:
    by_source: dict[str, list[Guess]] = defaultdict(list)
    for guess in guesses:
        by_source[guess.source].append(guess)
        by_source["all"].append(guess)
    print(f"\n{title}\n\n| recordings | pairs | median error | p90 | wrong sign |\n|---|---|---|---|---|")
    for source, found in sorted(by_source.items(), key=lambda each: (each[0] == "all", each[0])):
        errors = sorted(guess.error for guess in found)
        wrong = sum(not guess.sign_right for guess in found)
        print(f"| {source} | {len(found)} | {median(errors):.2%} | {errors[int(0.9 * len(errors))]:.2%} | {wrong} |")


if __name__ == "__main__":
    main()

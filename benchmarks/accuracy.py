"""Phases and cache predictions beside the word of a real inference server, turn by turn.

    python -m benchmarks.accuracy [--runs 5] [--write]

Runs the ReAct agent of `fixtures/agents` against llama.cpp's server on this machine (installed on first use), with its
prefix cache on and off, and prints the tables of docs/accuracy.md; `--write` puts them there. Needs the `test` extra.
"""

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

import anthropic

from fixtures.agents import react
from tests.support.llama_runs import Compared, Measured, measured
from tests.support.llama_server import VERSION, LlamaServer

QUESTION = "Which arrows point to the left, and how many are there?"
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
START, END = "<!-- made by benchmarks/accuracy.py -->", "<!-- end of what benchmarks/accuracy.py makes -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of the agent for each state of the cache")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/accuracy.md")
    options = parser.parse_args()
    text = "\n".join(report(options.runs))
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        made = f"{START}\n\n{text}\n\n{END}"
        PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: made, page, flags=re.DOTALL), encoding="utf-8")


def report(runs: int) -> Iterator[str]:
    loads = [os.getloadavg()[0]]
    by_cache: dict[bool, list[Measured]] = {}
    for on in (True, False):
        with LlamaServer(prefix_cache=on) as server:
            by_cache[on] = [measured(server, stable) for _ in range(runs)]
        loads.append(os.getloadavg()[0])
    requests = [each for found in by_cache.values() for run in found for each in run.compared]
    yield (
        f"llama.cpp server {VERSION}, anthropic {anthropic.__version__}, {os.cpu_count()} processors, load "
        f"{min(loads):.1f} to {max(loads):.1f}. {runs} runs each; {len(requests)} requests.\n"
    )
    yield from errors(requests)
    for on, found in by_cache.items():
        yield f"\n### Turn by turn, prefix cache {'on' if on else 'off'}\n"
        yield from turns(found)
    yield "\n### Tokens read from the cache: predicted, and the server's `cache_n`\n"
    yield from caches()


def errors(requests: Sequence[Compared]) -> Iterator[str]:
    """What each way of measuring errs by, over all requests."""
    yield "| measured | taken for | median | p90 of its size | largest |\n|---|---|---|---|---|"
    rows = {
        "prefill": ("prompt_ms", [(each.prefill_ms, each.truth.prompt_ms) for each in requests]),
        "decode": ("predicted_ms", [(each.decode_ms, each.truth.decode_ms) for each in requests]),
        "(TTFT, call to first visible token)": (
            "prompt_ms",
            [(each.ttft_ms, each.truth.prompt_ms) for each in requests],
        ),
        "(first to last visible token)": ("predicted_ms", [(visible(each), each.truth.decode_ms) for each in requests]),
    }
    for name, (truth, pairs) in rows.items():
        worst = sorted(pairs, key=lambda pair: abs(pair[0] - pair[1]))
        cells = (worst[int(0.9 * len(worst))], worst[-1])
        size, most = (f"{abs(ours - theirs):.1f} ms ({abs(ours / theirs - 1):.2%})" for ours, theirs in cells)
        difference = median(ours - theirs for ours, theirs in pairs)
        relative = median(ours / theirs - 1 for ours, theirs in pairs)
        yield f"| {name} | `{truth}` | {difference:+.1f} ms ({relative:+.2%}) | {size} | {most} |"


def visible(compared: Compared) -> float:
    """Milliseconds between the visible tokens alone."""
    return (compared.turn.call.decode or 0) / 1e6


def turns(runs: Sequence[Measured]) -> Iterator[str]:
    """Medians over the runs; the errors are medians of each request's own error, and the largest."""
    yield (
        "| turn | context | cached | output | prefill, ms | `prompt_ms` | error | largest "
        "| decode, ms | `predicted_ms` | error | largest |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for same in zip(*(run.compared for run in runs), strict=True):
        usage = same[0].turn.call.usage
        prefill = pair((each.prefill_ms, each.truth.prompt_ms) for each in same)
        decode = pair((each.decode_ms, each.truth.decode_ms) for each in same)
        yield (
            f"| {same[0].turn.number} | {usage.context:,} | {usage.cache_read:,} | {usage.output} | "
            f"{prefill} | {decode} |"
        )


def pair(times: Iterable[tuple[float, float]]) -> str:
    known = list(times)
    differences = [ours - theirs for ours, theirs in known]
    ours, theirs = (median(each) for each in zip(*known, strict=True))
    return f"{ours:.1f} | {theirs:.1f} | {median(differences):+.1f} | {max(differences, key=abs):+.1f}"


def stable() -> None:
    react.answer(QUESTION)


def busted() -> None:
    react.answer(QUESTION, system=react.clocked())


def forked() -> None:
    react.branch(QUESTION, steps=4)


def caches() -> Iterator[str]:
    yield "| prefix | request | context | predicted | `cache_n` | difference |\n|---|---|---|---|---|---|"
    with LlamaServer() as server:
        for agent in (stable, busted, forked):
            run = measured(server, agent)
            for number, (each, predicted) in enumerate(zip(run.readings, run.predicted_cached, strict=True), start=1):
                cached = run.truths[number - 1].cached
                yield (
                    f"| {agent.__name__} | {number} | {each.call.usage.context:,} | {predicted:,} | {cached:,} "
                    f"| {predicted - cached:+} |"
                )


if __name__ == "__main__":
    main()

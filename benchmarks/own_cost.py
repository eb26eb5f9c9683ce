"""What each mode costs a call beyond the SDK alone, on a transport inside the process; setting up is told apart.

    python -m benchmarks.own_cost [--turns 20 50] [--rounds 41] [--instructions perf|valgrind|no]

The agent is that of `benchmarks.replay`. In every round the bare SDK, on a MockTransport, and each mode run one after
the other, so that a slower machine is slower for all. *A call* is the CPU time of the agent's loop over its turns; *set
up* is what entering and leaving the session takes, once a test; *after* is what a test has done once it is over: the
figures of a replay, the search for secrets, writing and reading back of a recording. The garbage collector is off while
the clock runs: a collection goes through all objects of the SDK, and falls on whoever is next.

Instructions don't depend on what else the machine does. They are counted over whole processes, with all turns and with
none: what is between them are the calls. Set-up is a mean there, with the first of a process in it. `perf` needs a
processor that counts; `valgrind` counts anywhere, in minutes.
"""

import argparse
import gc
import os
import re
import statistics
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import httpx2

from benchmarks.replay import LEAF, Model, agent, plan, record
from pytest_agentlatency.capture.session import Session
from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.vetting import vet
from pytest_agentlatency.model.mode import Mode

MODES = {"bare": None, "replay": Mode.REPLAY, "record": Mode.RECORD, "live": Mode.LIVE}
COUNTERS = {
    "perf": (["perf", "stat", "-x,", "-e", "instructions:u"], r"^(\d+),[^,]*,instructions:u"),
    "valgrind": (
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"],
        r"I\s+refs:\s+([\d,]+)",
    ),
}
RUNS = 5


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one run."""

    setup: float
    calls: float
    after: float


def session(name: str, document: Document) -> AbstractContextManager[Any]:
    mode = MODES[name]
    return nullcontext() if mode is None else Session(plan(mode, document if mode is Mode.REPLAY else None))


def finish(name: str, run: Session) -> object:
    """What a test does with a run that is over."""
    return run.told() if name != "record" else vet(run.document(), run.learned)


def loop(name: str, turns: int) -> None:
    agent(turns, LEAF if name == "replay" else httpx2.MockTransport(Model().handle_request))


def cost(name: str, turns: int, document: Document) -> Cost:
    gc.collect()
    gc.disable()
    begin = time.process_time()
    with session(name, document) as run:
        entered = time.process_time()
        loop(name, turns)
        left = time.process_time()
    end = time.process_time()
    if name != "bare":
        finish(name, run)
    after = time.process_time()
    gc.enable()
    return Cost(entered - begin + end - left, left - entered, after - end)


def by_time(turns: int, rounds: int) -> None:
    document, _ = record(turns)
    taken: dict[str, list[Cost]] = {name: [] for name in MODES}
    for _ in range(rounds):
        for name in MODES:
            taken[name].append(cost(name, turns, document))
    print(f"\n{turns} turns, {rounds} paired rounds, CPU")
    for name, costs in taken.items():
        pairs = zip(costs, taken["bare"], strict=True)
        ratios = sorted(one.calls / bare.calls - 1 for one, bare in pairs)
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        once = {part: statistics.median(getattr(each, part) for each in costs) * 1e3 for part in ("setup", "after")}
        print(
            f"{name:>8} {min(each.calls for each in costs) / turns * 1e3:6.2f} ms a call at least; over bare "
            f"{statistics.median(ratios):+.1%} (middle half {low:+.1%} to {high:+.1%}); "
            f"set up {once['setup']:.1f} ms, after {once['after']:.1f} ms"
        )


def instructions(counter: str, name: str, turns: int, length: int) -> int | None:
    """Of a process that makes `RUNS` runs of so many turns, where `length` were recorded; None: it can't count here."""
    command, pattern = COUNTERS[counter]
    itself = [sys.executable, "-m", "benchmarks.own_cost", "--run", name, str(turns), str(length)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run([*command, *itself], env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(pattern, done.stderr, re.MULTILINE)
    return int(found[1].replace(",", "")) if found else None


def by_instructions(counter: str, turns: int) -> None:
    print(f"\n{turns} turns, instructions counted by {counter}")
    counts = {name: [instructions(counter, name, made, turns) for made in (0, turns)] for name in MODES}
    nothing, floor = counts["bare"]
    for name, (empty, full) in counts.items():
        if nothing is None or floor is None or empty is None or full is None:
            print(f"{name:>8} not counted: {counter} can't, here")
            continue
        own = (full - empty) / (floor - nothing) - 1
        a_call, once = (full - empty) / RUNS / turns / 1e6, (empty - nothing) / RUNS / 1e6
        print(f"{name:>8} {a_call:6.2f} million a call; over bare {own:+.1%}; set up {once:.1f} million")


def run(name: str, turns: int, length: int) -> None:
    """Runs in this process, for a counter around it."""
    document, _ = record(length)
    agent(3, Model())
    gc.disable()
    for _ in range(RUNS):
        with session(name, document):
            loop(name, turns)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--turns", type=int, nargs="*", default=[20, 50])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--instructions", choices=[*COUNTERS, "no"], default="perf")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run[0], *map(int, options.run[1:]))
        return
    agent(3, Model())  # the SDK builds its types
    for turns in options.turns:
        by_time(turns, options.rounds)
        if options.instructions != "no":
            by_instructions(options.instructions, turns)


if __name__ == "__main__":
    main()

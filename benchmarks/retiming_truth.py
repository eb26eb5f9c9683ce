"""Projected changes of an agent beside the same changes sent for real, on a real inference server.

    python -m benchmarks.retiming_truth [--steps 6] [--rows 20] [--write]

Records the ReAct agent of `fixtures/agents` against llama.cpp's server on this machine (installed on first use), with
its prefix cache on and off. Then, for each change: sends the recorded requests again (the base), projects the change
offline from that recording alone, sends the changed requests for real, and compares prefill turn by turn. A sweep by
`agentlatency calibrate` on the same server stands in where a recording's own calls can't tell what a token costs.
`--write` puts the tables into docs/accuracy.md. Needs the `test` extra.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from fixtures.agents import react
from pytest_agentlatency.analysis.calibration import Calibration
from pytest_agentlatency.analysis.counters import counter
from pytest_agentlatency.analysis.drift import LiveCall, replayed
from pytest_agentlatency.analysis.retiming import Retimed, by_fits
from pytest_agentlatency.capture.sweep import Endpoint, Sweep, sizes
from pytest_agentlatency.model.recording import Recording, Request
from pytest_agentlatency.model.run import Call, Retiming, Verdict
from tests.support.llama_runs import Measured, forget, measured
from tests.support.llama_server import VERSION, LlamaServer

QUESTION = "Which arrows point to the left, and how many are there?"
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
START, END = "<!-- made by benchmarks/retiming_truth.py -->", "<!-- end of what benchmarks/retiming_truth.py makes -->"
_MS = 1e6

Body = dict[str, Any]
Change = Callable[[int, Body, list[Body]], None]
"""Changes the body of a call, given its number from 1 and all recorded bodies."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help="tool turns of the agent")
    parser.add_argument("--rows", type=int, default=20, help="rows of a search result")
    parser.add_argument("--repeats", type=int, default=5, help="sendings of base and change, by turns")
    parser.add_argument("--only", help="changes whose name holds this")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/accuracy.md")
    options = parser.parse_args()
    changes = {name: each for name, each in CHANGES.items() if (options.only or "") in name}
    text = "\n".join(report(changes, options))
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        made = f"{START}\n\n{text}\n\n{END}"
        PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: made, page, flags=re.DOTALL), encoding="utf-8")


# --- changes of the agent


def longer_system(tokens: int) -> Change:
    def change(_: int, body: Body, __: list[Body]) -> None:
        body["system"] += "\n" + " ".join(react.SYSTEM.split() * 20)[: 4 * tokens]

    return change


def shorter_system(_: int, body: Body, __: list[Body]) -> None:
    body["system"] = body["system"][: len(body["system"]) // 3]


def changed_first(_: int, body: Body, __: list[Body]) -> None:
    body["system"] = "Be brief. " + body["system"]


def clocked(number: int, body: Body, __: list[Body]) -> None:
    body["system"] = f"It is 09:{number:02}:00.\n{body['system']}"


def clocked_at_the_end(number: int, body: Body, __: list[Body]) -> None:
    body["system"] += f"\nIt is 09:{number:02}:00."


def results(edit: Callable[[str], str], since: int = 1) -> Change:
    def change(_: int, body: Body, __: list[Body]) -> None:
        seen = 0
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "tool_result":
                    seen += 1
                    if seen >= since:
                        block["content"] = edit(block["content"])

    return change


def summarised(after: int) -> Change:
    def change(number: int, body: Body, bodies: list[Body]) -> None:
        held = len(bodies[after - 1]["messages"])
        if number > after:
            said = {
                "role": "user",
                "content": "So far: the searches gave names of arrows, one a line, none of them final.",
            }
            body["messages"] = [body["messages"][0], said, *body["messages"][held:]]

    return change


def reordered_tools(_: int, body: Body, __: list[Body]) -> None:
    body["tools"] = body["tools"][::-1]


def reordered_from(since: int) -> Change:
    def change(number: int, body: Body, __: list[Body]) -> None:
        body["tools"] = body["tools"][::-1] if number >= since else body["tools"]

    return change


def extra_tools(count: int) -> Change:
    def change(_: int, body: Body, __: list[Body]) -> None:
        more = [{**body["tools"][0], "name": f"search_{number}"} for number in range(count)]
        body["tools"] = [*body["tools"], *more]

    return change


def longer_question(_: int, body: Body, __: list[Body]) -> None:
    body["messages"][0]["content"] += " " + " ".join(react.SYSTEM.split() * 3)


def no_tools_at_last(number: int, body: Body, bodies: list[Body]) -> None:
    if number == len(bodies):
        del body["tools"]


def short_answer(_: int, body: Body, __: list[Body]) -> None:
    """For base and change alike: decode isn't what is compared. Enough for a tool's name to be seen."""
    body["max_tokens"] = 40


def nothing(_: int, __: Body, ___: list[Body]) -> None:
    """The same again: what the machine alone makes of it."""


CHANGES: dict[str, Change] = {
    "nothing": nothing,
    "system prompt +200 tokens": longer_system(200),
    "system prompt +1,000 tokens": longer_system(1000),
    "system prompt cut to a third": shorter_system,
    "two words in front of the system prompt": changed_first,
    "the time of day in front of the system prompt": clocked,
    "the time of day behind the system prompt": clocked_at_the_end,
    "tool results cut to half": results(lambda text: text[: len(text) // 2]),
    "tool results twice as long": results(lambda text: text + "\n" + text),
    "third tool result three times as long": results(lambda text: "\n".join([text] * 3), since=3),
    "history summarised after turn 3": summarised(3),
    "tools in another order": reordered_tools,
    "tools in another order from turn 4 on": reordered_from(4),
    "five more tools": extra_tools(5),
    "a longer question": longer_question,
    "no tools on the last turn": no_tools_at_last,
}


# --- sending and projecting


@dataclass(frozen=True, slots=True)
class Sending:
    """The base, sent; the change, projected from that recording alone; the change, sent next."""

    base: Measured
    projected: Retimed
    real: Measured

    def changed(self) -> Iterator["Compared"]:
        """Every turn whose load the change moved."""
        for before, now, after in zip(self.base.compared, self.projected.run.calls, self.real.compared, strict=True):
            if now.retimed is not None:
                cached = int(now.usage.cache_read), after.truth.cached
                context = int(now.usage.context or 0), after.truth.cached + after.truth.prompt
                yield Compared(before.turn.number, now.retimed, after.prefill_ms, cached, context)

    def unchanged(self) -> Iterator[float]:
        """For every turn that nothing changed, how far its second sending was off the first, as a factor above 1."""
        for before, now, after in zip(self.base.compared, self.projected.run.calls, self.real.compared, strict=True):
            if now.retimed is None and before.prefill_ms and after.prefill_ms:
                yield _factor(before.prefill_ms, after.prefill_ms)


@dataclass(frozen=True, slots=True)
class Compared:
    """One changed turn: prefill as projected, and in milliseconds as it really was."""

    number: int
    projected: Retiming
    real: float
    cached: tuple[int, int]
    """Projected and real."""
    context: tuple[int, int]

    @property
    def within(self) -> bool:
        """Whether this new recording lies in the interval that is stated for one."""
        low, high = self.projected.again
        return low <= self.real * _MS <= high

    @property
    def width(self) -> float:
        """Half of that interval, as a fraction of the projection."""
        low, high = self.projected.again
        return (high - low) / 2 / max(1, self.projected.projected)


@dataclass(frozen=True, slots=True)
class Case:
    """One change, projected and sent a few times."""

    name: str
    cached: bool
    sendings: tuple[Sending, ...]

    @property
    def base(self) -> list[float]:
        """Milliseconds of each turn, the fastest of its sendings: what the machine disturbed least."""
        return _fastest(sending.base for sending in self.sendings)

    @property
    def real(self) -> list[float]:
        """The same of the changed requests."""
        return _fastest(sending.real for sending in self.sendings)

    @property
    def changes(self) -> list[float]:
        """Projected change of each turn, milliseconds: the median over the sendings, each by its own latency model."""
        turns = zip(*(sending.projected.run.calls for sending in self.sendings), strict=True)
        return [median(_change(call) for call in calls) for calls in turns]

    @property
    def errors(self) -> list[float]:
        """Of every changed turn: how far fastest base + projected change is off the fastest change, as a fraction."""
        turns = zip(self.base, self.changes, self.real, strict=True)
        return [abs((base + change) / real - 1) for base, change, real in turns if change]

    @property
    def repeated(self) -> list[float]:
        """Of every unchanged turn: by which factor the fastest second sending was off the fastest first one."""
        turns = zip(self.base, self.changes, self.real, strict=True)
        return [_factor(base, real) for base, change, real in turns if not change]


def _factor(one: float, other: float) -> float:
    return max(one / other, other / one)


def _fastest(runs: Iterable[Measured]) -> list[float]:
    return [min(turns) for turns in zip(*([each.prefill_ms for each in run.compared] for run in runs), strict=True)]


def _change(call: Call) -> float:
    return 0.0 if call.retimed is None else (call.retimed.projected - call.retimed.recorded) / _MS


def send(server: LlamaServer, bodies: Sequence[bytes], name: str) -> Measured:
    """Send bodies one after the other, each on a connection of its own, under observation."""

    def agent() -> None:
        with httpx.Client(timeout=600) as client:
            for body in bodies:
                headers = {"content-type": "application/json", "connection": "close", "x-api-key": "none"}
                with client.stream("POST", f"{server.url}/v1/messages", content=body, headers=headers) as response:
                    response.read()
                    response.raise_for_status()

    return measured(server, agent, name)


def project(base: Recording, bodies: Sequence[bytes], calibrations: Sequence[Calibration]) -> Retimed:
    """The base with the changed requests, offline."""
    live = [
        LiveCall(
            attempt.call,
            Request("POST", attempt.request.url, attempt.request.headers, body),
            Verdict.IDENTICAL if attempt.request.body == body else Verdict.DRIFTED,
        )
        for attempt, body in zip(base.attempts, bodies, strict=True)
    ]
    return by_fits(replayed(base, live, counter()), calibrations)


def changed(bodies: Sequence[bytes], change: Change) -> list[bytes]:
    """The bodies of the changed agent."""
    known = [json.loads(body) for body in bodies]
    found = [json.loads(body) for body in bodies]
    for number, body in enumerate(found, 1):
        change(number, body, known)
    return [json.dumps(body).encode() for body in found]


def cases(changes: dict[str, Change], options: argparse.Namespace, *, cached: bool) -> Iterator[Case]:
    """Every change in one state of the cache; base and change are sent by turns."""
    steps, rows, repeats = options.steps, options.rows, options.repeats
    with LlamaServer(prefix_cache=cached) as server:
        calibration = calibrated(server)
        first = measured(server, lambda: react.answer(QUESTION, steps=steps, rows=rows))
        bodies = changed([attempt.request.body for attempt in first.document.recording.attempts], short_answer)
        for name, change in changes.items():
            now = changed(bodies, change)
            yield Case(name, cached, tuple(_sending(server, bodies, now, calibration) for _ in range(repeats)))


def _sending(server: LlamaServer, bodies: Sequence[bytes], now: Sequence[bytes], calibration: Calibration) -> Sending:
    base, real = send(server, bodies, "base"), send(server, now, "change")
    return Sending(base, project(base.document.recording, now, [calibration]), real)


def calibrated(server: LlamaServer) -> Calibration:
    """A sweep over prompts of the sizes that the agent sends."""
    forget(server)
    earlier = len(server.truths())
    with Sweep(Endpoint(server.url, "random-llama"), sizes(12, 250, 8000)) as sweep:
        latency = sweep.run()
    server.truths(earlier + 1 + len(sweep.samples))  # its log follows a moment behind
    key = sweep.key
    assert key is not None
    return Calibration(key.provider, key.model, key.tier, "2026-12-01", latency)


# --- words


def report(changes: dict[str, Change], options: argparse.Namespace) -> Iterator[str]:
    loads = [os.getloadavg()[0]]
    found: list[Case] = []
    for cached in (True, False):
        for case in cases(changes, options, cached=cached):
            found.append(case)
            loads.append(os.getloadavg()[0])
            print(f"  {case.name}, cache {'on' if cached else 'off'}: load {loads[-1]:.1f}", flush=True)
    yield from _summary(found, options, loads)
    yield "\n| change | cache | prefill of the run: base | projected | real | change projected | real | median error |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(_row, found)


def _summary(found: Sequence[Case], options: argparse.Namespace, loads: Sequence[float]) -> Iterator[str]:
    turns = [turn for case in found for sending in case.sendings for turn in sending.changed()]
    noise = sorted(factor for case in found for sending in case.sendings for factor in sending.unchanged()) or [1.0]
    fastest = [factor for case in found for factor in case.repeated] or [1.0]
    moved = [case for case in found if any(case.changes)]
    large = [case for case in moved if abs(sum(case.changes)) > _LARGE * sum(case.base)]
    yield (
        f"llama.cpp server {VERSION}, {os.cpu_count()} processors, load {min(loads):.1f} to {max(loads):.1f}. "
        f"{len(moved)} changes of an agent of {options.steps + 1} turns, base and change sent {options.repeats} times "
        f"by turns. The machine's own noise: a turn that nothing changed took {median(noise) - 1:.0%} (median), "
        f"{noise[int(0.9 * (len(noise) - 1))] - 1:.0%} (p90) longer or shorter when it was sent again; "
        f"{median(fastest) - 1:.0%} between the fastest of {options.repeats} and the fastest of {options.repeats}.\n"
    )
    yield "| over all changed turns | |\n|---|---|"
    yield f"| new recordings within the 90 % interval that the projection states for one | {_share(turns)} |"
    yield f"| half width of that interval, median | {median(turn.width for turn in turns):.0%} of the projection |"
    yield f"| median error of the projected prefill, on the fastest sendings | {_median_error(found)} |"
    yield f"| sign of the run's prefill change right, changes over {_LARGE:.0%} of the run | {_signs(large)} |"
    yield f"| sign right, all changes | {_signs(moved)} |"
    yield f"| median error of its context, of its cached tokens | {_tokens_off(turns)} |"


_LARGE = 0.05
"""Smaller changes of a whole run are within what this server's own noise can turn around."""


def _share(turns: Sequence[Compared]) -> str:
    within = sum(turn.within for turn in turns)
    return f"{within} of {len(turns)} ({within / max(1, len(turns)):.0%})"


def _median_error(found: Sequence[Case]) -> str:
    return f"{median(error for case in found for error in case.errors):.1%}"


def _signs(found: Sequence[Case]) -> str:
    right = sum((sum(case.changes) > 0) == (sum(case.real) > sum(case.base)) for case in found)
    return f"{right} of {len(found)}"


def _row(case: Case) -> str:
    base, change, real = sum(case.base), sum(case.changes), sum(case.real)
    times = " | ".join(f"{value:,.0f} ms" for value in (base, base + change, real))
    shares = " | ".join(f"{each / base:+.1%}" for each in (change, real - base))
    error = f"{median(case.errors):.0%}" if case.errors else "-"
    return f"| {case.name} | {'on' if case.cached else 'off'} | {times} | {shares} | {error} |"


def _tokens_off(turns: Sequence[Compared]) -> str:
    context = median(abs(each.context[0] - each.context[1]) / each.context[1] for each in turns)
    cached = median(abs(each.cached[0] - each.cached[1]) / each.context[1] for each in turns)
    return f"{context:.2%}, {cached:.2%} of the context"


if __name__ == "__main__":
    main()

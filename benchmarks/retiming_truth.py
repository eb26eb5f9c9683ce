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
from pytest_agentlatency.model.run import Verdict
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
    parser.add_argument(
        "--repeats", type=int, default=2, help="sendings of base and change, of which the fastest counts"
    )
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
class Case:
    """One change, projected and sent."""

    name: str
    cached: bool
    base: Measured
    projected: Retimed
    real: Measured

    def turns(self) -> Iterator["Compared"]:
        """Every turn whose load the change moved."""
        for before, now, after in zip(self.base.compared, self.projected.run.calls, self.real.compared, strict=True):
            if now.retimed is not None:
                time = now.retimed
                yield Compared(
                    before.prefill_ms,
                    (time.low / _MS, time.projected / _MS, time.high / _MS),
                    after.prefill_ms,
                    (int(now.usage.cache_read), after.truth.cached),
                    (int(now.usage.context or 0), after.truth.cached + after.truth.prompt),
                )

    def unchanged(self) -> Iterator[float]:
        """For every turn that nothing changed, how far its second sending was off the first, as a factor above 1."""
        for before, now, after in zip(self.base.compared, self.projected.run.calls, self.real.compared, strict=True):
            if now.retimed is None and before.prefill_ms and after.prefill_ms:
                yield max(before.prefill_ms / after.prefill_ms, after.prefill_ms / before.prefill_ms)


@dataclass(frozen=True, slots=True)
class Compared:
    """One turn: prefill in milliseconds as recorded, as projected (low, point, high), as it really was."""

    base: float
    projected: tuple[float, float, float]
    real: float
    cached: tuple[int, int]
    """Projected and real."""
    context: tuple[int, int]

    def within(self, noise: float = 1.0) -> bool:
        """Whether the real prefill lies in the interval, widened by a factor to both sides."""
        return self.projected[0] / noise <= self.real <= self.projected[2] * noise

    @property
    def error(self) -> float:
        return abs(self.projected[1] / self.real - 1)


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
    """Every change in one state of the cache; of repeated sendings, by turns, the one the machine disturbed least."""
    steps, rows, repeats = options.steps, options.rows, options.repeats
    with LlamaServer(prefix_cache=cached) as server:
        calibration = calibrated(server)
        first = measured(server, lambda: react.answer(QUESTION, steps=steps, rows=rows))
        bodies = changed([attempt.request.body for attempt in first.document.recording.attempts], short_answer)
        for name, change in changes.items():
            now = changed(bodies, change)
            sent = [(send(server, bodies, "base"), send(server, now, name)) for _ in range(repeats)]
            base, real = (min(column, key=_prefill) for column in zip(*sent, strict=True))
            yield Case(name, cached, base, project(base.document.recording, now, [calibration]), real)


def _prefill(run: Measured) -> float:
    return sum(each.prefill_ms for each in run.compared)


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
    for cached in (False, True):
        for case in cases(changes, options, cached=cached):
            found.append(case)
            loads.append(os.getloadavg()[0])
            print(f"  {case.name}, cache {'on' if cached else 'off'}: load {loads[-1]:.1f}", flush=True)
    every = [turn for case in found for turn in case.turns()]
    moved = [case for case in found if _totals(case)[0] != _totals(case)[1]]
    right = sum(1 for case in moved if _same_sign(case))
    noise = sorted(factor for case in found for factor in case.unchanged()) or [1.0]
    usual, much = median(noise), noise[int(0.9 * (len(noise) - 1))]
    yield (
        f"llama.cpp server {VERSION}, {os.cpu_count()} processors, load {min(loads):.1f} to {max(loads):.1f}. "
        f"{len(moved)} changes of an agent of {options.steps + 1} turns, {len(every)} changed turns; of "
        f"{options.repeats} sending(s) the fastest. {len(noise)} turns that nothing changed differed by "
        f"{usual - 1:.0%} (median) and {much - 1:.0%} (p90) when they were sent again: the machine's own noise.\n"
    )
    yield "| over all changed turns | |\n|---|---|"
    yield f"| sign of the run's prefill change right | {right} of {len(moved)} |"
    yield f"| real prefill within the 90 % interval of the projection | {_share(each.within() for each in every)} |"
    yield f"| ... widened by the machine's p90 noise | {_share(each.within(much) for each in every)} |"
    yield f"| median error of the projected prefill | {median(each.error for each in every):.1%} |"
    yield f"| median error of its context, of its cached tokens | {_tokens_off(every)} |"
    yield "\n| change | cache | prefill of the run: recorded | projected | real | within | median error |"
    yield "|---|---|---|---|---|---|---|"
    yield from map(_row, found)


def _totals(case: Case) -> tuple[float, float, float]:
    base = _prefill(case.base)
    projected = sum(
        (call.retimed.projected - call.retimed.recorded) for call in case.projected.run.calls if call.retimed
    )
    return base, base + projected / _MS, _prefill(case.real)


def _same_sign(case: Case) -> bool:
    base, projected, real = _totals(case)
    return (projected > base) == (real > base)


def _row(case: Case) -> str:
    base, projected, real = _totals(case)
    turns = list(case.turns())
    within = f"{sum(each.within() for each in turns)} of {len(turns)}"
    error = f"{median(each.error for each in turns):.0%}" if turns else "-"
    cache = "on" if case.cached else "off"
    times = " | ".join(f"{value:,.0f} ms" for value in (base, projected, real))
    return f"| {case.name} | {cache} | {times} | {within} | {error} |"


def _share(flags: Iterable[bool]) -> str:
    known = list(flags)
    return f"{sum(known)} of {len(known)} ({sum(known) / max(1, len(known)):.0%})"


def _tokens_off(turns: Sequence[Compared]) -> str:
    context = median(abs(each.context[0] - each.context[1]) / each.context[1] for each in turns)
    cached = median(abs(each.cached[0] - each.cached[1]) / each.context[1] for each in turns)
    return f"{context:.2%}, {cached:.2%} of the context"


if __name__ == "__main__":
    main()

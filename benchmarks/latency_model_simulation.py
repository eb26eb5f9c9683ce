"""Coverage and error of the prefill latency model on simulated calls whose truth is known.

    python benchmarks/latency_model_simulation.py --worlds 1000

In each world a, b and the attention length N are drawn, n calls are measured with lognormal noise of which one in
twenty is 1.5 to 4 times slower, and the model is fitted as the plugin does, with its default priors. Seeded, standard
library only, no network.
"""

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pytest_agentlatency.analysis.prefill import LatencyModel, Load, NoFit, Sample, Shape, fit

SIZES = (3, 6, 10, 20)


@dataclass(frozen=True)
class World:
    """The truth behind a set of calls: seconds, seconds a token, tokens."""

    fixed: float
    token: float
    attention: float

    def ttft(self, load: Load) -> float:
        work = load.uncached * (1 + (load.cached + load.uncached / 2) / self.attention)
        return self.fixed + self.token * work

    def measure(self, rng: random.Random, load: Load, sigma: float) -> Sample:
        slow = rng.uniform(1.5, 4) if rng.random() < 0.05 else 1
        seconds = self.ttft(load) * rng.lognormvariate(0, sigma) * slow
        return Sample(load.cached, load.uncached, round(1e9 * seconds))


Draw = Callable[[random.Random], Load]


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def any_world(rng: random.Random) -> World:
    return World(log_uniform(rng, 0.3, 3), log_uniform(rng, 2e-5, 2e-4), log_uniform(rng, 25e3, 200e3))


def hosted_world(rng: random.Random) -> World:
    return World(rng.uniform(1.6, 2.8), rng.uniform(3.0e-5, 4.5e-5), log_uniform(rng, 25e3, 200e3))


def quiet_world(rng: random.Random) -> World:
    """A self-hosted server: little fixed time, a slope that shows, attention that may be expensive."""
    return World(log_uniform(rng, 0.02, 0.2), log_uniform(rng, 1e-4, 1e-3), log_uniform(rng, 2.5e3, 60e3))


def uncached(rng: random.Random, low: float, high: float) -> Load:
    return Load(0, round(log_uniform(rng, low, high)))


REGIMES: dict[str, Draw] = {
    "uncached turns, 2k-14k tokens": lambda rng: uncached(rng, 2e3, 14e3),
    "cached agent turns, 0.2k-3k new on 10k-120k": lambda rng: Load(
        round(log_uniform(rng, 10e3, 120e3)), round(log_uniform(rng, 200, 3000))
    ),
    "calibration sweep, 2k-150k uncached": lambda rng: uncached(rng, 2e3, 150e3),
}


@dataclass(frozen=True)
class Trial:
    world: World
    model: LatencyModel
    probe: Load
    seen: float
    """Nanoseconds that a new call with the probe's load took."""

    @property
    def error(self) -> float:
        return abs(self.model.token_ns / (1e9 * self.world.token) - 1)

    @property
    def token_covered(self) -> bool:
        low, high = self.model.token_interval
        return low <= 1e9 * self.world.token <= high

    @property
    def call_covered(self) -> bool:
        predicted = self.model.predict(self.probe)
        return predicted.low <= self.seen <= predicted.high

    @property
    def call_width(self) -> float:
        predicted = self.model.predict(self.probe)
        return predicted.high / predicted.ns


def trials(
    rng: random.Random,
    make: Callable[[random.Random], World],
    draw: Draw,
    size: int,
    sigma: float,
    count: int,
    *,
    known: bool = False,
) -> list[Trial]:
    """Fits and probes; known: the model's shape is published, so that N is known within a tenth."""
    done: list[Trial] = []
    for _ in range(count):
        world = make(rng)
        calls = [world.measure(rng, draw(rng), sigma) for _ in range(size)]
        model = fit(calls, shape=Shape(world.attention, 0.1)) if known else fit(calls)
        assert not isinstance(model, NoFit), model.reason
        probe = draw(rng)
        done.append(Trial(world, model, probe, 1e9 * world.ttft(probe) * rng.lognormvariate(0, sigma)))
    return done


def row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")


def head(title: str, first: str, sizes: Sequence[int]) -> None:
    print(f"\n{title}\n")
    row(first, [f"n={size}" for size in sizes])
    print(f"|---|{'---|' * len(sizes)}")


def coverage(rng: random.Random, count: int) -> None:
    head("90 % interval of a new call's TTFT: coverage (median half width)", "noise", SIZES)
    for sigma in (0.1, 0.25):
        cells: list[str] = []
        for size in SIZES:
            group = trials(rng, any_world, lambda rng: uncached(rng, 1e3, 30e3), size, sigma, count)
            width = median(trial.call_width for trial in group)
            cells.append(f"{fmean(trial.call_covered for trial in group):.2f} (x{width:.2f})")
        row(f"sigma {sigma}", cells)


def slopes(rng: random.Random, count: int) -> None:
    sizes = (6, 10, 20, 50)
    head("hosted model, sigma .25: median error of b / coverage of its interval / share that gates", "calls", sizes)
    for name, draw in REGIMES.items():
        row(name, [slope_cell(trials(rng, hosted_world, draw, size, 0.25, count)) for size in sizes])
    sweep = REGIMES["calibration sweep, 2k-150k uncached"]
    for name, sigma, known in (("the sweep, sigma .1", 0.1, False), ("the sweep, N known", 0.25, True)):
        row(name, [slope_cell(trials(rng, hosted_world, sweep, size, sigma, count, known=known)) for size in sizes])


def slope_cell(group: Sequence[Trial]) -> str:
    error = median(trial.error for trial in group)
    covered, gating = fmean(t.token_covered for t in group), fmean(t.model.gates for t in group)
    return f"{error:.2f} / {covered:.2f} / {gating:.2f}"


def attention(rng: random.Random, count: int) -> None:
    head("quiet self-hosted server, sweep 0.5k-16k: median error of b / of N / coverage of b", "noise", SIZES)
    for sigma in (0.03, 0.1):
        cells: list[str] = []
        for size in SIZES:
            group = trials(rng, quiet_world, lambda rng: uncached(rng, 500, 16e3), size, sigma, count)
            length = median(abs(t.model.attention_tokens / t.world.attention - 1) for t in group)
            cells.append(
                f"{median(t.error for t in group):.2f} / {length:.2f} / {fmean(t.token_covered for t in group):.2f}"
            )
        row(f"sigma {sigma}", cells)


def small_world(rng: random.Random) -> World:
    """A small model on a CPU, or a larger one on its own machine: attention from dear to hardly noticed."""
    return World(log_uniform(rng, 5e-3, 0.2), log_uniform(rng, 1e-4, 1e-3), log_uniform(rng, 2e3, 60e3))


def agent(rng: random.Random, turns: int, *, cached: bool) -> list[Load]:
    """Requests of an agent whose context starts at 400 to 3,000 tokens and grows by 200 to 1,500 a turn."""
    sizes = [round(rng.uniform(400, 3000))]
    while len(sizes) < turns:
        sizes.append(sizes[-1] + round(log_uniform(rng, 200, 1500)))
    held = [0, *sizes] if cached else [0] * turns
    return [Load(before, size - before) for before, size in zip(held, sizes, strict=False)]


def own_turns(rng: random.Random, count: int) -> None:
    """Project a change from the agent's own seven turns; half of the cached turns lose their cache altogether."""
    head("an agent's own turns on a small server: projected / true change, coverage, share that gates", "cache", (7,))
    for cached in (False, True):
        for sigma in (0.03, 0.1):
            ratios, covered, gating = [], 0, 0
            for _ in range(count):
                world, loads = small_world(rng), agent(rng, 7, cached=cached)
                calls = [world.measure(rng, load, sigma) for load in loads]
                model = fit(calls)
                assert not isinstance(model, NoFit), model.reason
                at = rng.randrange(1, 7)
                live = changed_load(rng, loads[at])
                truth = 1e9 * (world.ttft(live) - world.ttft(loads[at]))
                found = model.shift(calls[at].ttft_ns, loads[at], live)
                ratios.append((found.ns - calls[at].ttft_ns) / truth)
                covered += found.low - 1 <= calls[at].ttft_ns + truth <= found.high + 1
                gating += model.gates
            state = f"{'on' if cached else 'off'}, sigma {sigma}"
            row(state, [f"{median(ratios):.2f} / {covered / count:.2f} / {gating / count:.2f}"])


def changed_load(rng: random.Random, load: Load) -> Load:
    if load.cached and rng.random() < 0.5:
        return Load(0, load.cached + load.uncached)
    return Load(load.cached, round(load.uncached * rng.choice((0.7, 1.2, 1.5))))


def shifts(rng: random.Random, count: int) -> None:
    """Project a call with new tokens in its uncached part; the truth is the recording plus the true difference."""
    head("projected change of a call, sigma .25: coverage / median error of the change / wrong signs", "change", SIZES)
    for name, factor in (("20 % fewer tokens", 0.8), ("10 % more tokens", 1.1), ("50 % more tokens", 1.5)):
        row(name, [shift_cell(rng, factor, size, count) for size in SIZES])


def shift_cell(rng: random.Random, factor: float, size: int, count: int) -> str:
    covered, errors, wrong = 0, [], 0
    for trial in trials(rng, any_world, lambda rng: uncached(rng, 2e3, 60e3), size, 0.25, count):
        live = Load(0, round(factor * trial.probe.uncached))
        truth = 1e9 * (trial.world.ttft(live) - trial.world.ttft(trial.probe))
        projected = trial.model.shift(round(trial.seen), trial.probe, live)
        covered += projected.low - 1 <= trial.seen + truth <= projected.high + 1
        errors.append(abs((projected.ns - trial.seen) / truth - 1))
        wrong += (projected.ns - trial.seen) * truth < -abs(truth)
    return f"{covered / count:.2f} / {median(errors):.2f} / {wrong}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000, help="simulated fits per cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the worlds (default: %(default)s)")
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311 - a simulation
    coverage(rng, options.worlds)
    slopes(rng, options.worlds)
    attention(rng, options.worlds)
    own_turns(rng, options.worlds)
    shifts(rng, options.worlds)


if __name__ == "__main__":
    main()

"""False alarms and power of growth classifiers on simulated histories whose law is known.

    python benchmarks/growth_simulation.py --series 400

Each turn of a history adds a lognormal number of tokens; some turns bring a tool result four to twelve times as big.
Linear: the increments' mean stays. Superlinear: it grows with the turn's number, or by a factor of 6 to 60 over the
run (half of the series each). Prints Markdown tables: share of truly linear series called superlinear / share of truly
superlinear ones found. Seeded, standard library only, no network.
"""

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from pytest_agentlatency.analysis.growth import Law, classify, pooled
from pytest_agentlatency.analysis.trend import mann_kendall, theil_sen

History = list[float]
TOL, ALPHA = 0.33, 0.05
TURNS = (4, 6, 10, 20)
# One-sided 95 % points of Student's t by degrees of freedom (any printed table).
T95 = {1: 6.314, 3: 2.353, 7: 1.895, 17: 1.740}


@dataclass(frozen=True)
class Noise:
    name: str
    sigma: float
    spikes: float


NOISES = (Noise("quiet", 0.25, 0.0), Noise("typical", 0.6, 0.08), Noise("spiky", 1.0, 0.15))


def history(rng: random.Random, turns: int, noise: Noise, mean: Callable[[int], float]) -> History:
    series = [rng.uniform(1000, 12_000)]
    for step in range(1, turns):
        spike = rng.uniform(4, 12) if rng.random() < noise.spikes else 1
        series.append(series[-1] + mean(step) * rng.lognormvariate(-(noise.sigma**2) / 2, noise.sigma) * spike)
    return series


def linear(rng: random.Random, turns: int, noise: Noise) -> History:
    mean = rng.uniform(200, 1500)
    return history(rng, turns, noise, lambda _: mean)


def superlinear(rng: random.Random, turns: int, noise: Noise) -> History:
    if rng.random() < 0.5:
        return history(rng, turns, noise, lambda step: 300.0 * step)
    factor = rng.uniform(6, 60)
    return history(rng, turns, noise, lambda step: 300 * factor ** ((step - 1) / (turns - 2)))


def level(rng: random.Random, turns: int, noise: Noise) -> History:
    return [8000 * rng.lognormvariate(0, noise.sigma / 4) for _ in range(turns)]


def least_squares(times: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    middle, mean = fmean(times), fmean(values)
    spread = sum((t - middle) ** 2 for t in times)
    slope = sum((t - middle) * (v - mean) for t, v in zip(times, values, strict=True)) / spread
    return mean - slope * middle, slope


def aicc_polynomial(series: History) -> bool:
    """A parabola opening upwards beats the line by corrected AIC, residuals taken as independent."""
    n = len(series)
    times = [t - (n - 1) / 2 for t in range(n)]
    intercept, slope = least_squares(times, series)
    line = [v - intercept - slope * t for t, v in zip(times, series, strict=True)]
    square = [t * t - fmean(each * each for each in times) for t in times]
    bend = sum(r * q for r, q in zip(line, square, strict=True)) / sum(q * q for q in square)
    curve = [r - bend * q for r, q in zip(line, square, strict=True)]
    return bend > 0 and aicc(curve, 4) < aicc(line, 3)


def aicc(residuals: Sequence[float], parameters: int) -> float:
    n = len(residuals)
    if n <= parameters + 1:
        return math.inf
    error = max(sum(r * r for r in residuals), 1e-12)
    return n * math.log(error / n) + 2 * parameters + 2 * parameters * (parameters + 1) / (n - parameters - 1)


def log_log(series: History) -> bool:
    times = [math.log(t) for t in range(1, len(series) + 1)]
    return least_squares(times, [math.log(v) for v in series])[1] > 1 + TOL


def log_log_less_first(series: History) -> bool:
    times = [math.log(t) for t in range(1, len(series))]
    return least_squares(times, [math.log(v - series[0]) for v in series[1:]])[1] > 1 + TOL


def second_differences(series: History) -> bool:
    """One-sided t-test that the mean second difference is positive."""
    bends = [later - earlier for earlier, later in pairwise(b - a for a, b in pairwise(series))]
    return fmean(bends) > T95[len(bends) - 1] * stdev(bends) / math.sqrt(len(bends))


def theil_sen_increments(series: History) -> bool:
    increments = [b - a for a, b in pairwise(series)]
    return theil_sen(range(len(increments)), increments) > 0 and mann_kendall([increments]) <= ALPHA


def ours(series: History) -> bool:
    return classify(series, tol=TOL, alpha=ALPHA).law is Law.SUPERLINEAR


METHODS: dict[str, Callable[[History], bool]] = {
    "AICc polynomial on levels": aicc_polynomial,
    "log-log": log_log,
    "log-log of x - x1": log_log_less_first,
    "second differences, t-test": second_differences,
    "Theil-Sen and Mann-Kendall on increments": theil_sen_increments,
    "**area exponent + permutation (ours)**": ours,
}


def share(flags: Sequence[bool]) -> str:
    return f"{sum(flags) / len(flags):.3f}"


def compare(rng: random.Random, noise: Noise, count: int) -> None:
    print(f"\n{noise.name} noise: false alarm / hit, {count} series each\n")
    print(f"| method | {' | '.join(f'n={n}' for n in TURNS)} |\n|---|{'---|' * len(TURNS)}")
    cells = {n: [[make(rng, n, noise) for _ in range(count)] for make in (linear, superlinear)] for n in TURNS}
    for name, method in METHODS.items():
        row = (" / ".join(share([method(series) for series in group]) for group in cells[n]) for n in TURNS)
        print(f"| {name} | {' | '.join(row)} |")


def pools(rng: random.Random, noise: Noise, count: int) -> None:
    print(f"\nours, k recordings pooled, {noise.name} noise: false alarm / hit, {count} pools each\n")
    print(f"| recordings | {' | '.join(f'n={n}' for n in TURNS[:3])} |\n|---|{'---|' * 3}")
    for k in (1, 3, 5):
        row: list[str] = []
        for n in TURNS[:3]:
            groups = ([[make(rng, n, noise) for _ in range(k)] for _ in range(count)] for make in (linear, superlinear))
            row.append(" / ".join(share([pooled(g).law is Law.SUPERLINEAR for g in group]) for group in groups))
        print(f"| {k} | {' | '.join(row)} |")


def levels(rng: random.Random, count: int) -> None:
    print(f"\nours, truly constant series called anything but constant or inconclusive, {count} series each\n")
    print(f"| noise of the level | {' | '.join(f'n={n}' for n in TURNS)} |\n|---|{'---|' * len(TURNS)}")
    still = {Law.CONSTANT, Law.INCONCLUSIVE}
    for noise in NOISES:
        row = (share([classify(level(rng, n, noise)).law not in still for _ in range(count)]) for n in TURNS)
        print(f"| {100 * noise.sigma / 4:.0f} % | {' | '.join(row)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=400, help="series per cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the histories (default: %(default)s)")
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311 - a simulation
    for noise in NOISES:
        compare(rng, noise, options.series)
    pools(rng, NOISES[1], options.series)
    levels(rng, options.series)


if __name__ == "__main__":
    main()

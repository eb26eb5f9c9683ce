"""How long prefill takes by the tokens that a request carries: a latency model fitted on few noisy calls.

Owns the model `TTFT = a + b * x(cached, uncached)`, its uncertainty, and projection by difference. Refuses to know
which calls belong together (one provider, model and tier to a fit) and which are fit to be learned from: retried,
failed and multi-pass calls and answers that begin with hidden thinking are the caller's to leave out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from pytest_agentlatency.analysis import regression
from pytest_agentlatency.analysis.regression import Matrix, Point, Vector, quadratic

ATTENTION_TOKENS, ATTENTION_SD = 30_000.0, 1.5
"""N of a model of unknown shape. Published shapes give 17k to 197k on hardware that spends the same on every operation;
small models on a CPU were measured at 2.4k and 17k. Nine tenths of this prior lie in 2.5k to 354k."""

_ENOUGH = 3
_DAY_SD = 0.3
"""How far a server's costs move from one day to another, as a deviation of the logarithm. So wide that nothing gates by
a calibration as a prior alone."""
_WIDEST = 1.6
_SDS = 2.4
"""Laplace standard deviations to each side of a parameter; simulated coverage in docs/measuring.md."""
_T95 = {2: 2.920, 3: 2.353, 4: 2.132}
_UNFITTED_SCALE = 0.3
_LONGEST_EXPONENT = 50.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What is believed of N, the context at which attention doubles the cost of a token: median, and deviation."""

    tokens: float = ATTENTION_TOKENS
    sd: float = ATTENTION_SD
    """Of the logarithm, above 0: 0.1 or so for a model whose shape is known."""


class Load(NamedTuple):
    """What one request asks of prefill, in tokens."""

    cached: int
    """Read from a prompt cache."""
    uncached: int
    """Everything else, writes to the cache included."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured call."""

    cached: int
    uncached: int
    ttft_ns: int


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before any call was seen: log-normal, as medians and standard deviations of the logarithm."""

    fixed_ns: float = 1e9
    fixed_sd: float = 0.9
    token_ns: float = 1e9 / 15_000
    token_sd: float = 1.0


@dataclass(frozen=True, slots=True)
class Projection:
    """Nanoseconds with two 90 % intervals."""

    ns: int
    low: int
    high: int
    """Of what the change costs: the recorded call, noise and all, on the latency model at both ends."""
    again: tuple[int, int]
    """Of a new recording of the changed call, whose noise is its own."""


@dataclass(frozen=True, slots=True)
class NoFit:
    """Why there is no latency model."""

    reason: str


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """TTFT = fixed_ns + token_ns * x, where x = u * (1 + (h + u/2) / attention_tokens), u uncached and h cached tokens.

    The same as a + b*D + c*(2PD + D^2) with P cached, D uncached and c = b / (2 * attention_tokens): the attention of
    new tokens to the context is work, also where the context itself came from a cache.
    """

    fixed_ns: float
    """a: network, gateway and queue, nanoseconds."""
    token_ns: float
    """b: nanoseconds per uncached token of a short context."""
    attention_tokens: float
    """N: context at which attention doubles the cost of a token."""
    covariance: Matrix
    """Of the logarithms of the three."""
    scale: float
    """Of the residuals' logarithm: 0.25 is a quarter up or down."""
    samples: int
    typical: Load = Load(0, 0)
    """Median load of the samples; how sure the model is, is asked there."""

    @property
    def from_prior(self) -> bool:
        """Too few calls were seen; every figure is a guess and nothing gates."""
        return self.samples < _ENOUGH

    @property
    def token_interval(self) -> tuple[float, float]:
        """90 % interval of b, nanoseconds per token."""
        factor = self._factor(0.0)
        return self.token_ns / factor, self.token_ns * factor

    @property
    def width(self) -> float:
        """Factor to each side of the 90 % interval of what one more uncached token costs on a typical call."""
        attention = (self.typical.cached + self.typical.uncached) / self.attention_tokens
        return self._factor(attention / (1 + attention))

    def _factor(self, attention_share: float) -> float:
        """Half width, as a factor, of the interval of a cost of which this share is attention."""
        variance = quadratic(self.covariance, (0.0, 1.0, -attention_share))
        return math.exp(min(_LONGEST_EXPONENT, _SDS * math.sqrt(variance)))

    @property
    def gates(self) -> bool:
        """Whether projected times may fail a test: three calls or more, and a width of at most 1.6."""
        return not self.from_prior and self.width <= _WIDEST

    def work(self, load: Load) -> float:
        """Uncached tokens, weighted by the attention they pay to the context: x."""
        return load.uncached + self._attention(load)

    def _attention(self, load: Load) -> float:
        return load.uncached * (load.cached + load.uncached / 2) / self.attention_tokens

    def prefill(self, load: Load) -> float:
        """Nanoseconds of TTFT that grow with the tokens; the rest of TTFT is fixed_ns, queue and noise."""
        return self.token_ns * self.work(load)

    def predict(self, load: Load) -> Projection:
        """TTFT of a call never seen, with the interval in which nine of ten such calls lie."""
        point = _point(self._logs, load)
        spread = math.sqrt(self.scale**2 + quadratic(self.covariance, point.slopes))
        factor = math.exp(min(_LONGEST_EXPONENT, self._t95 * spread))
        low, high = round(point.value / factor), round(point.value * factor)
        return Projection(round(point.value), low, high, (low, high))

    def shift(self, recorded_ns: int, recorded: Load, live: Load) -> Projection:
        """TTFT of a recorded call, had it carried the live load: recorded plus the modelled difference.

        The recorded call's own noise stays in it, so an unchanged request gives back the recorded nanoseconds. Less
        work never takes the result below a, nor below the recording where that was faster than a.
        """
        difference = self.work(live) - self.work(recorded)
        if difference == 0:
            return Projection(recorded_ns, recorded_ns, recorded_ns, self._again(recorded_ns, *[recorded_ns] * 3))
        factor = self._factor((self._attention(live) - self._attention(recorded)) / difference)
        change = self.token_ns * difference
        likely = max(min(recorded_ns, int(self.fixed_ns)), recorded_ns + round(change))
        floor = min(recorded_ns, int(self.fixed_ns / math.exp(_SDS * math.sqrt(self.covariance[0][0]))))
        ends = [max(floor, recorded_ns + round(each)) for each in (change / factor, change * factor)]
        low, high = min(likely, *ends), max(likely, *ends)
        return Projection(likely, low, high, self._again(recorded_ns, likely, low, high))

    def _again(self, recorded_ns: int, likely: int, low: int, high: int) -> tuple[int, int]:
        """The interval of the cost, widened by the noise of two calls: the recorded one and the new one."""
        noise = self.noise * math.hypot(recorded_ns, likely)
        return max(0, likely - round(math.hypot(likely - low, noise))), likely + round(math.hypot(high - likely, noise))

    @property
    def prior(self) -> Prior:
        """What these costs let believe of another day's: the same, but for the load of that day."""
        fixed, token = (math.hypot(_DAY_SD, math.sqrt(self.covariance[i][i])) for i in range(2))
        return Prior(self.fixed_ns, fixed, self.token_ns, token)

    @property
    def shape(self) -> Shape:
        """N as this model saw it: a property of model and hardware, which one day's load doesn't move."""
        return Shape(self.attention_tokens, math.sqrt(self.covariance[2][2]))

    @property
    def noise(self) -> float:
        """How far calls of one load differ from each other, as a fraction: the half width of a 90 % interval."""
        return self._t95 * self.scale

    @property
    def _t95(self) -> float:
        return _T95[min(4, max(2, self.samples - 3))]

    @property
    def _logs(self) -> Vector:
        return math.log(self.fixed_ns), math.log(self.token_ns), math.log(self.attention_tokens)


def fit(samples: Sequence[Sample], *, prior: Prior = Prior(), shape: Shape = Shape()) -> LatencyModel | NoFit:
    """Fit the calls of one provider, model and tier.

    Fewer than three give the prior, which never gates. The shape is the prior of N: a wide sweep on a quiet server
    moves N to where it is; a hosted agent's turns leave it, and its uncertainty stays in every interval. No quadratic
    is fitted freely.
    """
    wrong = next((each for each in samples if each.ttft_ns <= 0 or min(each.cached, each.uncached) < 0), None)
    if wrong is not None:
        return NoFit(f"{wrong!r} can't have been measured: TTFT must be above 0 ns and token counts not below 0")
    believed = regression.Prior(
        (math.log(prior.fixed_ns), math.log(prior.token_ns), math.log(shape.tokens)),
        (prior.fixed_sd, prior.token_sd, shape.sd),
    )
    if len(samples) < _ENOUGH:
        return _model(_unfitted(believed), samples)
    try:
        return _model(_fitted(samples, believed), samples)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return NoFit(f"{len(samples)} samples could not be fitted: {error}")


def _unfitted(prior: regression.Prior) -> regression.Posterior:
    a, b, n = (sd**2 for sd in prior.sds)
    return regression.Posterior(prior.logs, ((a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, n)), _UNFITTED_SCALE)


def _fitted(samples: Sequence[Sample], prior: regression.Prior) -> regression.Posterior:
    loads = [Load(each.cached, each.uncached) for each in samples]
    observed = [each.ttft_ns for each in samples]
    return regression.fit(observed, lambda logs: [_point(logs, load) for load in loads], prior)


def _model(found: regression.Posterior, samples: Sequence[Sample]) -> LatencyModel:
    fixed, token, attention = map(math.exp, found.logs)
    columns = ([each.cached for each in samples], [each.uncached for each in samples])
    typical = Load(*(round(median(column)) if column else 0 for column in columns))
    return LatencyModel(fixed, token, attention, found.covariance, found.scale, len(samples), typical)


def _point(logs: Vector, load: Load) -> Point:
    """TTFT of a load, and the slopes of its logarithm by those of a, b and N."""
    fixed, token, length = map(math.exp, logs)
    attention = token * load.uncached * (load.cached + load.uncached / 2) / length
    prefill = token * load.uncached + attention
    value = fixed + prefill
    return Point(value, (fixed / value, prefill / value, -attention / value))


_DOUBT_SAMPLES, _DOUBT_RATIO = 6, 1.5
_PUBLISHED = Shape(60_000.0, 0.8)
"""Published shapes; nine tenths of this lie in 16k to 224k."""


def cache_doubt(samples: Sequence[Sample], shape: Shape = _PUBLISHED) -> str:
    """Why the cached tokens seem to have been prefilled all the same; empty when there is no reason to think so.

    Compares two fits, one in which cached tokens are cheap and one in which they cost like any other. A server may
    count tokens as cached and still compute them (its reuse pinned at an old checkpoint); bytes and usage look fine.
    Attention that is dearer than the shape allows looks the same: only a measured shape settles which of them it is.
    """
    if len(samples) < _DOUBT_SAMPLES or not any(each.cached for each in samples):
        return ""
    believed = fit(samples, shape=shape)
    doubted = fit([Sample(0, each.cached + each.uncached, each.ttft_ns) for each in samples], shape=shape)
    if isinstance(believed, NoFit) or isinstance(doubted, NoFit) or doubted.scale > believed.scale / _DOUBT_RATIO:
        return ""
    return (
        f"TTFT follows the whole context (off by {doubted.scale:.0%}), "
        f"not the uncached tokens (off by {believed.scale:.0%})"
    )

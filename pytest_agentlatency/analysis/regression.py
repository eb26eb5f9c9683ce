"""Robust fit of a few positive parameters to a few positive observations, with priors: pure Python, no matrix library.

Owns the numbers: Gauss-Newton to the posterior's maximum, Student-t residuals on the logarithm, the Laplace
approximation around it. Refuses to know what is fitted.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

Vector = tuple[float, ...]
Matrix = tuple[Vector, ...]

FREEDOM = 4
"""Degrees of freedom of the residuals: one turn in a hundred may be three times slower without moving the fit."""
_PRIOR_SCALE, _PRIOR_WEIGHT = 0.2, 1
"""The residuals' scale starts as if one observation had said 0.2; a perfect fit through few points isn't believed."""
_STEPS, _STEP_LIMIT, _CLOSE = 60, 1.0, 1e-12


class Point(NamedTuple):
    """What a model says of one observation."""

    value: float
    """Predicted, positive."""
    slopes: Vector
    """Derivative of the value's logarithm by the logarithm of each parameter."""


Model = Callable[[Vector], Sequence[Point]]
"""From the parameters' logarithms to one point for each observation."""


class Posterior(NamedTuple):
    """The most probable parameters, and how sure that is."""

    logs: Vector
    """Natural logarithms of the parameters."""
    covariance: Matrix
    """Of the logarithms."""
    scale: float
    """Of the residuals' logarithm."""


class Prior(NamedTuple):
    """Independent log-normal priors."""

    logs: Vector
    sds: Vector


def fit(observed: Sequence[float], model: Model, prior: Prior) -> Posterior:
    """Parameters that maximise the posterior of `log observed = log model + scale * t(4)`.

    Student-t residuals by iterated reweighting, the scale along with them. ValueError when it doesn't end in numbers.
    """
    logs, scale = prior.logs, _PRIOR_SCALE
    covariance: Matrix = ()
    for _ in range(_STEPS):
        points = model(logs)
        residuals = [math.log(y / point.value) for y, point in zip(observed, points, strict=True)]
        weights = [(FREEDOM + 1) / (FREEDOM + (r / scale) ** 2) for r in residuals]
        scale = _scale(residuals, weights)
        precisions = [weight / scale**2 for weight in weights]
        covariance = inverse(_information(points, precisions, prior))
        step = _limited(_step(covariance, _pull(points, residuals, precisions, logs, prior)))
        logs = tuple(value + change for value, change in zip(logs, step, strict=True))
        if max(map(abs, step)) < _CLOSE:
            break
    if not all(map(math.isfinite, logs)):
        msg = f"the fit ended at {logs!r}; check that observations and model are positive and finite"
        raise ValueError(msg)
    return Posterior(logs, covariance, scale)


def _scale(residuals: Sequence[float], weights: Sequence[float]) -> float:
    seen = sum(w * r * r for w, r in zip(weights, residuals, strict=True))
    return math.sqrt((seen + _PRIOR_WEIGHT * _PRIOR_SCALE**2) / (len(residuals) + _PRIOR_WEIGHT))


def _pull(
    points: Sequence[Point], residuals: Sequence[float], precisions: Sequence[float], logs: Vector, prior: Prior
) -> list[float]:
    """Gradient of the log posterior: where the observations and the prior want the parameters to go."""
    pull = [(mean - value) / sd**2 for mean, value, sd in zip(prior.logs, logs, prior.sds, strict=True)]
    for point, residual, precision in zip(points, residuals, precisions, strict=True):
        for index, slope in enumerate(point.slopes):
            pull[index] += precision * residual * slope
    return pull


def _step(covariance: Matrix, pull: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, pull, strict=True)) for row in covariance]


def _limited(step: list[float]) -> list[float]:
    """The same direction, at most a factor of e in any parameter."""
    longest = max(map(abs, step))
    return [each * _STEP_LIMIT / longest for each in step] if longest > _STEP_LIMIT else step


def _information(points: Sequence[Point], precisions: Sequence[float], prior: Prior) -> Matrix:
    size = range(len(prior.sds))
    return tuple(
        tuple(
            sum(precision * p.slopes[i] * p.slopes[j] for precision, p in zip(precisions, points, strict=True))
            + (prior.sds[i] ** -2 if i == j else 0.0)
            for j in size
        )
        for i in size
    )


def inverse(matrix: Matrix) -> Matrix:
    """Inverse of a small positive definite matrix (Gauss-Jordan; such a matrix needs no pivoting)."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return tuple(tuple(row[size:]) for row in rows)


def quadratic(matrix: Matrix, vector: Sequence[float]) -> float:
    """The form `v M v`, not below 0: the variance of a linear combination, when M is a covariance."""
    terms = (a * value * b for a, row in zip(vector, matrix, strict=True) for value, b in zip(row, vector, strict=True))
    return max(0.0, sum(terms))

"""A latency model as plain values, with what it holds for: the content of a calibration file.

Owns the form and its version. Refuses to know files, and how a model is fitted or used.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pytest_agentlatency.analysis.prefill import LatencyModel, Load
from pytest_agentlatency.analysis.regression import Matrix

VERSION = 1
_AGAIN = "calibrate again, or restore the file"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A latency model and what it was measured on."""

    provider: str
    model: str
    tier: str
    date: str
    """Day of the measurement, ISO 8601."""
    latency: LatencyModel


def to_dict(calibration: Calibration) -> dict[str, Any]:
    """Plain values, ready for YAML or JSON; times in nanoseconds."""
    latency = calibration.latency
    return {
        "version": VERSION,
        "provider": calibration.provider,
        "model": calibration.model,
        "tier": calibration.tier,
        "date": calibration.date,
        "fixed_ns": latency.fixed_ns,
        "token_ns": latency.token_ns,
        "attention_tokens": latency.attention_tokens,
        "covariance": [list(row) for row in latency.covariance],
        "scale": latency.scale,
        "samples": latency.samples,
        "typical_cached": latency.typical.cached,
        "typical_uncached": latency.typical.uncached,
    }


def from_dict(values: Mapping[str, Any]) -> Calibration:
    """The calibration that `to_dict` wrote. ValueError, naming the field, when one is missing or impossible."""
    if values.get("version") != VERSION:
        msg = f"a calibration of version {values.get('version')!r}; this release reads {VERSION}: {_AGAIN}"
        raise ValueError(msg)
    provider, model, tier, date = (_text(values, name) for name in ("provider", "model", "tier", "date"))
    return Calibration(provider, model, tier, date, _latency(values))


def _latency(values: Mapping[str, Any]) -> LatencyModel:
    return LatencyModel(
        fixed_ns=_positive(values, "fixed_ns"),
        token_ns=_positive(values, "token_ns"),
        attention_tokens=_positive(values, "attention_tokens"),
        covariance=_covariance(values),
        scale=_positive(values, "scale"),
        samples=_count(values, "samples"),
        typical=Load(_count(values, "typical_cached"), _count(values, "typical_uncached")),
    )


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise _impossible(name, value, "text")
    return value


def _positive(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if not _is_number(value) or value <= 0:
        raise _impossible(name, value, "a finite number above 0")
    return float(value)


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _impossible(name, value, "a whole number, 0 or more")
    return value


def _covariance(values: Mapping[str, Any]) -> Matrix:
    name = "covariance"
    rows: Any = values.get(name)
    try:
        matrix = tuple(tuple(float(number) for number in row) for row in rows)
    except (TypeError, ValueError):
        matrix = ()
    if [len(row) for row in matrix] != [3, 3, 3] or not all(_is_number(number) for row in matrix for number in row):
        raise _impossible(name, rows, "three rows of three numbers")
    return matrix


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _impossible(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"{name} of a calibration is {value!r}; it must be {allowed}: {_AGAIN}")

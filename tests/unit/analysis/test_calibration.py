"""A calibration survives plain values and JSON, and a damaged one is refused by name."""

import json

import pytest

from pytest_agentlatency.analysis.calibration import Calibration, from_dict, to_dict
from pytest_agentlatency.analysis.prefill import Sample, fit


@pytest.fixture
def calibration():
    latency = fit([Sample(0, tokens, 10**8 + 50_000 * tokens) for tokens in (2000, 8000, 30_000, 100_000)])
    return Calibration("anthropic", "claude-sonnet-5", "standard", "2026-12-01", latency)


def test_a_calibration_written_as_json_is_read_back_equal(calibration):
    assert from_dict(json.loads(json.dumps(to_dict(calibration)))) == calibration


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", 2, "version 2; this release reads 1"),
        ("provider", None, "provider of a calibration is None; it must be text"),
        ("fixed_ns", -1.0, "fixed_ns of a calibration is -1.0; it must be a finite number above 0: calibrate again"),
        ("token_ns", float("nan"), "token_ns"),
        ("attention_tokens", True, "attention_tokens"),
        ("samples", 2.5, "samples of a calibration is 2.5; it must be a whole number, 0 or more"),
        ("covariance", [[1, 2], [3, 4]], "three rows of three numbers"),
        ("covariance", "no", "three rows of three numbers"),
        ("typical_cached", None, "typical_cached"),
    ],
)
def test_a_damaged_field_is_named_with_what_it_should_be(calibration, field, value, message):
    with pytest.raises(ValueError, match=message):
        from_dict({**to_dict(calibration), field: value})

"""No test is red for being run on a slow machine."""

import ast
from pathlib import Path

from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
HANG = 10
"""Seconds from which on an upper limit only ends a test that hangs."""


def clocked(node: ast.expr) -> bool:
    """Whether a difference of clock readings stands in an expression."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    names = {getattr(func, "attr", getattr(func, "id", "")) for func in calls}
    return bool(names & CLOCKS) and any(isinstance(each, ast.Sub) for each in ast.walk(node))


def upper_limits(source: str) -> list[float]:
    """Numbers that a difference of clock readings must stay under."""
    return [
        limit.value
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.Compare) and clocked(each.left)
        for op, limit in zip(each.ops, each.comparators, strict=True)
        if isinstance(op, ast.Lt | ast.LtE) and isinstance(limit, ast.Constant)
    ]


def test_a_limit_on_real_time_is_found():
    assert upper_limits("assert time.monotonic() - began < 0.5") == [0.5]
    assert upper_limits("assert time.monotonic() - began >= 0.5") == []


def test_no_test_has_a_limit_on_real_time_that_a_busy_machine_breaks():
    """Field note E8: such limits are raised until they mean nothing."""
    found = {str(path): upper_limits(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {path: limits for path, limits in found.items() if min(limits, default=HANG) < HANG} == {}


def test_no_property_is_tested_against_a_clock():
    """Field note E8."""
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check

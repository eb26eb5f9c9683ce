"""The clock of a run: integer nanoseconds, read so that a test suite that freezes time can't reach it.

Owns reading time. Refuses to know what is timed.
"""

from time import perf_counter_ns, time_ns
from typing import NewType

Ns = NewType("Ns", int)
"""Nanoseconds. On a run's clock, 0 is the run's origin."""

# freezegun replaces module attributes that hold a time function, captured names included; it doesn't look into tuples.
_READ = (perf_counter_ns, time_ns)


def now() -> Ns:
    """Nanoseconds of the monotonic performance counter, from an arbitrary origin."""
    return Ns(_READ[0]())


def utc_ns() -> int:
    """Nanoseconds since the Unix epoch. Used once a run, to date it; never subtracted."""
    return _READ[1]()

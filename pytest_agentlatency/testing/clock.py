"""A clock that only moves when it is told to, for code that takes its clock as a function.

Owns nothing but its own time.
"""

from pytest_agentlatency.model.clock import Ns


class FakeClock:
    """A stand-in for `model.clock.now`: call it to read it.

    clock = FakeClock()
    clock.advance(ms=250)
    assert clock() == 250_000_000
    """

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def __call__(self) -> Ns:
        """Nanoseconds."""
        return Ns(self._now)

    def advance(self, ns: int = 0, *, ms: float = 0) -> Ns:
        """Move on by nanoseconds and milliseconds, and give the new time. ValueError when that would be backwards."""
        step = ns + round(ms * 1_000_000)
        if step < 0:
            msg = f"a clock can't move by {step!r} ns; give 0 or more"
            raise ValueError(msg)
        self._now += step
        return self()

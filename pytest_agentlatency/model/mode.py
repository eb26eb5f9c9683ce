"""The four ways in which a marked test can be run."""

from enum import StrEnum


class Mode(StrEnum):
    """What happens to the agent's model calls."""

    REPLAY = "replay"
    """The cassette answers; nothing leaves."""
    RECORD = "record"
    """They go out, and the cassette is replaced when the test passed."""
    ONCE = "once"
    """Record where there is no cassette, replay where there is one."""
    LIVE = "live"
    """They go out and are measured; nothing is written."""

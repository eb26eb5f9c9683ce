"""Where a number comes from, and how that is shown. Two numbers of different provenance never look alike."""

from collections.abc import Iterable
from enum import StrEnum


class Provenance(StrEnum):
    """Origin of a number, from the most to the least trusted."""

    MEASURED = "measured"
    """Read off this process's clock, or a provider's own usage field, in this run."""
    SERVER = "server"
    """Reported by the server about itself."""
    REPLAYED = "replayed"
    """Measured when the cassette was recorded."""
    PROJECTED = "projected"
    """Recomputed for a live request that differs from the recorded one."""
    ESTIMATED = "estimated"
    """Worked out with a counter or a model, with no measurement of the thing itself."""
    UNKNOWN = "unknown"
    """Not to be had. Never shown as 0."""

    @property
    def mark(self) -> str:
        """What stands before a shown number: `~` projected, `≈` estimated, nothing otherwise."""
        return _MARKS.get(self, "")

    @property
    def distrust(self) -> int:
        """0 for the most trusted; higher is weaker."""
        return _ORDER[self]


_MARKS = {Provenance.PROJECTED: "~", Provenance.ESTIMATED: "≈"}
_ORDER = {provenance: rank for rank, provenance in enumerate(Provenance)}


def weakest(provenances: Iterable[Provenance]) -> Provenance:
    """Provenance of a number that was worked out from numbers of these; unknown when there are none."""
    return max(provenances, key=lambda each: each.distrust, default=Provenance.UNKNOWN)

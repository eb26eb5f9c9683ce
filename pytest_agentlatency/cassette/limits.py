"""How much of an unknown file is worth reading. Owns the limits and their check; refuses to know formats."""

from dataclasses import dataclass

from pytest_agentlatency.cassette.errors import Refused

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for one cassette. A 500-turn session takes about 2% of each."""

    file: int = 128 * MIB
    """Bytes on disk."""
    body: int = 128 * MIB
    """Bytes of one body once rebuilt from its differences."""
    depth: int = 64
    """Nested collections."""
    values: int = 2_000_000
    """Scalars and collections of a file, and chunks of one response."""


DEFAULT = Limits()


def check(found: int, allowed: int, what: str, source: str) -> None:
    """Raise Refused when `found` is over `allowed`; `what` names the limit and its unit."""
    if found > allowed:
        msg = f"{source}: {found:,} {what}, at most {allowed:,} are read; raise the limit if the file is trusted"
        raise Refused(msg)

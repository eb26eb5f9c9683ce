"""The request bodies of a file, put together one after the other from their differences.

Owns which body is whose base, and that each is the one that was recorded. Refuses to know what else an exchange holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from pytest_agentlatency.cassette import delta
from pytest_agentlatency.cassette.limits import DEFAULT, Limits
from pytest_agentlatency.cassette.parse import Node


def checksum(body: bytes) -> str:
    """What stands beside a difference: of the body that it makes."""
    return _written(crc32(body))


def _written(crc: int) -> str:
    return f"crc {crc:08x}"


@dataclass(frozen=True, slots=True)
class _Body:
    pieces: delta.Pieces
    sums: Sequence[int] = ()
    """The checksum at the end of each piece; nothing where a body is no difference and nobody asked yet."""


_NOTHING = _Body(())


class Bodies:
    """The bodies met so far, in the order of the file."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        """`limits` hold for each body."""
        self._limits = limits
        self._met: list[_Body] = []

    def take(self, body: Node, stated: Node) -> bytes | delta.Pieces:
        """The next body: as it stands, or the pieces that its difference makes. `stated` is the checksum beside it.

        Raises Unreadable with the place, Refused over a limit.
        """
        distance = delta.distance(body.value) if isinstance(body.value, str) else None
        if distance is None:
            whole = body.octets()
            self._met.append(_Body((whole,)))
            return whole
        base = self._base(body, distance)
        pieces = self._rebuilt(body, base)
        sums = _sums(pieces, base)
        _verify(stated, sums[-1] if sums else 0)
        self._met.append(_Body(pieces, sums))
        return pieces

    def _base(self, body: Node, distance: int) -> _Body:
        if not 0 < distance <= len(self._met):
            reason = f"its base is {distance} model requests back, {len(self._met)} come before it"
            raise body.fail(reason)
        base = self._met[-distance]
        if not base.sums:
            pieces = delta.cut(base.pieces[0])
            base = self._met[-distance] = _Body(pieces, _sums(pieces))
        return base

    def _rebuilt(self, body: Node, base: _Body) -> delta.Pieces:
        try:
            return delta.decode(body.text(), base.pieces, self._limits)
        except ValueError as error:
            raise body.fail(str(error)) from error


def _sums(pieces: delta.Pieces, base: _Body = _NOTHING) -> Sequence[int]:
    """Checksums at the pieces' ends. What the base begins with too isn't read again, or a history would be n times."""
    pairs = enumerate(zip(pieces, base.pieces, strict=False))
    shared = next((at for at, (one, other) in pairs if one is not other), min(len(pieces), len(base.pieces)))
    sums = list(base.sums[:shared])
    for piece in pieces[shared:]:
        sums.append(crc32(piece, sums[-1] if sums else 0))
    return sums


def _verify(stated: Node, found: int) -> None:
    """A removed interaction moves the bases of later ones; without the key, an edited body is taken as it is."""
    if stated.value is not None and stated.text() != _written(found):
        reason = (
            f"the body rebuilds to {_written(found)}, recorded was {stated.text()!r}: an exchange before it was edited"
        )
        raise stated.fail(reason)

"""What servers say of their own time, as a table beside the one of turns.

Owns the layout. Refuses to mix these times with the client's: they exclude network, and often the queue.
"""

from collections.abc import Sequence

from pytest_agentlatency.analysis.assembly import Reading
from pytest_agentlatency.model import units
from pytest_agentlatency.report.layout import Column, grid
from pytest_agentlatency.wire.message import ServerTimes

_TIMES = ("queue", "prefill", "decode", "total", "ttft")


def times(readings: Sequence[Reading], width: int = 80) -> list[str]:
    """Lines no wider than `width`, a row a call that carries its server's times; none when no call does."""
    told = [reading for reading in readings if reading.answer.server != ServerTimes()]
    if not told:
        return []
    places = Column("turn", tuple(_place(each) for each in told))
    found = [(name, [getattr(each.answer.server, name) for each in told]) for name in _TIMES]
    columns = [
        Column(name, tuple(map(units.duration, values)))
        for name, values in found
        if any(value is not None for value in values)
    ]
    source = Column("read from", tuple(each.answer.server.source for each in told), group=1, left=True)
    return ["the servers' own times (server)", "", *grid([places], [*columns, source], width)]


def _place(reading: Reading) -> str:
    return str(reading.turn) if reading.lane == 1 else f"{reading.lane}.{reading.turn}"

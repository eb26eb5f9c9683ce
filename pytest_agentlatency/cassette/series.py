"""A series of integers as one line of text, equal neighbours folded: `288 35 127*10`.

Owns that notation and its inverse. Refuses to know what is counted.
"""

from collections.abc import Iterable
from itertools import groupby

Line = str | int
"""A lone number is written as a number, so that YAML needs no quotes around it."""


def write(values: Iterable[int]) -> Line:
    """One line; the empty series is the empty string."""
    runs = [(value, sum(1 for _ in same)) for value, same in groupby(values)]
    if len(runs) == 1 and runs[0][1] == 1:
        return runs[0][0]
    return " ".join(f"{value}*{count}" if count > 1 else str(value) for value, count in runs)


def read(line: Line, limit: int) -> tuple[int, ...]:
    """The series of a line. Raises ValueError when it is none, or would hold more than `limit` numbers."""
    if isinstance(line, int):
        return (line,)
    words = line.split()
    if "*" not in line and len(words) <= limit:
        return tuple(map(int, words))
    values: list[int] = []
    for word in words:
        value, star, count = word.partition("*")
        times = int(count) if star else 1
        if not 0 < times <= limit - len(values):
            msg = f"{word!r} makes more than {limit:,} numbers, or less than one"
            raise ValueError(msg)
        values.extend([int(value)] * times)
    return tuple(values)

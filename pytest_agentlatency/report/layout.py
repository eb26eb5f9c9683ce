"""Columns of text within a width: what doesn't fit beside goes below, the key columns repeated.

Owns the layout. Refuses to know what stands in the cells.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A header and a cell for every row."""

    header: str
    cells: tuple[str, ...]
    group: int = 0
    """Columns of one group stay together when not all fit side by side."""
    left: bool = False
    """Aligned left; otherwise right."""

    @property
    def width(self) -> int:
        """Characters of the widest entry."""
        return max(map(len, (self.header, *self.cells)))


def grid(keys: Sequence[Column], columns: Sequence[Column], width: int, rule_before: int | None = None) -> list[str]:
    """Lay out columns in blocks of at most `width` characters, each block led by the key columns.

    rule_before: index of the row before which a rule is drawn (the totals).
    """
    lines: list[str] = []
    for block in _blocks(keys, columns, width):
        if lines:
            lines.append("")
        lines += [line[: width - 1] + "…" if len(line) > width else line for line in _block(block, rule_before)]
    return lines


def _blocks(keys: Sequence[Column], columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    if _total([*keys, *columns]) <= width:
        yield [*keys, *columns]
        return
    for group in sorted({column.group for column in columns}):
        yield from _packed(keys, [column for column in columns if column.group == group], width)


def _packed(keys: Sequence[Column], columns: Iterable[Column], width: int) -> Iterator[list[Column]]:
    block: list[Column] = []
    for column in columns:
        if block and _total([*keys, *block, column]) > width:
            yield [*keys, *block]
            block = []
        block.append(column)
    yield [*keys, *block]


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _block(columns: Sequence[Column], rule_before: int | None) -> Iterator[str]:
    rule = "-" * _total(columns)
    yield _line(columns, [column.header for column in columns])
    yield rule
    for index, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if index == rule_before:
            yield rule
        yield _line(columns, row)


def _line(columns: Sequence[Column], cells: Iterable[str]) -> str:
    padded = (c.ljust(k.width) if k.left else c.rjust(k.width) for k, c in zip(columns, cells, strict=True))
    return _GAP.join(padded).rstrip()

"""A series and the curve that was fitted to it, drawn with characters.

Owns the drawing. Refuses to fit: it is given the exponent.
"""

from collections.abc import Sequence

_HEIGHT = 8
_VALUE, _CURVE, _BOTH = "o", ".", "*"
LEGEND = f"{_VALUE} the run, {_CURVE} the fitted curve, {_BOTH} both"


def fit(values: Sequence[float | None], exponent: float, width: int) -> list[str]:
    """Lines no wider than `width`: known values over turns, and first + rise * t^exponent between first and last.

    Nothing for fewer than two known values, or when the last isn't above the first.
    """
    known = [(turn, value) for turn, value in enumerate(values, 1) if value is not None]
    if len(known) < 2 or known[-1][1] <= known[0][1]:  # noqa: PLR2004  a curve has two ends
        return []
    (start, first), (end, last) = known[0], known[-1]
    span, rise = end - start, last - first
    curve = [(start + step, first + rise * (step / span) ** exponent) for step in range(span + 1)]
    top, bottom = max(value for _, value in known), min(value for _, value in known)
    labels = [f"{top:,.0f}", *[""] * (_HEIGHT - 2), f"{bottom:,.0f}"]
    margin = max(map(len, labels))
    canvas = _Canvas(max(2, min(width - margin - 3, 3 * span + 1)), (start, end), (bottom, top))
    canvas.draw(curve, _CURVE)
    canvas.draw(known, _VALUE)
    rows = [f"{label:>{margin}} |{row}".rstrip() for label, row in zip(labels, canvas.rows(), strict=True)]
    return [*rows, f"{'turn':>{margin}}  {start}{end:>{canvas.width - len(str(start))}}"]


class _Canvas:
    """A grid of characters over a range of turns and one of values."""

    def __init__(self, width: int, turns: tuple[int, int], values: tuple[float, float]) -> None:
        self.width = width
        self._turns, self._values = turns, values
        self._cells: dict[tuple[int, int], str] = {}

    def draw(self, points: Sequence[tuple[int, float]], mark: str) -> None:
        (start, end), (bottom, top) = self._turns, self._values
        for turn, value in points:
            column = round((turn - start) / (end - start) * (self.width - 1))
            row = round((top - value) / (top - bottom) * (_HEIGHT - 1))
            there = self._cells.get((row, column), mark)
            self._cells[row, column] = mark if there == mark else _BOTH

    def rows(self) -> list[str]:
        return ["".join(self._cells.get((row, column), " ") for column in range(self.width)) for row in range(_HEIGHT)]

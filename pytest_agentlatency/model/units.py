"""How quantities are written: durations, tokens, shares, each with the mark of its provenance."""

from pytest_agentlatency.model.provenance import Provenance

MISSING = "n/a"
_MS, _S, _MIN = 1_000_000, 1_000_000_000, 60_000_000_000
_TENTHS_BELOW = 9.95  # per cent: the next tenth would be written 10.0


def duration(ns: float | None, provenance: Provenance = Provenance.MEASURED) -> str:
    """`n/a`, `0 ms`, `0.4 ms`, `310 ms`, `4.21 s`, `2.5 min`; three significant digits, never more."""
    if ns is None:
        return MISSING
    return provenance.mark + _duration(ns)


def _duration(ns: float) -> str:
    size = abs(ns)
    if size == 0:
        return "0 ms"
    if size < 9.95 * _MS:
        return f"{ns / _MS:.2g} ms"
    if size < 999.5 * _MS:
        return f"{ns / _MS:.0f} ms"
    if size < 9.995 * _S:
        return f"{ns / _S:.2f} s"
    if size < 99.95 * _S:
        return f"{ns / _S:.1f} s"
    return f"{ns / _MIN:.1f} min"


def tokens(count: float | None, provenance: Provenance = Provenance.MEASURED) -> str:
    """`n/a`, `812`, `14,030`: every token, with thousands separators."""
    return MISSING if count is None else f"{provenance.mark}{round(count):,}"


def share(fraction: float | None, provenance: Provenance = Provenance.MEASURED) -> str:
    """`n/a`, `61%`, `8.4%`: a fraction 0-1 as a percentage."""
    if fraction is None:
        return MISSING
    percent = 100 * fraction
    return f"{provenance.mark}{percent:.1f}%" if abs(percent) < _TENTHS_BELOW else f"{provenance.mark}{percent:.0f}%"


def signed(text: str) -> str:
    """The same text with a `+` unless it starts with a minus sign (after a provenance mark)."""
    return text if text.lstrip("~≈").startswith("-") else f"+{text}"

"""Plain values -> YAML that people review: one thing a line, text as text, the same bytes from the same values.

Owns the writing. Its own, because libyaml's emitter gives up block style at the first emoji and folds by version.
Everything it writes is plain YAML 1.1, for any safe loader. Refuses to know what the values mean.
"""

import re
from base64 import b64encode, encodebytes
from collections.abc import Mapping, Sequence

Value = str | bytes | int | bool | None | Sequence["Value"] | Mapping[str, "Value"]


class Row(dict[str, Value]):
    """A mapping that is written on one line: `{id: 1, name: search}`."""


_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+@*()=;-]*(?:[ :][A-Za-z0-9_./+@*()=;-]+)*|-?[0-9]+(?:[ *]-?[0-9]+)+")
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none"}
# What a loader would fold, refuse or take for a line break of its own.
_UNPRINTABLE = re.compile("[^\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# White space at a line's end doesn't survive editors and commit hooks.
_FRAGILE = re.compile(r"[ \t](?:\n|\Z)|\A\s*\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_LONG = 100
_KEY = 128


def document(value: Mapping[str, Value]) -> str:
    """The mapping as a YAML document in block style."""
    return _mapping(value, "")


def _mapping(value: Mapping[str, Value], pad: str) -> str:
    return "".join(f"{pad}{_key(key, pad)}{_after(each, pad)}" for key, each in value.items())


def _key(key: str, pad: str) -> str:
    written = _quoted(_SURROGATE.sub("\ufffd", key))
    return f"{written}:" if len(written) <= _KEY else f"? {written}\n{pad}:"


def _after(value: Value, pad: str) -> str:
    """What stands behind a key or a dash, line end included."""
    if isinstance(value, Row):
        return f" {_row(value)}\n"
    if isinstance(value, Mapping):
        return "\n" + _mapping(value, pad + "  ") if value else " {}\n"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "\n" + "".join(_item(each, pad) for each in value) if value else " []\n"
    return f" {_scalar(value, pad + '  ')}\n"


def _item(value: Value, pad: str) -> str:
    if isinstance(value, Mapping) and value and not isinstance(value, Row):
        return f"{pad}- {_mapping(value, pad + '  ')[len(pad) + 2 :]}"
    nested = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return f"{pad}-{_after(value, pad + '  ' if nested else pad)}"


def _row(value: Row) -> str:
    return "{" + ", ".join(f"{_quoted(key)}: {_inline(each)}" for key, each in value.items()) + "}"


def _inline(value: Value) -> str:
    if isinstance(value, str):
        return (
            f"!!binary '{b64encode(_surrogates(value)).decode('ascii')}'"
            if _SURROGATE.search(value)
            else _quoted(value)
        )
    if value is None or isinstance(value, int):
        return _constant(value)
    msg = f"{type(value).__name__} doesn't fit on a line"
    raise TypeError(msg)


def _scalar(value: Value, pad: str) -> str:
    if value is None or isinstance(value, int):
        return _constant(value)
    if isinstance(value, bytes):
        return _binary(value, pad)
    if not isinstance(value, str):
        msg = f"{type(value).__name__} can't be written: {value!r:.60}"
        raise TypeError(msg)
    if _SURROGATE.search(value):
        return _binary(_surrogates(value), pad)
    if len(value) < _LONG and "\n" not in value:
        return _quoted(value)
    return _escaped(value, pad) if _UNPRINTABLE.search(value) or _FRAGILE.search(value) else _block(value, pad)


def _constant(value: int | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _quoted(value: str) -> str:
    """On one line, whatever it is; in quotes only when YAML would read something else."""
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    if "\n" in value or _UNPRINTABLE.search(value):
        return f'"{_escape(value)}"'
    return "'" + value.replace("'", "''") + "'"


def _escape(value: str) -> str:
    safe = value.translate(_TABLE)
    return _UNPRINTABLE.sub(lambda found: f"\\U{ord(found[0]):08x}", safe)


_TABLE = str.maketrans(_ESCAPES)


def _escaped(value: str, pad: str) -> str:
    """Double-quoted, broken after each line of the text, so that a diff still goes by lines."""
    lines = (_escape(line) for line in value.split("\n"))
    return '"' + f"\\n\\\n{pad}".join("\\" + line if line.startswith(" ") else line for line in lines) + '"'


def _block(value: str, pad: str) -> str:
    """Literal style. The width of the indentation is stated when the text's own start would hide it."""
    width = str(2) if value[0] in " \n\t" else ""
    chomp = "+" if value.endswith("\n\n") else "" if value.endswith("\n") else "-"
    body = value.removesuffix("\n")
    lines = "\n".join(pad + line if line else "" for line in body.split("\n"))
    return f"|{width}{chomp}\n{lines}"


def _surrogates(value: str) -> bytes:
    """Text that no YAML can hold."""
    return value.encode("utf-8", "surrogatepass")


def _binary(value: bytes, pad: str) -> str:
    lines = encodebytes(value).decode("ascii").split()
    if len(lines) <= 1:
        return f"!!binary '{''.join(lines)}'"
    return "!!binary |" + "".join(f"\n{pad}{line}" for line in lines)

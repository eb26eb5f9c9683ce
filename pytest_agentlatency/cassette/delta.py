"""A request body as what is new against an earlier one.

A body is cut into pieces at the boundaries of its content blocks; a difference copies ranges of the base's pieces and
spells out the others, one a line:

    agentlatency delta of -1
    [:-1]
    +,{"role":"user","content":"and the weather?"}
    [-1:]

A bound is counted from the end of the base that it is nearer to, so that a longer history leaves later differences as
they are. Works on bytes: what JSON says twice, spaces or orders is kept. Owns cutting, difference and rebuilding;
refuses to know providers, and where differences are stored.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence

from pytest_agentlatency.cassette.limits import DEFAULT, Limits, check

Pieces = tuple[bytes, ...]
Stack = tuple[bool, ...]
"""The brackets that are open, outermost first: is it an array?"""

MAGIC = "agentlatency delta of "
_WORTH = 0.8  # of the body's size; above it a difference saves less than it hides
_SHORT = 64  # bytes: a shorter piece is not looked for out of order; spelt out it costs no more and reads better
_DIGITS = 10  # of a distance; no cassette has more requests
_ARRAYS = 2  # messages, and the content of each

# Everything up to and with the next bracket outside strings. Possessive and never failing, or hostile bodies cost n².
_BRACKET = re.compile(
    rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z))*+([\[\]{}]|\Z)',
    re.DOTALL,
)
_HARD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|[ ]\\Z")
_RANGE = re.compile(r"\[(-?[0-9]*):(-?[0-9]*)\]")


def cut(body: bytes) -> Pieces:
    """The body in pieces, one for each object of its outer arrays (messages, blocks, tools). They join to the body."""
    return _pieces(body, 0, ())[0]


class Cutter:
    """Cuts the bodies of a session, each only from where it leaves one before: a history is scanned once, not n times.

    The pieces are `cut`'s, but for an array that had objects before and has none now.
    """

    def __init__(self, memory: int) -> None:
        """Remember the last `memory` bodies."""
        self._known: deque[tuple[Pieces, tuple[Stack, ...]]] = deque(maxlen=memory)

    def cut(self, body: bytes) -> Pieces:
        """The body in pieces."""
        known, states = max(self._known, key=lambda each: _opening(body, each[0]), default=((), ()))
        shared = at = 0
        while shared < len(known) and body.startswith(known[shared], at):
            at += len(known[shared])
            shared += 1
        pieces, stacks = _pieces(body, at, states[shared - 1] if shared else ())
        whole = known[:shared] + pieces
        self._known.appendleft((whole, states[:shared] + stacks))
        return whole


def _opening(body: bytes, known: Pieces) -> bool:
    """Lanes differ in their first message at the latest."""
    return body.startswith(b"".join(known[:2]))


def _pieces(body: bytes, at: int, stack: Stack) -> tuple[Pieces, tuple[Stack, ...]]:
    """The pieces from an offset at which these brackets are open, and the open ones at each piece's end."""
    pieces: list[bytes] = []
    stacks: list[Stack] = []
    for end, state in [*_cuts(body, at, stack), (len(body), ())]:
        if end > at:
            pieces.append(body[at:end])
            stacks.append(state)
            at = end
    return tuple(pieces), tuple(stacks)


def _cuts(body: bytes, at: int, state: Stack) -> Iterator[tuple[int, Stack]]:
    """After the `[` of an array of objects, and after each object in it."""
    stack = list(state)
    arrays = sum(stack)
    for found in _BRACKET.finditer(body, at):
        bracket = found[1]
        if bracket in {b"[", b"{"}:
            stack.append(bracket == b"[")
            arrays += stack[-1]
            if stack[-1] and arrays <= _ARRAYS and body[found.end() : found.end() + 1] == b"{":
                yield found.end(), tuple(stack)
        elif bracket and stack:
            arrays -= stack.pop()
            if bracket == b"}" and stack and stack[-1] and arrays <= _ARRAYS:
                yield found.end(), tuple(stack)


def encode(new: Pieces, base: Pieces, distance: int) -> str | None:
    """The difference of `new` from `base`, which stands `distance` model requests before; None when it isn't worth it.

    Exact: `decode` of the text gives `new` again, or the text is not given out.
    """
    try:
        lines = [_range(part, len(base)) if isinstance(part, range) else _spelt(part) for part in _parts(new, base)]
    except UnicodeDecodeError:
        return None
    text = "\n".join([f"{MAGIC}-{distance}", *lines])
    return text if len(text) < _WORTH * sum(map(len, new)) else None


def _parts(new: Pieces, base: Pieces) -> list[range | bytes]:
    """Ranges of the base to copy, and pieces to spell out."""
    last = {piece: at for at, piece in enumerate(base) if len(piece) >= _SHORT}
    parts: list[range | bytes] = []
    expected = spelt = 0
    for piece in new:
        # What follows is the base's next piece (after an insertion), or the one after as many replaced ones.
        nearby = (at for at in (expected, expected + spelt) if at < len(base) and base[at] == piece)
        at = next(nearby, last.get(piece))
        if at is None:
            parts.append(piece)
            spelt += 1
            continue
        open_range = parts[-1] if parts else None
        if isinstance(open_range, range) and open_range.stop == at:
            parts[-1] = range(open_range.start, at + 1)
        else:
            parts.append(range(at, at + 1))
        expected, spelt = at + 1, 0
    return parts


def _range(part: range, size: int) -> str:
    start, stop = _bound(part.start, size), _bound(part.stop, size)
    return f"[{start if part.start else ''}:{stop if part.stop < size else ''}]"


def _bound(at: int, size: int) -> int:
    return at if at < size - at else at - size


def _spelt(piece: bytes) -> str:
    text = piece.decode("utf-8")
    if not _HARD.search(text):
        return f"+{text}"
    return _HARD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def distance(text: str) -> int | None:
    """How many model requests before this one the base stands; None when the text is no difference."""
    head = text.partition("\n")[0]
    number = head.removeprefix(f"{MAGIC}-")
    return int(number) if head != number and number.isdecimal() and len(number) < _DIGITS else None


def decode(text: str, base: Pieces, limits: Limits = DEFAULT) -> Pieces:
    """The pieces of the body of which `text` is the difference from `base`.

    Raises ValueError for a line of no kind, Refused when the body would be over a limit: a chain of differences can
    double it at each step.
    """
    pieces: list[bytes] = []
    size = 0
    for line in text.split("\n")[1:]:
        added = _added(line, base)
        size += sum(map(len, added))
        check(size, limits.body, "bytes in a body", "a difference")
        check(len(pieces) + len(added), limits.values, "pieces in a body", "a difference")
        pieces.extend(added)
    return tuple(pieces)


def _added(line: str, base: Pieces) -> Sequence[bytes]:
    if line.startswith("+"):
        return (line[1:].encode("utf-8"),)
    if line.startswith('"'):
        return (str(json.loads(line)).encode("utf-8"),)
    if found := _RANGE.fullmatch(line):
        start, stop = (int(bound) if bound else None for bound in found.groups())
        return base[start:stop]
    msg = f"line {line!r:.60} of a difference is neither a range nor a piece"
    raise ValueError(msg)

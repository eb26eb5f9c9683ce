"""JSON objects one after another: newline-delimited (Ollama), or the elements of an array (Gemini without `alt=sse`).

Owns finding where an object ends while its bytes still arrive. Refuses to know what it holds, and does no I/O.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_MARKS = re.compile(rb'["{}\\]')
_QUOTE, _OPEN, _CLOSE, _BACKSLASH = b'"{}\\'


@dataclass(slots=True)
class _Scanner:
    """Where in an object, and in a string, the bytes taken so far end."""

    depth: int = 0
    in_string: bool = False
    skip: int = 0
    """Bytes of the next chunk that a backslash at the end of the last one has taken."""
    parts: list[bytes] = field(default_factory=list[bytes])

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take the next bytes; give the outermost objects that they completed."""
        begin = 0
        for mark in _MARKS.finditer(chunk):
            at = mark.start()
            if at < self.skip:
                continue
            before = self.depth
            self._step(chunk[at], at)
            if self.depth > before == 0:
                begin = at
            elif before > self.depth == 0:
                yield b"".join((*self.parts, chunk[begin : at + 1]))
                self.parts.clear()
        self.skip = max(0, self.skip - len(chunk))
        if self.depth:
            self.parts.append(chunk[begin:])

    def _step(self, byte: int, at: int) -> None:
        if self.in_string:
            if byte == _BACKSLASH:
                self.skip = at + 2
            self.in_string = byte != _QUOTE
        elif byte == _QUOTE:
            self.in_string = self.depth > 0
        elif byte == _OPEN:
            self.depth += 1
        elif byte == _CLOSE:
            self.depth = max(0, self.depth - 1)


def objects(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Each outermost object with the index of the chunk that completed it; what stands between them is passed over."""
    scanner = _Scanner()
    for index, chunk in enumerate(chunks):
        for each in scanner.feed(chunk):
            yield index, each

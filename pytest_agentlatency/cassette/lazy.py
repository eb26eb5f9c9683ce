"""A request whose body is put together each time it is read.

The bodies of a long session are quadratic in its turns, the pieces that they share are not: held this way, a loaded
cassette takes memory by its size on disk. Owns that one value, which equals and behaves as a plain `Request`.
"""

from pytest_agentlatency.model.recording import Headers, Request


class LazyRequest(Request):
    """A `Request` of pieces."""

    __slots__ = ("pieces",)
    pieces: tuple[bytes, ...]

    def __init__(
        self,
        method: str,
        url: str,
        headers: Headers = (),
        body: bytes = b"",
        *,
        pieces: tuple[bytes, ...] | None = None,
    ) -> None:
        """Take a request's fields; `pieces` stand for the body when they are given."""
        parts = (body,) if pieces is None else pieces
        for name, value in (("method", method), ("url", url), ("headers", headers), ("pieces", parts)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> bytes:
        """The body: its slot stays empty, so that the attribute is looked for here."""
        if name != "body":
            raise AttributeError(name)
        return b"".join(self.pieces)

    def __eq__(self, other: object) -> bool:
        """Equal to any request of the same fields."""
        if not isinstance(other, Request):
            return NotImplemented
        return _fields(self) == _fields(other)

    __hash__ = Request.__hash__

    def __reduce__(self) -> tuple[type[Request], tuple[str, str, Headers, bytes]]:
        return Request, _fields(self)


def _fields(request: Request) -> tuple[str, str, Headers, bytes]:
    return request.method, request.url, request.headers, request.body

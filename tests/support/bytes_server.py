"""A server on loopback that answers with given bytes in given pieces, whether or not a provider would send them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pytest_agentlatency.testing.plan import Ending, Frame, Plan
from pytest_agentlatency.testing.server import LoopbackServer


@contextmanager
def serving(
    pieces: Sequence[bytes],
    *,
    headers: Mapping[str, str] | None = None,
    coding: str = "",
    ending: Ending = "complete",
    gap: int = 0,
    headers_at: int = 0,
    more_at: int | None = None,
) -> Iterator[str]:
    """Every request is answered with the pieces, each in a write of its own, `gap` nanoseconds apart; gives the URL.

    `more_at`: one more piece comes then.
    """
    frames = [Frame(number * gap, piece) for number, piece in enumerate(pieces)]
    plan = Plan(
        200,
        headers={"content-type": "text/event-stream", **(headers or {})},
        headers_at=headers_at,
        frames=tuple(frames if more_at is None else [*frames, Frame(more_at, b": more\n\n")]),
        streamed=True,
        ending=ending,
        coding=coding,
    )
    with LoopbackServer(lambda _: plan, lambda *_: None) as server:
        yield f"http://127.0.0.1:{server.port}"

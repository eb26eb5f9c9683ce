"""The smallest agent: it sends given request bodies, in order, through a real HTTP library."""

from collections.abc import Callable

import httpx

from pytest_agentlatency.model.recording import Recording


def resend(recording: Recording, change: Callable[[int, bytes], bytes] = lambda _, body: body) -> None:
    """Send the first attempt of each recorded call; `change` gets its number, from 1, and its body."""
    firsts = {attempt.call: attempt.request for attempt in reversed(recording.attempts)}
    with httpx.Client() as client:
        for call, request in sorted(firsts.items()):
            body = change(call, request.body)
            with client.stream(request.method, request.url, content=body, headers=dict(request.headers)) as response:
                response.read()

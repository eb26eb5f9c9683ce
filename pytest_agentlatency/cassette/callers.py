"""Which HTTP library a request comes from, as the call stack shows it. Refuses to know requests."""

from types import FrameType

_LIBRARIES = ("requests", "botocore", "httplib2", "urllib3", "aiohttp", "httpx", "httpx2", "tornado", "urllib", "http")
_NAMES = {"urllib": "urllib.request", "http": "http.client"}
_TRANSPARENT = ("vcr", "pytest_agentlatency", "contextlib", "functools", "wrapt", "asyncio")


def library(frame: FrameType | None) -> str:
    """The outermost HTTP library of the unbroken run of such frames above the request.

    http.client's own frames never show: vcrpy puts its class in their place.
    """
    found = "http"
    while frame:
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if module == "vcr.stubs.aiohttp_stubs":  # awaited without a frame of aiohttp's own
            found = "aiohttp"
        elif package in _LIBRARIES:
            found = package
        elif package not in _TRANSPARENT:
            break
        frame = frame.f_back
    return _NAMES.get(found, found)

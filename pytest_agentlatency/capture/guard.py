"""Nothing leaves in a replay: a refusal where sockets are opened, for every HTTP stack that the seam doesn't see.

Owns the patches of `socket` and of the event loop's resolver. Connections inside this machine are let through (an
agent's tools may use a local database), except to where the recorded model calls went, and except for a request that
reads like a model call. What a run leaves at work when it ends stays behind them until it ends, too; a child that is
forked takes them along.
"""

import asyncio
import inspect
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from pytest_agentlatency.capture.origin import Left
from pytest_agentlatency.model.recording import Request
from pytest_agentlatency.wire import registry

# Front to back: what a user would call the stack, before what it is built on.
_STACKS = (
    "aiohttp", "requests", "urllib3", "httplib2", "botocore", "grpc", "websockets", "pycurl", "tornado", "niquests",
    "httpx", "httpx2", "httpcore", "httpcore2", "urllib", "http",
)  # fmt: skip
_NAMES = {"urllib": "urllib.request", "http": "http.client"}
_REQUEST_LINE = re.compile(rb"^(POST|CONNECT) (\S+) HTTP/1\.[01]\r\n")
_INTERNET = frozenset({socket.AF_INET, socket.AF_INET6})

Fail = Callable[[str], BaseException]


def install(fail: Fail, recorded_urls: Iterable[str], allowed_hosts: Iterable[str]) -> "Barrier":
    """Refuse connections from now on; `fail` notes a message and gives the exception to raise."""
    return Barrier(_Guard(fail, frozenset(map(_endpoint, recorded_urls)), frozenset(allowed_hosts)))


def _endpoint(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


_standing: list["Barrier"] = []
"""Those that stay when their run is over, because that left something at work. One, as long as nobody else patches."""


class Barrier:
    """The patches, and whom they ask: the guard of a run, or of several that left something at work."""

    def __init__(self, guard: "_Guard") -> None:
        """Put the patches in place."""
        self._guards, self._stack = [guard], ExitStack()
        self._below: object = socket.socket.connect
        for owner, name, wrap in (
            (socket.socket, "connect", self._connecting),
            (socket.socket, "connect_ex", self._connecting),
            (socket.socket, "send", self._sending),
            (socket.socket, "sendall", self._sending),
            (socket.socket, "sendmsg", self._sending_parts),
            (socket.socket, "sendto", self._sending_to),
            (socket, "getaddrinfo", self._resolving),
            (asyncio.BaseEventLoop, "getaddrinfo", self._resolving_async),
        ):
            self._stack.enter_context(mock.patch.object(owner, name, wrap(getattr(owner, name))))
        self._top: object = socket.socket.connect

    def remove(self, left: Left | None = None, fail: Fail | None = None) -> None:
        """Let the process out again, all but what the run left at work: for that, `fail` says so from now on."""
        if self in _standing:
            return
        if left and fail is not None:
            guards = [each.only(left, fail) for each in self._guards]
            below = next((each for each in _standing if each._top is self._below), None)  # noqa: SLF001
            if below is None:
                self._guards = guards
                _standing.append(self)
                return
            below.take_over(guards)
        self._stack.close()

    def take_over(self, guards: Iterable["_Guard"]) -> None:
        """Guard what other runs left at work, and forget what has ended."""
        self._guards = [*(each for each in self._guards if each.needed), *guards]

    def _connecting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(sock: Any, address: Any) -> Any:
            if sock.family in _INTERNET:
                self._check(str(address[0]), int(address[1]))
            return original(sock, address)

        return connect

    def _resolving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
            self._check(_text(host), _number(port))
            return original(host, port, *args, **kwargs)

        return getaddrinfo

    def _resolving_async(self, original: Callable[..., Any]) -> Callable[..., Any]:
        async def getaddrinfo(loop: Any, host: Any, port: Any, **kwargs: Any) -> Any:
            self._check(_text(host), _number(port))  # here, not in the resolver's thread, the caller is on the stack
            return await original(loop, host, port, **kwargs)

        return getaddrinfo

    def _sending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def send(sock: Any, data: Any, *args: Any) -> Any:
            if sock.family in _INTERNET:
                self._read(sock, data)
            return original(sock, data, *args)

        return send

    def _sending_parts(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def sendmsg(sock: Any, buffers: Iterable[Any], ancillary: Any = (), flags: int = 0, address: Any = None) -> Any:
            parts = list(buffers)
            if sock.family in _INTERNET and address is not None:
                self._check(str(address[0]), int(address[1]))
            elif sock.family in _INTERNET:
                self._read(sock, b"".join(parts))
            return original(sock, parts, ancillary, flags, address)

        return sendmsg

    def _sending_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def sendto(sock: Any, data: Any, *args: Any) -> Any:
            if sock.family in _INTERNET and args:
                self._check(str(args[-1][0]), int(args[-1][1]))
            return original(sock, data, *args)

        return sendto

    def _read(self, sock: Any, data: Any) -> None:
        """Look at what is about to be sent: a model call, or a proxy being asked for a way out."""
        line = _REQUEST_LINE.match(bytes(memoryview(data)[:2048]))
        if line is None:
            return
        target = line[2].decode("latin-1")
        if line[1] == b"CONNECT":
            host, _, port = target.rpartition(":")
            self._check(host.strip("[]"), _number(port))
        elif _reads_like_a_model_call(target, bytes(data)):
            for guard in self._guards:
                if guard.asked():
                    raise guard.refused(str(sock.getpeername()[0]), int(sock.getpeername()[1]))

    def _check(self, host: str, port: int) -> None:
        for guard in self._guards:
            if guard.asked() and not guard.allows(host, port):
                raise guard.refused(host, port)


class _Guard:
    """What one run may connect to."""

    def __init__(self, fail: Fail, models: frozenset[tuple[str, int]], allowed: frozenset[str]) -> None:
        self._fail, self._models, self._allowed = fail, models, allowed
        self._left: Left | None = None

    def only(self, left: Left, fail: Fail) -> "_Guard":
        """The same for what the run left at work."""
        kept = _Guard(fail, self._models, self._allowed)
        kept._left = left
        return kept

    @property
    def needed(self) -> bool:
        """Whether there is anything left that it is for."""
        return self._left is None or bool(self._left)

    def asked(self) -> bool:
        """Whether it is for whoever calls."""
        return self._left is None or self._left.asks()

    def allows(self, host: str, port: int) -> bool:
        """Whether a connection may be opened."""
        return host in self._allowed or (_inside(host) and (host, port) not in self._models)

    def refused(self, host: str, port: int) -> BaseException:
        """The exception to raise."""
        return self._fail(
            f"refused in replay: {stack_in_use()} opens a connection to {host}:{port}, and the cassette can't answer "
            f"it.\nNothing leaves this machine in a replay. If the agent's model client moved to another HTTP stack, "
            f"give it one built on httpx or httpx2. If this is no model host, allow it: latency_allow_hosts = {host}"
        )


def _reads_like_a_model_call(target: str, data: bytes) -> bool:
    """Whether the head of a plain HTTP request names a path at which models are called; its body may come later."""
    body = data.partition(b"\r\n\r\n")[2] or b'{"model":"m","messages":[{"role":"user","content":"x"}],"input":"x"}'
    headers = (("content-type", "application/json"),)
    url = f"http://host{target}" if target.startswith("/") else target  # whole, where a proxy is asked
    return registry.recognise(Request("POST", url, headers, body)) is not None


def _text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "localhost")


def _number(port: Any) -> int:
    return int(port) if str(port).isdigit() else 0


def _inside(host: str) -> bool:
    """Whether a host is this machine, by name or address."""
    if host in {"localhost", ""} or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def stack_in_use() -> str:
    """Name of the HTTP stack on the call stack: the one the user chose, not the one below it."""
    seen: list[str] = []
    frame = inspect.currentframe()  # inspect.stack() reads source files
    while frame is not None:
        seen.append(str(frame.f_globals.get("__name__", "")).partition(".")[0])
        frame = frame.f_back
    known = [name for name in _STACKS if name in seen]
    return _NAMES.get(known[0], known[0]) if known else "a client of its own"

"""A small HTTP/1.1 server on loopback that plays planned responses on time, one write a frame.

Owns sockets, threads and waiting. Refuses to know models: it reads a request, asks for a plan, plays it. Threads and
locks rather than an event loop, so that a suite that patches `time`, `asyncio` or the running loop can't reach it.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import BinaryIO, Self

from pytest_agentlatency.model.clock import Ns, now
from pytest_agentlatency.testing.coding import Encoder, encoder
from pytest_agentlatency.testing.plan import Plan

_LINGER_NOT_AT_ALL = struct.pack("ii", 1, 0)
_ACCEPT_POLL = 0.2  # seconds; only where closing a listener doesn't wake its accept
_JOIN = 5.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    number: int
    """From 1, in the order of arrival."""
    connection: int
    """Number of the TCP connection, from 1."""
    first: bool
    """The connection's first request."""
    method: str
    path: str
    """With the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    at: Ns
    """When the last byte of the body was read, on `model.clock`."""


@dataclass(frozen=True, slots=True)
class Sent:
    """When the parts of a response were handed to the kernel, on `model.clock`; None: they weren't."""

    headers: Ns | None = None
    first_generated: Ns | None = None
    last_generated: Ns | None = None
    end: Ns | None = None
    frames: int = 0
    """How many frames went out."""
    outcome: str = "complete"
    """`complete`, `close` and `reset` as planned, `gone` when the client closed first, `stopped` with the server."""


class LoopbackServer:
    """Listens on 127.0.0.1 at `port`, which the system chose; one thread a connection."""

    def __init__(
        self,
        answer: Callable[[Received], Plan],
        done: Callable[[Received, Sent], None],
        *,
        connect_wait: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._done = done
        self._connect_wait = connect_wait
        self._tls = tls
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}
        self._threads: list[threading.Thread] = []
        self._requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(_ACCEPT_POLL)
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._start(self._accept, "accept")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._halt.set()
        with self._lock:
            for each in (self._listener, *self._open.values()):
                _shut(each)
        for thread in self._threads:
            thread.join(_JOIN)
        self._listener.close()

    def _start(self, target: Callable[..., None], name: str, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=f"simulated-model-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while not self._halt.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            number += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open[number] = connection
                if self._halt.is_set():
                    _shut(connection)
            self._start(self._serve, str(number), number, connection)

    def _serve(self, number: int, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                self._halt.wait(self._connect_wait / 1e9)
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._open[number] = connection
            with connection, connection.makefile("rb") as reader:
                self._converse(number, connection, reader)
        except OSError:
            pass  # the client went away, or the server is being stopped
        finally:
            with self._lock:
                self._open.pop(number).close()

    def _converse(self, number: int, connection: socket.socket, reader: BinaryIO) -> None:
        first = True
        while (received := self._read(number, reader, first=first)) is not None:
            plan = self._answer(received)
            wait = self._connect_wait if first and self._tls is None else 0
            sent = _Player(connection, self._halt, Ns(received.at + wait)).play(plan)
            self._done(received, sent)
            if sent.outcome == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT_AT_ALL)
            if sent.outcome != "complete" or received.headers.get("connection") == "close":
                return
            first = False

    def _read(self, connection: int, reader: BinaryIO, *, first: bool) -> Received | None:
        line = reader.readline().decode("latin-1").split()
        if len(line) < 2:  # noqa: PLR2004 - method and path; nothing is the end of a kept-alive connection
            return None
        headers = _read_headers(reader)
        body = _read_body(reader, headers)
        with self._lock:
            self._requests += 1
            return Received(self._requests, connection, first, line[0], line[1], headers, body, now())


def _shut(each: socket.socket) -> None:
    with suppress(OSError):  # not connected, or gone already
        each.shutdown(socket.SHUT_RDWR)


def _read_headers(reader: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    while line := reader.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def _read_body(reader: BinaryIO, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return reader.read(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int(reader.readline().split(b";")[0], 16):
        parts.append(reader.read(size))
        reader.readline()
    _read_headers(reader)
    return b"".join(parts)


class _Player:
    """Sends one planned response."""

    def __init__(self, connection: socket.socket, halt: threading.Event, origin: Ns) -> None:
        self._connection = connection
        self._halt = halt
        self._origin = origin
        self._sent = Sent()

    def play(self, plan: Plan) -> Sent:
        """Send the response as planned; never raises for what the client does."""
        try:
            self._send(plan)
        except _StoppedError:
            self._note(outcome="stopped")
        except OSError:
            self._note(outcome="stopped" if self._halt.is_set() else "gone")
        self._note(end=now())
        return self._sent

    def _send(self, plan: Plan) -> None:
        if plan.headers_at < 0:
            self._note(outcome=plan.ending)
            return
        coded = encoder(plan.coding)
        if plan.streamed:
            self._send_chunks(plan, coded)
        else:
            self._send_whole(plan, coded)
        self._note(outcome=plan.ending)

    def _send_chunks(self, plan: Plan, coded: Encoder) -> None:
        self._write(plan.headers_at, _head(plan, "transfer-encoding", "chunked"))
        self._note(headers=now())
        for frame in plan.frames:
            self._write(frame.at, _chunk(coded.feed(frame.data)))
            self._count(generated=frame.generated)
        if plan.ending == "complete":
            self._connection.sendall(_chunk(coded.finish()) + b"0\r\n\r\n")

    def _send_whole(self, plan: Plan, coded: Encoder) -> None:
        body = coded.feed(b"".join(frame.data for frame in plan.frames)) + coded.finish()
        kept = body if plan.ending == "complete" else body[: len(body) // 2]
        at = max((frame.at for frame in plan.frames), default=plan.headers_at)
        self._write(plan.headers_at, _head(plan, "content-length", str(len(body))))
        self._note(headers=now())
        self._write(at, kept)
        for frame in plan.frames:
            self._count(generated=frame.generated)

    def _write(self, at: int, data: bytes) -> None:
        self._wait(self._origin + at)
        self._connection.sendall(data)

    def _wait(self, due: int) -> None:
        while (rest := due - now()) > 0:
            if self._halt.wait(rest / 1e9):
                raise _StoppedError

    def _count(self, *, generated: bool) -> None:
        self._note(frames=self._sent.frames + 1)
        if generated:
            moment = now()
            self._note(first_generated=self._sent.first_generated or moment, last_generated=moment)

    def _note(self, **parts: object) -> None:
        self._sent = replace(self._sent, **parts)  # type: ignore[arg-type]


class _StoppedError(Exception):
    """The server is being stopped."""


def _head(plan: Plan, length_name: str, length: str) -> bytes:
    coding = {"content-encoding": plan.coding} if plan.coding else {}
    fields = {"date": formatdate(usegmt=True), **plan.headers, **coding, length_name: length}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {plan.status} {_reason(plan.status)}\r\n{lines}\r\n".encode("latin-1")


def _reason(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Overloaded"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""

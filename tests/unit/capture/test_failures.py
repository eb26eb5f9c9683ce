"""Failures of real connections, by every HTTP family and by both ways of calling it, kept and raised again."""

import asyncio
import errno
import socket
import ssl

import httpx
import httpx2
import pytest

from pytest_agentlatency.capture.failures import failure_of, raised
from pytest_agentlatency.model.recording import Failure, SystemFailure
from pytest_agentlatency.testing import Cut, Reply, SimulatedModel
from tests.support.tls import contexts

BODY = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def ask(family, url):
    with family.Client() as client, client.stream("POST", f"{url}/v1/messages", json=BODY) as response:
        response.read()


def ask_async(family, url):
    async def main():
        async with family.AsyncClient() as client, client.stream("POST", f"{url}/v1/messages", json=BODY) as response:
            await response.aread()

    asyncio.run(main())


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def family(request):
    return request.param


@pytest.fixture(params=[ask, ask_async], ids=["sync", "async"])
def asked(request):
    return request.param


def failed(asked, family, url):
    with pytest.raises(family.TransportError) as caught:
        asked(family, url)
    return caught.value


def again(family, error):
    """As a replay raises it, with the operating system's error below it."""
    replayed = raised(family, failure_of(error))
    assert (type(replayed), str(replayed)) == (type(error), str(error))
    return replayed.__cause__


def test_a_reset_is_kept_with_the_systems_word_for_it(family, asked):
    """anyio's own error says nothing: without the system's, an SDK words it otherwise in a replay."""
    with SimulatedModel(Reply("abcdefghijkl"), faults={1: Cut(after=4, reset=True)}) as model:
        error = failed(asked, family, model.url)
    below = again(family, error)
    assert isinstance(below, ConnectionResetError)
    assert str(below) == str(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))


def test_a_refused_connection_is_kept_with_its_number(family, asked):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = failed(asked, family, f"http://127.0.0.1:{taken.getsockname()[1]}")
    below = again(family, error)
    assert isinstance(below, ConnectionRefusedError)
    assert below.errno == errno.ECONNREFUSED


def test_a_server_that_hangs_up_leaves_no_error_of_the_system(family, asked):
    with SimulatedModel(Reply("abcdefghijkl"), faults={1: Cut(after=4)}) as model:
        error = failed(asked, family, model.url)
    assert again(family, error) is None


def test_a_certificate_that_is_not_trusted_keeps_its_words_and_no_number_of_another_table(family, asked, tmp_path):
    """1 is `SSL_ERROR_SSL` there and `EPERM` elsewhere."""
    server, _ = contexts(tmp_path)
    with SimulatedModel(tls=server) as model:
        error = failed(asked, family, model.url)
    system = failure_of(error).system
    assert system is not None
    assert (system.kind, system.code) == ("SSLCertVerificationError", "")
    assert "CERTIFICATE_VERIFY_FAILED" in system.message
    below = again(family, error)
    assert (type(below), str(below)) == (ssl.SSLCertVerificationError, system.message)


def test_an_unknown_name_stays_one():
    error = httpx.ConnectError("[Errno -2] Name or service not known")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    below = again(httpx, error)
    assert isinstance(below, socket.gaierror)
    assert str(below) == "[Errno -2] Name or service not known"


def test_a_number_is_raised_by_its_name_whatever_system_recorded_it():
    """`ETIMEDOUT` is 110 on Linux and 60 on macOS; an SDK compares it with its own system's."""
    recorded = Failure("ConnectTimeout", "", SystemFailure("TimeoutError", "Operation timed out", "ETIMEDOUT"))
    below = raised(httpx2, recorded).__cause__
    assert isinstance(below, TimeoutError)
    assert below.errno == errno.ETIMEDOUT


def test_a_chain_that_bites_its_tail_ends():
    error = httpx.ReadError("")
    error.__cause__ = OSError(errno.EPIPE, "Broken pipe")
    error.__cause__.__cause__ = error
    system = failure_of(error).system
    assert system == SystemFailure("BrokenPipeError", "Broken pipe", "EPIPE")


@pytest.mark.parametrize("kind", ["Gone", "Client", "exec", ""])
def test_a_class_that_is_no_error_of_the_system_is_not_made(kind):
    """A cassette is a file that anybody may edit."""
    below = raised(httpx, Failure("ReadError", "", SystemFailure(kind, "it broke"))).__cause__
    assert type(below) is OSError
    assert str(below) == "it broke"

"""Over TLS the handshake waits for the model, so that a client can tell connecting from prefill."""

import shutil
import ssl
import subprocess
from itertools import pairwise

import httpx2
import pytest

from pytest_agentlatency.model.clock import now
from pytest_agentlatency.testing import CostModel, Reply, SimulatedModel

MS = 1_000_000
ASK = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes a throw-away certificate with the openssl command, which is not installed")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subprocess.run([openssl, *made, *name], check=True, capture_output=True)  # noqa: S603 - fixed arguments
    return cert, key


def test_a_slow_connection_is_seen_in_the_handshake_and_only_once(certificate):
    cert, key = certificate
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=cert)
    server.load_cert_chain(cert, key)
    marks = []

    def trace(name, _):
        marks.append((name, now()))

    costs = CostModel(connect=150 * MS)
    with SimulatedModel(Reply("Hi."), costs=costs, tls=server) as model, httpx2.Client(verify=client) as http:
        for _ in range(2):
            http.post(f"{model.url}/v1/messages", json=ASK, extensions={"trace": trace})
    shakes = [at for name, at in marks if name.startswith("connection.start_tls")]
    assert [later - earlier >= 150 * MS for earlier, later in pairwise(shakes)] == [True]

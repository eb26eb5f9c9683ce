"""TLS on the loopback, with a certificate made for one test."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's context that trust each other. Skips the test where there is no openssl command."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes a throw-away certificate with the openssl command, which is not installed")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subprocess.run([openssl, *made, *name], check=True, capture_output=True)  # noqa: S603 - fixed arguments
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=cert)
    server.load_cert_chain(cert, key)
    return server, client

"""Over TLS the handshake waits for the model, so that a client can tell connecting from prefill."""

from itertools import pairwise

import httpx2

from pytest_agentlatency.model.clock import now
from pytest_agentlatency.testing import CostModel, Reply, SimulatedModel
from tests.support.tls import contexts

MS = 1_000_000
ASK = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_a_slow_connection_is_seen_in_the_handshake_and_only_once(tmp_path):
    server, client = contexts(tmp_path)
    marks = []

    def trace(name, _):
        marks.append((name, now()))

    costs = CostModel(connect=150 * MS)
    with SimulatedModel(Reply("Hi."), costs=costs, tls=server) as model, httpx2.Client(verify=client) as http:
        for _ in range(2):
            http.post(f"{model.url}/v1/messages", json=ASK, extensions={"trace": trace})
    shakes = [at for name, at in marks if name.startswith("connection.start_tls")]
    assert [later - earlier >= 150 * MS for earlier, later in pairwise(shakes)] == [True]

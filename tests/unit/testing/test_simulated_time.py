"""When the bytes of the simulated model arrive. Lower bounds and order only: a busy machine is late, never early."""

import socket
import threading

import httpx2
import pytest
from anthropic import Anthropic

from pytest_agentlatency.model.clock import now
from pytest_agentlatency.testing import Buffer, CostModel, Reply, SimulatedModel, SlowHeaders, Stall

MS = 1_000_000
ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "x" * 400}]}  # 100 tokens
STREAM = ASK | {"stream": True}
FIVE = Reply("x" * 20)  # 5 tokens


def arrivals(model, body=STREAM, client=httpx2):
    """(chunk, nanoseconds since the request was made) of one streamed answer, and the headers' time."""
    start = now()
    with client.stream("POST", f"{model.url}/v1/messages", json=body) as response:
        headers = now() - start
        return headers, [(chunk, now() - start) for chunk in response.iter_raw()]


def test_each_event_is_a_chunk_of_its_own_and_comes_when_it_is_due():
    costs = CostModel(prefill=1 * MS, decode=100 * MS)
    with SimulatedModel(FIVE, costs=costs) as model:
        _, chunks = arrivals(model)
    tokens = [at for chunk, at in chunks if b"text_delta" in chunk]
    assert len(chunks) == 2 + 5 + 3
    assert tokens[0] >= 100 * MS
    assert tokens[-1] - tokens[0] >= 350 * MS
    assert tokens[-1] >= 500 * MS


def test_a_late_prelude_keeps_the_first_event_back_until_the_first_token():
    with SimulatedModel(FIVE, costs=CostModel(prefill=2 * MS), early_prelude=False) as model:
        _, chunks = arrivals(model)
    assert b"message_start" in chunks[0][0]
    assert chunks[0][1] >= 200 * MS


def test_the_servers_account_is_the_formula_and_its_stamps_are_not_before_it():
    costs = CostModel(queue=10 * MS, fixed=5 * MS, prefill=100_000, decode=2 * MS)
    with SimulatedModel(FIVE, costs=costs) as model:
        arrivals(model)
        [served] = model.served
    assert (served.cost.queue, served.cost.prefill, served.cost.decode) == (10 * MS, 15 * MS, 8 * MS)
    assert served.sent.headers - served.received >= 10 * MS
    assert served.sent.first_generated - served.received >= 25 * MS
    assert served.sent.last_generated - served.received >= 33 * MS
    assert served.sent.end >= served.sent.last_generated


def test_time_scale_zero_answers_at_once_and_says_so_in_its_account():
    with SimulatedModel(FIVE, costs=CostModel(fixed=3600 * 1000 * MS), time_scale=0) as model:
        arrivals(model)
        assert model.served[0].cost.prefill == 0


def test_a_cached_prefix_is_cheaper_by_its_tokens():
    with SimulatedModel(FIVE, costs=CostModel(prefill=MS, cache="prefix"), time_scale=0.01) as model:
        arrivals(model)
        arrivals(model)
        first, second = model.served
    assert (first.cost.prefill, second.cost.prefill) == (1 * MS, 10_000)


def test_a_plain_answer_comes_after_prefill_and_decode():
    with SimulatedModel(FIVE, costs=CostModel(fixed=50 * MS, decode=20 * MS)) as model:
        start = now()
        httpx2.post(f"{model.url}/v1/messages", json=ASK)
        assert now() - start >= 130 * MS


def test_only_a_new_connection_pays_for_connecting():
    with SimulatedModel(FIVE, costs=CostModel(connect=400 * MS)) as model, httpx2.Client() as client:
        for _ in range(2):
            arrivals(model, client=client)
        first, second = model.served
        assert [request.connection for request in model.requests] == [1, 1]
    assert first.sent.headers - first.received >= 400 * MS
    assert (second.sent.headers - second.received) < (first.sent.headers - first.received)


def test_a_stall_holds_one_event_and_all_after_it():
    with SimulatedModel(FIVE, faults={1: Stall(150 * MS, before=5)}) as model:
        _, chunks = arrivals(model)
    assert all(at >= 150 * MS for _, at in chunks[4:])


def test_slow_headers_hold_everything():
    with SimulatedModel(FIVE, faults={1: SlowHeaders(100 * MS)}) as model:
        headers, _ = arrivals(model)
    assert headers >= 100 * MS


def test_a_buffering_proxy_gives_the_same_bytes_in_one_chunk_at_the_end():
    costs = CostModel(decode=20 * MS)
    with SimulatedModel(FIVE, costs=costs, faults={2: Buffer(), 3: Buffer(4)}) as model:
        (_, paced), (_, blob), (_, bursts) = (arrivals(model) for _ in range(3))
    assert [len(chunks) for chunks in (paced, blob, bursts)] == [10, 1, 3]
    assert blob[0][1] >= 80 * MS
    sent = [b"".join(chunk for chunk, _ in chunks) for chunks in (paced, blob, bursts)]
    assert sent[0] == sent[1].replace(b"sim_0002", b"sim_0001") == sent[2].replace(b"sim_0003", b"sim_0001")


def test_concurrent_requests_are_served_side_by_side():
    costs = CostModel(fixed=500 * MS)
    with SimulatedModel(FIVE, costs=costs) as model:
        threads = [threading.Thread(target=arrivals, args=(model,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        served = model.served
    assert max(each.received for each in served) < min(each.sent.first_generated for each in served)


def test_leaving_the_model_ends_a_stream_that_is_still_waiting():
    with SimulatedModel(FIVE, costs=CostModel(decode=3600 * 1000 * MS)) as model:
        client = Anthropic(base_url=model.url, api_key="x", max_retries=0)
        stream = client.messages.create(**STREAM)
        next(iter(stream))
    assert model.served[0].sent.outcome == "stopped"
    stream.close()
    client.close()


def test_a_client_that_goes_away_is_noted():
    with SimulatedModel(Reply("x" * 4000), costs=CostModel(decode=1 * MS)) as model:
        with httpx2.stream("POST", f"{model.url}/v1/messages", json=STREAM) as response:
            next(response.iter_raw())
        outcome = model.served[0].sent.outcome if model.served[0].sent else "still sending"
    assert outcome == "gone"


def test_accepted_connections_send_small_writes_at_once(monkeypatch):
    """Nagle's algorithm would add 40 ms between headers and first event on a kept-alive connection."""
    seen = []
    real = socket.socket.setsockopt
    monkeypatch.setattr(socket.socket, "setsockopt", lambda self, *args: (seen.append(args), real(self, *args))[1])
    with SimulatedModel(FIVE) as model:
        arrivals(model)
    assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in seen


@pytest.mark.parametrize("frozen", ["time.sleep", "time.monotonic", "time.time"])
def test_a_suite_that_patches_time_doesnt_reach_the_model(monkeypatch, frozen):
    real = now()
    with SimulatedModel(FIVE, costs=CostModel(fixed=30 * MS)) as model:
        monkeypatch.setattr(frozen, lambda *_: 0.0)
        with socket.create_connection(("127.0.0.1", int(model.url.rpartition(":")[2]))) as raw:
            raw.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            assert raw.recv(99).startswith(b"HTTP/1.1 200")
    assert now() - real >= 30 * MS

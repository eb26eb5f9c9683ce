"""What servers say of their own time, field by field."""

import pytest

from pytest_agentlatency.wire.message import ServerTimes
from pytest_agentlatency.wire.servertimes import collect, server_times
from tests.support.wire import whole

MS = 1_000_000


def read(body, usage=None, *, streamed=True, **headers):
    extras = {}
    collect(extras, body)
    return server_times(extras, usage or {}, whole({}, 200, **headers), streamed=streamed)


@pytest.mark.parametrize(
    ("body", "usage", "expected"),
    [
        (
            {"timings": {"prompt_ms": 1.5, "predicted_ms": 2}},
            {},
            ServerTimes(prefill=1_500_000, decode=2 * MS, source="timings.prompt_ms"),
        ),
        (
            {"time_info": {"queue_time": 0.001, "prompt_time": 0.002, "completion_time": 0.003, "total_time": 0.006}},
            {},
            ServerTimes(queue=MS, prefill=2 * MS, decode=3 * MS, total=6 * MS, source="time_info.prompt_time"),
        ),
        (
            {"metrics": {"time_to_first_token_ms": 5, "queue_time_ms": 2}},
            {},
            ServerTimes(prefill=5 * MS, queue=2 * MS, source="metrics.time_to_first_token_ms"),
        ),
        ({}, {"time_to_first_token_ms": 7}, ServerTimes(ttft=7 * MS, source="usage.time_to_first_token_ms")),
        (
            {},
            {"latency_checkpoint": {"engine_ttft_ms": 3, "service_ttft_ms": 4}},
            ServerTimes(ttft=4 * MS, source="usage.latency_checkpoint.service_ttft_ms"),
        ),
        ({}, {}, ServerTimes()),
        ({"timings": "soon", "metrics": {"latencyMs": -1}}, {}, ServerTimes()),
    ],
)
def test_body_fields(body, usage, expected):
    assert read(body, usage) == expected


def test_xai_headers():
    found = read({}, x_metrics_ttft_ms="120", x_metrics_e2e_ms="900.5")
    assert (found.ttft, found.total) == (120 * MS, 900_500_000)


def test_processing_header_is_the_whole_call_only_when_nothing_streamed():
    """On a stream it stops at the headers: neither prefill nor total."""
    assert read({}, openai_processing_ms="208", streamed=False).total == 208 * MS
    assert read({}, openai_processing_ms="208", streamed=True) == ServerTimes()


def test_a_body_s_split_is_preferred_to_a_header():
    found = read({"timings": {"prompt_ms": 1, "predicted_ms": 2}}, openai_processing_ms="208", streamed=False)
    assert (found.prefill, found.total) == (MS, None)

"""Faults as the real anthropic SDK and a plain HTTP client meet them."""

import anthropic
import httpx2
import pytest
from anthropic import Anthropic

from pytest_agentlatency.testing import (
    Blank,
    Coding,
    Cut,
    Drop,
    ErrorEvent,
    LineEnds,
    Refuse,
    Reply,
    SimulatedModel,
    comment,
    ping,
    unknown_event,
)

MS = 1_000_000
ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]}
FIVE = Reply("12345678901234567890")


def ask(model, retries=0, **more):
    with Anthropic(base_url=model.url, api_key="x", max_retries=retries) as client:
        return client.messages.create(**ASK, **more)


def streamed_text(model):
    with (
        Anthropic(base_url=model.url, api_key="x", max_retries=0) as client,
        client.messages.stream(**ASK) as stream,
    ):
        return stream.get_final_text()


def iter_stream(model):
    with httpx2.stream("POST", f"{model.url}/v1/messages", json=ASK | {"stream": True}) as response:
        yield from response.iter_raw()


def raw_stream(model):
    with httpx2.stream("POST", f"{model.url}/v1/messages", json=ASK | {"stream": True}) as response:
        return response.headers, list(response.iter_raw())


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, anthropic.RateLimitError), (500, anthropic.InternalServerError), (529, anthropic.OverloadedError)],
)
def test_a_refusal_is_the_sdks_own_error(status, error):
    with SimulatedModel(faults={1: Refuse(status)}) as model, pytest.raises(error):
        ask(model)


def test_a_refused_call_is_retried_after_the_stated_wait_and_gets_the_reply_meant_for_it():
    with SimulatedModel([FIVE], faults={1: Refuse(529, retry_after=60 * MS)}) as model:
        assert ask(model, retries=1).content[0].text == FIVE.text
        first, second = model.served
    assert first.reply is None
    assert second.received - first.sent.end >= 60 * MS


def test_retry_after_is_stated_in_seconds_and_milliseconds():
    with SimulatedModel(faults={1: Refuse(429, retry_after=1500 * MS)}) as model:
        headers = httpx2.post(f"{model.url}/v1/messages", json=ASK).headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1500")


@pytest.mark.parametrize("reset", [False, True])
def test_a_stream_that_is_cut_gives_its_events_and_then_fails(reset):
    events = []
    with SimulatedModel(FIVE, faults={1: Cut(after=4, reset=reset)}) as model:
        error = httpx2.ReadError if reset else httpx2.RemoteProtocolError
        with pytest.raises(error):
            events.extend(iter_stream(model))
        assert model.served[0].sent.outcome == ("reset" if reset else "close")
    assert model.served[0].sent.frames == 4
    assert len(events) == 4


def test_a_plain_answer_that_is_cut_is_an_error():
    with SimulatedModel(FIVE, faults={1: Cut(after=1)}) as model, pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(f"{model.url}/v1/messages", json=ASK)


def test_a_dropped_connection_is_retried_by_the_sdk():
    with SimulatedModel([FIVE], faults={1: Drop()}) as model:
        assert ask(model, retries=1).content[0].text == FIVE.text
        assert model.served[0].sent.headers is None


def test_pings_comments_and_unknown_events_change_nothing_for_the_sdk():
    extras = (ping(2), comment(1), unknown_event(4), ping(6))
    with SimulatedModel(FIVE, faults={1: extras}) as model:
        assert streamed_text(model) == FIVE.text
        assert model.served[0].sent.frames == 10 + 4


def test_an_error_inside_a_stream_ends_it_with_the_sdks_error():
    with (
        SimulatedModel(FIVE, faults={1: ErrorEvent(after=4)}) as model,
        pytest.raises(anthropic.APIStatusError) as error,
    ):
        streamed_text(model)
    assert error.value.body["error"]["type"] == "overloaded_error"


def test_a_blank_body_is_a_success_of_no_bytes():
    with SimulatedModel(FIVE, faults={1: Blank()}) as model:
        headers, chunks = raw_stream(model)
    assert (chunks, headers["content-type"].split(";")[0]) == ([], "text/event-stream")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_coded_stream_still_streams_and_decodes_to_the_same(coding):
    with SimulatedModel(FIVE, faults={1: Coding(coding), 2: Coding(coding)}) as model:
        headers, chunks = raw_stream(model)
        assert streamed_text(model) == FIVE.text
    assert headers["content-encoding"] == coding
    assert len(chunks) >= 10


def test_a_coded_plain_answer_decodes():
    with SimulatedModel(FIVE, faults={1: Coding("gzip")}) as model:
        assert ask(model).content[0].text == FIVE.text


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_a_coding_with_its_package_streams(coding):
    with SimulatedModel(FIVE, faults={1: Coding(coding)}) as model:
        assert streamed_text(model) == FIVE.text


def test_a_coding_that_nobody_knows_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match="'lzma' is not one of gzip, deflate, br, zstd"):
        Coding("lzma")


@pytest.mark.parametrize("newline", [b"\r\n", b"\r"])
def test_other_line_ends_mean_the_same(newline):
    with SimulatedModel(FIVE, faults={1: LineEnds(newline), 2: LineEnds(newline)}) as model:
        _, chunks = raw_stream(model)
        assert streamed_text(model) == FIVE.text
    assert all(b"\n" not in chunk.replace(newline, b"") for chunk in chunks)


def test_faults_of_a_stream_leave_a_plain_answer_alone():
    with SimulatedModel(FIVE, faults={1: (ping(1), ErrorEvent(after=0), LineEnds())}) as model:
        assert ask(model).content[0].text == FIVE.text


def test_requests_are_kept_as_they_arrived():
    with SimulatedModel(FIVE) as model:
        ask(model, extra_headers={"X-Lane": "main"})
        [request] = model.requests
    assert (request.method, request.path, request.headers["x-lane"]) == ("POST", "/v1/messages", "main")
    assert b'"hello"' in request.body


def test_a_request_body_sent_in_chunks_is_read_whole():
    with SimulatedModel(FIVE) as model:
        parts = [b'{"model":"m","messages":[{"role":"user",', b'"content":"hello"}]}']
        assert httpx2.post(f"{model.url}/v1/messages", content=iter(parts)).status_code == 200
        assert model.requests[0].body == b"".join(parts)

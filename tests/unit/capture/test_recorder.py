"""The state machine of a run, on a clock that only moves when told to."""

import threading

import pytest

from pytest_agentlatency.capture import active
from pytest_agentlatency.capture.recorder import Recorder, entry
from pytest_agentlatency.model.recording import Facts, Failure, Outcome, Request
from pytest_agentlatency.testing import FakeClock

MS = 1_000_000
ASK = Request("POST", "http://model/v1/messages", (), b"{}")


@pytest.fixture
def clock():
    return FakeClock(start=123)


@pytest.fixture
def recorder(clock):
    return Recorder(clock)


def only(recorder):
    (attempt,) = recorder.recording(Facts()).attempts
    return attempt


def test_the_runs_clock_starts_at_zero(clock, recorder):
    assert recorder.now() == 0
    clock.advance(ms=5)
    assert recorder.now() == 5 * MS


def test_stamps_are_taken_when_things_happen(clock, recorder):
    attempt = recorder.open_attempt(recorder.open_call(), ASK)
    for event, ms in [
        ("connection.connect_tcp.started", 1),
        ("connection.connect_tcp.complete", 10),
        ("connection.start_tls.started", 0),
        ("connection.start_tls.complete", 20),
        ("http11.send_request_body.complete", 2),
    ]:
        clock.advance(ms=ms)
        attempt.traced(event)
    clock.advance(ms=100)
    attempt.answered(200, (), reason="OK", http_version="HTTP/1.1", coding="", decoder=None)
    asked = recorder.now()
    clock.advance(ms=7)
    attempt.chunk(asked, recorder.now(), b"x")
    clock.advance(ms=1)
    attempt.finish(Outcome.COMPLETE)
    stamps = only(recorder).stamps
    assert stamps.connect == (1 * MS, 31 * MS)
    assert stamps.sent == 33 * MS
    assert stamps.headers == 133 * MS
    assert stamps.asked == (133 * MS,)
    assert stamps.arrived == (140 * MS,)
    assert stamps.end == 141 * MS


def test_the_first_end_of_an_attempt_counts(clock, recorder):
    attempt = recorder.open_attempt(recorder.open_call(), ASK)
    attempt.finish(Outcome.ERROR, Failure("ReadError"))
    clock.advance(ms=9)
    attempt.finish(Outcome.CLOSED)
    assert only(recorder).outcome is Outcome.ERROR
    assert only(recorder).stamps.end == 0


def test_attempts_of_one_sdk_call_are_one_call(recorder):
    opened = recorder.enter("anthropic 2.14.0", "httpx2.HTTPTransport")
    token = entry.set(opened)
    try:
        for _ in range(2):
            recorder.open_attempt(recorder.open_call(), ASK)
    finally:
        entry.reset(token)
    recorder.open_attempt(recorder.open_call(), ASK)
    recording = recorder.recording(Facts())
    assert [attempt.call for attempt in recording.attempts] == [1, 1, 2]
    assert [call.sdk for call in recording.calls] == ["anthropic 2.14.0", ""]


def test_an_sdk_call_from_which_nothing_left_names_its_transport(recorder):
    recorder.enter("anthropic 2.14.0", "mine.Transport")
    assert recorder.unseen_transports() == ("mine.Transport",)
    assert recorder.recording(Facts()).calls == ()


def test_what_runs_in_a_tool_is_its_child(clock, recorder):
    with recorder.tool("outer"):
        clock.advance(ms=1)
        with recorder.tool("inner"):
            recorder.open_call()
            clock.advance(ms=2)
        clock.advance(ms=3)
    recording = recorder.recording(Facts())
    outer, inner = recording.tools
    assert (outer.name, outer.start, outer.end, outer.parent) == ("outer", 0, 6 * MS, None)
    assert (inner.name, inner.start, inner.end, inner.parent) == ("inner", 1 * MS, 3 * MS, outer.id)
    assert recording.calls[0].parent == inner.id


def test_a_tool_that_fails_is_timed_and_marked(clock, recorder):
    def broken():
        with recorder.tool("broken"):
            clock.advance(ms=4)
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        broken()
    (tool,) = recorder.recording(Facts()).tools
    assert tool.error
    assert tool.end == 4 * MS


def test_a_pause_is_kept_with_its_reason(clock, recorder):
    with recorder.pause("approval"):
        clock.advance(ms=30_000)
    (pause,) = recorder.recording(Facts()).pauses
    assert (pause.start, pause.end, pause.reason) == (0, 30_000 * MS, "approval")


def test_calls_from_many_threads_are_neither_lost_nor_doubled(recorder):
    def work():
        for _ in range(50):
            recorder.open_attempt(recorder.open_call(), ASK).finish(Outcome.COMPLETE)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording = recorder.recording(Facts())
    assert sorted(call.id for call in recording.calls) == list(range(1, 401))
    assert sorted(attempt.call for attempt in recording.attempts) == list(range(1, 401))


def test_a_snapshot_of_a_stream_in_flight_holds_what_came(clock, recorder):
    attempt = recorder.open_attempt(recorder.open_call(), ASK)
    attempt.answered(200, (), reason="OK", http_version="HTTP/1.1", coding="", decoder=None)
    attempt.chunk(0, 1, b"one")
    early = only(recorder)
    attempt.chunk(2, 3, b"two")
    assert early.response.chunks == (b"one",)
    assert early.outcome is Outcome.CLOSED
    assert only(recorder).response.chunks == (b"one", b"two")


def test_one_process_observes_one_run_at_a_time(recorder):
    active.begin(recorder)
    try:
        assert active.current() is recorder
        with pytest.raises(RuntimeError, match="one run at a time"):
            active.begin(Recorder())
    finally:
        active.end(recorder)
    assert active.current() is None

"""AWS event stream frames, against the protocol's own test vectors."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.wire.eventstream import binary_frames, looks_like_event_stream
from tests.support.wire import binary_frame, cut

# Vectors of the protocol's reference implementation: "empty message" and "payload, no headers".
EMPTY = bytes.fromhex("00000010 00000000 05c248eb 7d98c8ff")
PAYLOAD = bytes.fromhex("0000001d 00000000 fd528c5a 7b27666f6f273a27626172277d c3653936")


def test_reference_vectors_are_read():
    assert [frame.payload for frame in binary_frames([EMPTY, PAYLOAD])] == [b"", b"{'foo':'bar'}"]


def test_our_writer_agrees_with_the_reference():
    assert binary_frame({}, b"{'foo':'bar'}") == PAYLOAD


def test_event_and_exception_types_come_from_headers():
    event = binary_frame({":event-type": "messageStop", ":message-type": "event"}, b"{}")
    failure = binary_frame({":message-type": "exception", ":exception-type": "throttlingException"}, b"{}")
    first, second = binary_frames([event + failure])
    assert (first.event, first.exception) == ("messageStop", False)
    assert (second.event, second.exception) == ("throttlingException", True)


def test_message_cut_off_is_not_given():
    assert list(binary_frames([PAYLOAD, PAYLOAD[:-1]])) == list(binary_frames([PAYLOAD]))


def test_bytes_that_are_no_frame_end_the_stream():
    assert list(binary_frames([EMPTY, b"x" * 40, PAYLOAD])) == list(binary_frames([EMPTY]))


def test_a_length_beyond_the_protocols_limit_is_no_frame():
    assert not looks_like_event_stream(b"\xff" * 12)
    assert looks_like_event_stream(EMPTY)


@given(
    st.lists(
        st.tuples(st.dictionaries(st.text("ab:-", min_size=1, max_size=5), st.text("xy", max_size=5)), st.binary())
    ),
    st.lists(st.integers(0, 500)),
)
def test_frames_do_not_depend_on_how_bytes_are_cut(messages, cuts):
    body = b"".join(binary_frame(headers, payload) for headers, payload in messages)
    found = list(binary_frames(cut(body, cuts)))
    assert [frame.payload for frame in found] == [payload for _, payload in messages]
    assert [frame.chunk for frame in found] == sorted(frame.chunk for frame in found)

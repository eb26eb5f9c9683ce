"""Events of a byte stream, after the examples of the WHATWG standard, however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.wire.sse import Event, events, looks_like_sse
from tests.support.wire import cut


def read(*chunks: bytes) -> list[Event]:
    return [event for _, event in events(chunks)]


def test_lines_of_data_are_joined_by_newlines():
    assert read(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [Event("message", "YHOO\n+2\n10")]


def test_standard_example_with_comment_ids_and_space():
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert read(stream) == [
        Event("message", "first event", "1"),
        Event("message", "second event", ""),
        Event("message", " third event", ""),
    ]


def test_standard_example_of_empty_data():
    assert read(b"data\n\ndata\ndata\n\ndata:") == [
        Event("message", ""),
        Event("message", "\n"),
        Event("message", ""),  # the standard drops it for want of a blank line; we give what came
    ]


def test_event_without_data_is_none():
    assert read(b"event: ping\n\ndata: x\n\n") == [Event("message", "x")]


def test_bom_is_no_part_of_the_first_field():
    assert read(b"\xef\xbb\xbfdata: x\n\n") == [Event("message", "x")]


def test_all_three_line_ends():
    assert read(b"event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\revent: c\ndata: 3\n\n") == [
        Event("a", "1"),
        Event("b", "2"),
        Event("c", "3"),
    ]


def test_crlf_cut_in_the_middle_is_one_line_end():
    assert list(events([b"data: 1\r", b"\ndata: 2\r\n\r", b"\n", b"data: 3\n\n"])) == [
        (1, Event("message", "1\n2")),
        (3, Event("message", "3")),
    ]


def test_character_cut_in_the_middle():
    euro = "€".encode()
    assert read(b"data: " + euro[:1], euro[1:2], euro[2:] + b"\n\n") == [Event("message", "€")]


def test_stream_without_its_last_blank_line_keeps_its_last_event():
    assert list(events([b"data: 1\n\n", b"data: 2\n"])) == [(0, Event("message", "1")), (1, Event("message", "2"))]
    assert read(b"data: 2") == [Event("message", "2")]


def test_index_is_of_the_chunk_that_completed_the_event():
    """Field note B11: a network chunk is no line, and an event arrived when its last byte did."""
    assert [index for index, _ in events([b"data: 1\n", b"\ndata: 2\n\ndata", b": 3\n\n"])] == [1, 1, 2]


def test_line_in_many_chunks_is_joined_once():
    found = list(events([b"data: ", *[b"x"] * 20_000, b"\n\n"]))
    assert found == [(20_001, Event("message", "x" * 20_000))]


def test_event_streams_are_told_by_their_first_bytes():
    assert all(map(looks_like_sse, (b"data: x", b"event: x", b": keep-alive", b"\xef\xbb\xbfid:", b"\n\nretry: 1")))
    assert not any(map(looks_like_sse, (b"", b"{", b"[", b"<html>", b"database")))


lines = st.lists(
    st.one_of(
        st.sampled_from([b"", b"", b":", b"event: a", b"data", b"data: \xe2\x82\xac", b"id: 7", b"retry: 1", b"\xff"]),
        st.binary(max_size=8),
    ),
    max_size=12,
)
ends = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(lines, st.lists(ends, min_size=12, max_size=12), st.lists(st.integers(0, 200), max_size=12), st.booleans())
def test_events_do_not_depend_on_how_bytes_are_cut(parts, line_ends, cuts, bom):
    body = (b"\xef\xbb\xbf" if bom else b"") + b"".join(a + b for a, b in zip(parts, line_ends, strict=False))
    chunks = cut(body, cuts)
    found = list(events(chunks))
    assert [event for _, event in found] == read(body)
    assert [index for index, _ in found] == sorted(index for index, _ in found)

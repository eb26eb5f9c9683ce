import re
from dataclasses import replace

import pytest
import vcr.serialize
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from vcr.serializers import yamlserializer

from pytest_agentlatency.cassette import document
from pytest_agentlatency.cassette.document import Document, dumps, loads
from pytest_agentlatency.cassette.errors import CassetteError, NewerVersion, Refused, Truncated, Unreadable
from pytest_agentlatency.cassette.limits import Limits
from pytest_agentlatency.model.recording import Facts, Recording
from tests.support import documents as some


@settings(deadline=None)
@given(some.documents)
def test_any_document_comes_back_from_its_bytes(whole):
    assert loads(dumps(whole), "x.yaml") == whole


@settings(deadline=None)
@given(some.documents)
def test_the_same_document_has_the_same_bytes(whole):
    written = dumps(whole)
    assert dumps(loads(written, "x.yaml")) == written
    assert b"\r" not in written


@settings(deadline=None)
@given(some.documents)
def test_plain_vcrpy_loads_any_cassette_and_keeps_responses_and_our_key(whole):
    requests, responses = vcr.serialize.deserialize(dumps(whole).decode(), yamlserializer)[:2]
    attempts = whole.recording.attempts
    assert len(requests) == len(attempts) + len(whole.others)
    for attempt, response in zip(attempts, responses, strict=False):
        assert response["body"]["string"] == (attempt.response.body if attempt.response else b"")
        assert response["agentlatency"]["call"] == attempt.call


def resaved_by_vcrpy(data: bytes) -> bytes:
    requests, responses = vcr.serialize.deserialize(data.decode(), yamlserializer)[:2]
    return vcr.serialize.serialize({"requests": requests, "responses": responses}, yamlserializer).encode()


def test_after_a_plain_vcrpy_has_saved_it_bodies_and_times_are_there_and_the_facts_unknown():
    whole = some.session(4)
    back = loads(resaved_by_vcrpy(dumps(whole)), "x.yaml")
    assert back.recording.attempts == whole.recording.attempts
    assert back.others == whole.others
    assert [call.id for call in back.recording.calls] == [1, 2, 3, 4]
    assert back.recording.facts == Facts()


@pytest.mark.parametrize("saved", [dumps, lambda whole: resaved_by_vcrpy(dumps(whole))], ids=["ours", "vcrpy's"])
def test_a_file_cut_at_any_byte_is_refused(saved):
    """A plain vcrpy loads 17% of such files without a word."""
    data = saved(some.session(2))
    for end in range(len(data)):
        with pytest.raises(CassetteError):
            loads(data[:end], "x.yaml")


@settings(deadline=None)
@given(some.documents)
def test_a_checkout_with_the_line_ends_of_windows_changes_nothing(whole):
    assert loads(b"\xef\xbb\xbf" + dumps(whole).replace(b"\n", b"\r\n"), "x.yaml") == whole


def test_forty_turns_take_little_more_than_their_last_request_and_the_answers():
    """Plain cassettes of agents are tens of megabytes: each request holds the whole history again."""
    whole = some.session(40, result="A long tool result. " * 100)
    attempts = whole.recording.attempts
    once = len(attempts[-1].request.body) + sum(len(attempt.response.body) for attempt in attempts)
    assert len(dumps(whole)) < 1.5 * once


def test_a_cut_file_says_that_its_end_is_missing_and_what_to_do():
    data = dumps(some.session(2))
    with pytest.raises(Truncated, match=r"^x\.yaml: the end is missing .*; restore the file or record it again$"):
        loads(data[: len(data) // 2], "x.yaml")


def test_a_cut_file_shows_the_last_of_what_is_there():
    with pytest.raises(Truncated, match=r"it stops after 'interactions:'\)"):
        loads(b"interactions:\n" + b"\n" * 60, "x.yaml")


@pytest.mark.parametrize(("data", "size"), [(b"", "0"), (b"\xef\xbb\xbf", "3"), (b" \r\n\n" * 1000, "4,000")])
def test_a_file_with_nothing_in_it_says_so_and_what_a_cassette_has_and_what_to_do(data, size):
    with pytest.raises(Truncated) as caught:
        loads(data, "x.yaml")
    assert str(caught.value) == (
        f"x.yaml: nothing is in it ({size} bytes of white space); a cassette closes with the number of its "
        "interactions. Restore the file, or record it again with --latency-mode=record"
    )


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_read_or_refused_by_name(data):
    whole = bytearray(dumps(some.session(2)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        loads(bytes(whole), "x.yaml")
    except CassetteError as error:
        assert str(error).startswith("x.yaml")  # noqa: PT017 -- reading it is as good


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_by_name(data):
    with pytest.raises(CassetteError, match=r"^x\.yaml"):
        loads(data, "x.yaml")


def test_a_newer_version_is_refused_and_says_which():
    data = dumps(some.session(1)).replace(b"agentlatency:\n  version: 1", b"agentlatency:\n  version: 7")
    with pytest.raises(NewerVersion, match="version 7 of the cassette format, this plugin reads up to 1"):
        loads(data, "x.yaml")


def test_a_newer_version_is_known_from_the_exchanges_when_vcrpy_dropped_the_rest():
    data = resaved_by_vcrpy(dumps(some.session(1))).replace(b"      version: 1\n", b"      version: 7\n")
    with pytest.raises(NewerVersion, match="version 7"):
        loads(data, "x.yaml")


def test_an_older_version_is_upgraded_step_by_step_in_memory(monkeypatch):
    def renamed(tree):
        return {**tree, "interactions": tree["exchanges"]}

    monkeypatch.setitem(document.UPGRADES, 0, renamed)
    data = dumps(Document(Recording(facts=Facts(test="t"))))
    old = data.replace(b"version: 1\ninteractions", b"version: 1\nexchanges").replace(b"  version: 1", b"  version: 0")
    back = loads(old, "x.yaml")
    assert (back.version, back.recording.facts.test) == (0, "t")


def test_every_version_before_the_current_has_its_upgrade():
    assert sorted(document.UPGRADES) == sorted(document.VERSIONS)[:-1]
    assert max(document.VERSIONS) == document.CURRENT


def test_a_rerecording_shows_the_new_message_and_nothing_of_the_history():
    """A changed tool result at turn 3 of 12 is one line in the diff, beside times and checksums."""
    old = some.session(12)
    changed = [
        replace(a, request=replace(a.request, body=a.request.body.replace(b"town 3", b"London")))
        for a in old.recording.attempts
    ]
    new = replace(old, recording=replace(old.recording, attempts=tuple(changed)))
    pairs = zip(dumps(old).decode().splitlines(), dumps(new).decode().splitlines(), strict=True)
    news = [(before, after) for before, after in pairs if before != after and "crc" not in before]
    assert len(news) == 1
    assert ("town 3" in news[0][0], "London" in news[0][1]) == (True, True)


def test_the_file_grows_by_what_is_new():
    sizes = [len(dumps(some.session(turns))) for turns in (20, 40, 80)]
    assert (sizes[2] - sizes[1]) / (sizes[1] - sizes[0]) == pytest.approx(2, rel=0.05)


def test_interleaved_lanes_find_their_own_base():
    one = [some.body_of(some.history(turn), system="A" * 900) for turn in range(1, 9)]
    two = [some.body_of(some.history(turn), system="B" * 900) for turn in range(1, 9)]
    attempts = tuple(
        some.attempt(body, at) for at, body in enumerate(body for pair in zip(one, two, strict=True) for body in pair)
    )
    written = dumps(Document(Recording(attempts)))
    assert written.count(b"delta of -2") >= 12
    assert loads(written, "x").recording.attempts == attempts


def test_an_interaction_removed_by_hand_is_noticed():
    data = dumps(some.session(5)).decode()
    interactions = re.split(r"(?m)^(?=- request:)", data)
    del interactions[3]
    gone = "".join(interactions).replace("  end: 6", "  end: 5").encode()
    with pytest.raises(Unreadable, match=r"interactions\[2\].*rebuilds to crc [0-9a-f]{8}, recorded was 'crc"):
        loads(gone, "x.yaml")


def test_a_removed_interaction_and_its_count_left_is_noticed_too():
    data = dumps(some.session(1)).replace(b"  end: 2", b"  end: 3")
    with pytest.raises(Unreadable, match="3 interactions were written, 2 are there"):
        loads(data, "x.yaml")


def test_a_response_edited_by_hand_no_longer_fits_its_chunks_and_says_so():
    data = dumps(some.session(1)).replace("Grüße".encode(), b"Hi")
    with pytest.raises(Unreadable, match=r"sizes: chunks of \d+ bytes found for a body of \d+: the body was edited"):
        loads(data, "x.yaml")


def test_without_its_sizes_an_edited_response_is_one_chunk():
    data = re.sub(rb"      sizes: .*\n", b"", dumps(some.session(1)).replace("Grüße".encode(), b"Hi"))
    (attempt,) = loads(data, "x.yaml").recording.attempts
    assert len(attempt.response.chunks) == 1
    assert b"Hi" in attempt.response.body


@pytest.mark.parametrize("distance", [b"-2", b"-0", b"-99"])
def test_a_base_that_is_not_there_is_an_error_with_its_place(distance):
    data = dumps(some.session(2)).replace(b"delta of -1", b"delta of " + distance)
    with pytest.raises(Unreadable, match=r"interactions\[1\]\.request\.body"):
        loads(data, "x.yaml")


@pytest.mark.parametrize(
    ("found", "edited"),
    [
        (b"    method: GET", b"    method: [GET]"),
        (b"      code: 200\n", b"      code: ok\n"),
        (b"    body: null", b"    body: 5"),
    ],
)
def test_other_http_edited_out_of_vcrpys_form_is_told_with_its_place(found, edited):
    head, _, other = dumps(some.session(1)).rpartition(b"- request:")
    with pytest.raises(Unreadable, match=r"interactions\[1\]\.re"):
        loads(head + b"- request:" + other.replace(found, edited), "x.yaml")


def test_a_file_over_the_limit_is_refused_unparsed():
    with pytest.raises(Refused, match="bytes, at most 1,000 are read"):
        loads(b"\0" * 1001, "x.yaml", Limits(file=1000))


def test_a_series_bomb_is_refused():
    data = re.sub(rb"arrived: .*", b"arrived: 1*99999999999", dumps(some.session(1)))
    with pytest.raises(Unreadable, match="more than 2,000,000 numbers"):
        loads(data, "x.yaml")


def test_headers_are_stored_in_lower_case_and_in_order_of_name():
    """Two recordings of one session differ in times and ids, not in the order in which a server sends its headers."""
    (attempt,) = some.session(1).recording.attempts
    mixed = replace(
        attempt.response, headers=(("X-B", "2"), ("Content-Type", "text/event-stream"), ("x-a", "1"), ("X-b", "3"))
    )
    written = dumps(Document(Recording((replace(attempt, response=mixed),))))
    (back,) = loads(written, "x").recording.attempts
    assert back.response.headers == (("content-type", "text/event-stream"), ("x-a", "1"), ("x-b", "2"), ("x-b", "3"))


def test_header_names_that_an_edit_put_in_upper_case_are_read_as_they_are_written():
    text = dumps(some.session(1)).replace(b"content-type:", b"Content-Type:")
    found = loads(text, "x")
    assert loads(dumps(found), "x").recording == found.recording


def test_every_number_is_a_nanosecond_and_every_series_one_line():
    text = dumps(some.session(1)).decode()
    ours = yaml.safe_load(text)["interactions"][0]["response"]["agentlatency"]
    assert ours["arrived"] == "20000000 20000123 19999877"
    assert ours["wait"] == "9000000*3"
    assert (ours["coding"], ours["outcome"]) == ("gzip", "complete")

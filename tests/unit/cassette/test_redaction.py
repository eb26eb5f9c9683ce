"""Users' redaction hooks: run once on the way in, over model exchanges; what a replay needs can't be taken away."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.document import Document
from pytest_agentlatency.cassette.redaction import Redaction, RedactionError, rechunked
from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.vetting import vet
from pytest_agentlatency.model.recording import Attempt, Recording, Request, Response
from pytest_agentlatency.testing.messages_api import event

URL = "https://api.example.com/v1/messages?team=blue"
USAGE = {"input_tokens": 9, "output_tokens": 2}
EVENTS = (
    event("message_start", {"message": {"id": "m", "role": "assistant", "content": [], "usage": USAGE}}),
    event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "call 555-0100 "}}),
    event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "today"}}),
    event("content_block_stop", {"index": 0}),
    event("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
    event("message_stop", {}),
)


def attempt(text="my number is 555-0100", **changes):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "user_email": "a@b.example", **changes}
    request = Request("POST", URL, (("content-type", "application/json"),), json.dumps(body).encode())
    return Attempt(1, request, Response(200, (("content-type", "text/event-stream"),), EVENTS))


def redacted(one, **config):
    return Redaction(config).recording(Recording((one,))).attempts[0]


def scrub(response):
    body = response["body"]["string"].replace(b"555-0100", b"[phone]")
    return {**response, "body": {"string": body}}


def test_query_parameters_are_filtered():
    assert redacted(attempt(), filter_query_parameters=["team"]).request.url == "https://api.example.com/v1/messages"


def test_fields_of_the_posted_json_are_filtered():
    found = redacted(attempt(), filter_post_data_parameters=[("user_email", "hidden")])
    assert json.loads(found.request.body)["user_email"] == "hidden"


def test_headers_are_filtered():
    assert redacted(attempt(), filter_headers=["content-type"]).request.headers == ()


def test_a_request_hook_changes_what_is_stored_and_not_what_was_given_to_it():
    def hook(request):
        request.body = request.body.replace(b"555-0100", b"[phone]")
        return request

    one = attempt()
    found = redacted(one, before_record_request=hook)
    assert b"[phone]" in found.request.body
    assert b"555-0100" in one.request.body


def test_a_header_that_a_hook_adds_is_not_stored_unless_it_may_be():
    def hook(request):
        request.headers["authorization"] = "Bearer abc"
        return request

    assert "authorization" not in dict(redacted(attempt(), before_record_request=hook).request.headers)


def test_a_response_hook_keeps_the_chunks_at_their_events():
    found = redacted(attempt(), before_record_response=scrub)
    assert found.response.chunks == tuple(each.replace(b"555-0100", b"[phone]") for each in EVENTS)


def test_no_hook_changes_nothing():
    recording = Recording((attempt(),))
    assert Redaction().recording(recording) is recording
    assert Redaction({"before_record_response": lambda response: response}).recording(recording) == recording


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ({"before_record_request": lambda _: None}, "drops the request of model call 1"),
        ({"before_record_response": lambda _: None}, "drops the response of model call 1"),
        ({"filter_post_data_parameters": ["messages"]}, "what is none any more"),
        (
            {"before_record_response": lambda response: {**response, "body": {"string": b"[gone]"}}},
            "of its end, its tokens or its tool calls",
        ),
    ],
)
def test_what_a_replay_needs_is_not_taken_away(hook, said):
    with pytest.raises(RedactionError, match=said):
        redacted(attempt(), **hook)


def test_a_hook_that_gives_something_else_at_each_run_is_refused_before_anything_is_written():
    """Field note A31: such a recording could never be replayed."""
    numbers = count()

    def hook(request):
        request.body = request.body.replace(b"555-0100", b"phone %d" % next(numbers))
        return request

    one, redaction = attempt(), Redaction({"before_record_request": hook})
    document = Document(redaction.recording(Recording((one,))))
    asked = [(1, redaction.request(one.request, 1))]
    assert "messages[0].content" in vet(document, Learned(), asked)
    assert "hook of vcr_config" in vet(document, Learned(), asked)


def test_a_hook_that_gives_the_same_at_each_run_passes():
    redaction = Redaction({"filter_query_parameters": ["team"], "before_record_response": scrub})
    one = attempt()
    document = Document(redaction.recording(Recording((one,))))
    assert vet(document, Learned(), [(1, redaction.request(one.request, 1))]) == ""


CHUNKS = st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=8)


@given(CHUNKS, st.binary(max_size=40))
def test_any_new_body_is_cut_into_as_many_chunks(chunks, body):
    cut = rechunked(chunks, body)
    assert b"".join(cut) == body
    assert len(cut) == len(chunks)


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=6), st.integers(1, 9))
def test_boundaries_of_events_stay_boundaries_of_events(texts, length):
    old = [f"data: {text}\n\n".encode() for text in texts]
    new = [each.replace(b"a", b"x" * length) for each in old]
    assert rechunked(old, b"".join(new)) == tuple(new)


EVENTLESS = st.lists(st.text("abc", min_size=1, max_size=6).map(str.encode), min_size=1, max_size=8)


@given(EVENTLESS, st.integers(0, 7), st.text("abc", max_size=9).map(str.encode))
def test_in_a_body_without_events_chunks_before_a_change_stay_what_they_were(chunks, at, replacement):
    at %= len(chunks)
    cut = rechunked(chunks, b"".join([*chunks[:at], replacement, *chunks[at + 1 :]]))
    assert cut[:at] == tuple(chunks[:at])

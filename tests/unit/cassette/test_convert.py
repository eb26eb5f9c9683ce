from dataclasses import replace

import vcr.serialize
import yaml
from hypothesis import given, settings
from vcr.serializers import yamlserializer

from pytest_agentlatency.cassette.convert import from_vcr, to_vcr
from pytest_agentlatency.model.recording import Recording
from tests.support import documents as some


@settings(deadline=None)
@given(some.documents)
def test_any_document_survives_the_way_to_vcrpy_and_back(whole):
    back = from_vcr(to_vcr(whole))
    expected = whole if whole.recording.attempts else replace(whole, recording=Recording())
    if not whole.recording.calls and back.recording.calls != ():
        expected = replace(expected, recording=replace(expected.recording, calls=back.recording.calls))
    assert back == expected


@settings(deadline=None)
@given(some.documents)
def test_vcrpy_sees_every_request_body_in_full(whole):
    requests, _ = vcr.serialize.deserialize(to_vcr(whole).decode(), yamlserializer)[:2]
    assert [request.body for request in requests][: len(whole.recording.attempts)] == [
        attempt.request.body for attempt in whole.recording.attempts
    ]


def test_a_file_that_vcrpy_has_saved_anew_still_holds_everything():
    whole = some.session(3)
    requests, responses = vcr.serialize.deserialize(to_vcr(whole).decode(), yamlserializer)[:2]
    saved = vcr.serialize.serialize({"requests": requests, "responses": responses}, yamlserializer)
    assert from_vcr(saved.encode()) == whole


def test_the_file_has_the_keys_of_vcrpy_and_no_other_at_the_top():
    """Top-level metadata makes pytest-recording 0.14.1 fail on load."""
    assert list(yaml.safe_load(to_vcr(some.session(1)))) == ["interactions", "version"]

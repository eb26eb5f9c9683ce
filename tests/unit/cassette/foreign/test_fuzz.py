"""Whatever the bytes are, the reader gives a recording or says what is wrong with them. It never crashes.

AGENTLATENCY_FUZZ=20000 tries that many inputs of each kind; the default is sized for every run of the suite.
"""

import gzip
import json
import os
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette.errors import CassetteError
from pytest_agentlatency.cassette.foreign import Foreign, read
from pytest_agentlatency.cassette.limits import MIB, Limits
from tests.support import foreign_recordings as made

SMALL = Limits(file=MIB, body=MIB)
SAMPLES = {name: write() for name, write in (made.EVERY | made.ALONE).items()}
FUZZ = settings(
    max_examples=int(os.environ.get("AGENTLATENCY_FUZZ", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CUTS = st.tuples(st.integers(0, 1 << 14), st.integers(0, 40), st.binary(max_size=12))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
    | st.sampled_from(["POST", made.URL, "**REDACTED**", "base64", "gzip", "!binary", 200, -1, "1m2.5s", 1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def tried(data: bytes) -> None:
    try:
        found = read(data, SMALL)
    except CassetteError as error:
        assert str(error)  # noqa: PT017 - the other outcome is a recording
        return
    assert isinstance(found, Foreign)
    assert {attempt.call for attempt in found.recording.attempts} == {call.id for call in found.recording.calls}
    for warning in found.warnings:
        assert str(warning)


@FUZZ
@given(st.sampled_from(sorted(SAMPLES)), st.lists(CUTS, min_size=1, max_size=6))
def test_a_recording_with_bytes_replaced_inserted_or_lost(name, cuts):
    data = SAMPLES[name]
    for place, length, new in cuts:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    tried(data)


@FUZZ
@given(st.sampled_from(sorted(SAMPLES)), st.floats(0, 1))
def test_a_recording_cut_off_anywhere(name, part):
    data = SAMPLES[name]
    tried(data[: int(part * len(data))])


@FUZZ
@given(st.sampled_from(["vcrpy json", "single exchange", "har", "go-vcr", "ruby and R vcr"]), st.data())
def test_a_recording_with_any_value_in_any_place(name, data):
    tree = yaml.safe_load(SAMPLES[name].replace(b"!binary", b"!!binary"))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list(places(tree))))
        holder[key] = data.draw(VALUES)
    tried(yaml.dump(tree, allow_unicode=True).encode("utf-8", "replace"))


@FUZZ
@given(VALUES)
def test_any_json_at_all(value):
    tried(json.dumps({"interactions": value}, default=str).encode())
    tried(json.dumps({"log": {"entries": value}}, default=str).encode())
    tried(json.dumps({"http_interactions": value}, default=str).encode())


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes_at_all(data):
    tried(data)
    tried(gzip.compress(data))


def places(tree: Any) -> Any:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_themselves_are_read(name):
    assert read(SAMPLES[name], SMALL).recording.calls

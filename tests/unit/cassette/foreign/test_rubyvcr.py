"""Ruby's and R's vcr: a date with seconds dates the recording and times nothing."""

import pytest

from pytest_agentlatency.cassette.foreign import read
from tests.support import foreign_recordings as made


def test_the_first_date_is_the_recordings_date():
    found = read(made.ruby_vcr())

    assert found.recording.facts.recorded == "2026-08-19T12:00:00+00:00"
    assert found.to_headers == {}


@pytest.mark.parametrize("date", ["", "soon", "Wed, 99 Aug 2026 12:00:00 GMT", "12345678901234567890", "[1]", "3"])
def test_a_date_that_is_none_is_left_out(date):
    odd = made.ruby_vcr().replace(b"Wed, 19 Aug 2026 12:00:00 GMT", date.encode() or b"''")

    assert read(odd).recording.facts.recorded == "2026-08-19T12:00:04+00:00"

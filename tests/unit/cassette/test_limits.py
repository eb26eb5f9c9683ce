import pytest

from pytest_agentlatency.cassette import limits
from pytest_agentlatency.cassette.errors import Refused


def test_the_limit_itself_passes():
    limits.check(10, 10, "bytes", "x.yaml")


def test_over_it_the_message_names_file_limit_and_way_out():
    with pytest.raises(Refused, match=r"^x\.yaml: 1,001 bytes, at most 1,000 are read; raise the limit"):
        limits.check(1001, 1000, "bytes", "x.yaml")

"""A user's suite for each test here, in which other plugins stand beside ours."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.suite import Suite, warm_up


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    warm_up()


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    with ExitStack() as stack:
        yield Suite(pytester, monkeypatch, stack)

"""Checks that the tests of the fake API server leave nothing behind."""

from collections.abc import Iterator

import pytest

from tests import leaks


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    with leaks.checked():
        yield

"""A runner of its own for each test, that leaves nothing."""

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests import leaks
from tests.runner.mate import Mate


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    with leaks.checked():
        yield


@pytest.fixture
def mate(tmp_path: pathlib.Path) -> Iterator[Mate]:
    one = Mate(tmp_path)
    one.greet()
    yield one
    one.close()
    assert not one.folder.exists()


@pytest.fixture
def lives() -> Callable[[int], bool]:
    def lives(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"

    return lives

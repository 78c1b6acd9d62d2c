"""A runner for each test."""

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests.runner.fake_agent import FakeAgent


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path) as agent:
        yield agent
    assert not agent.folder.exists()


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    def is_running(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"

    return is_running

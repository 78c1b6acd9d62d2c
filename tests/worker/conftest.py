"""A real executor, and the tasks that the tests give it."""

import pathlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.agent_harness import AgentHarness, open_harness
from workron.core.ids import ClaimId
from workron_worker.executor import CommandTask
from workron_worker.runner_client import RunnerExecutor

Make = Callable[..., CommandTask]


@pytest.fixture
def boot() -> uuid.UUID:
    return uuid.uuid4()


@pytest.fixture
def executor(
    boot: uuid.UUID, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunnerExecutor]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot)
    yield executor
    executor.close()
    assert list(tmp_path.glob("workron-*")) == []


@pytest.fixture
async def harness(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AgentHarness]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with open_harness() as harness:
        yield harness


@pytest.fixture
def make() -> Make:
    def make(command: str | Sequence[str], **fields: Any) -> CommandTask:
        environment = fields.pop("environment", {})
        return CommandTask(
            ClaimId(uuid.uuid4()), command, environment, **{"output_limit_bytes": 1000} | fields
        )

    return make


@pytest.fixture
def lives() -> Callable[[int], bool]:
    def lives(pid: int) -> bool:
        stat = pathlib.Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"

    return lives

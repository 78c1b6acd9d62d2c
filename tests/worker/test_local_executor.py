"""What only the executor of threads has to get right."""

import pathlib
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from workron_worker.executor import Done, StartError, Task
from workron_worker.local_executor import LocalExecutor

Make = Callable[..., Task]


def _ignore(data: bytes, done: Done) -> None:
    done(len(data))


@pytest.fixture
def local(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecutor]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    executor = LocalExecutor(slots=4, grace=timedelta(seconds=0.1), boot=uuid.uuid4())
    yield executor
    executor.close()


async def test_start_that_this_machine_refuses_is_no_fault_of_the_job(
    local: LocalExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refuse)
    with pytest.raises(StartError, match="temporarily unavailable"):
        await local.run(make("true"), _ignore)


async def test_commands_are_run_where_the_system_tells_of_no_exit_by_descriptor(
    local: LocalExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.pidfd_open")
    ended = await local.run(make("sleep 1000 & echo done; exit 4"), _ignore)
    assert (ended.output, ended.exit_code) == (b"done\n", 4)

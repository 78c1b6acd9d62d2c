"""An executor whose runner isolates its commands and watches their memory."""

import asyncio
import os
import pathlib
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from tests.runner import cgroup, spare_uids
from tests.worker.output_collector import OutputCollector
from workron.core.states import Reason
from workron_runner import uids
from workron_worker.executor import CommandTask, RunnerLostError, StartError
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import ChildRunner, ChildRunners

Make = Callable[..., CommandTask]
_LIMIT = 256 * 2**20
_ONLY_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may start commands with another uid"
)


@pytest.fixture
def isolated(boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunnerExecutor]:
    with spare_uids.traversable_folder() as folder:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        runners = ChildRunners(uids=spare_uids.UIDS, processes=50)
        executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot, runners=runners)
        yield executor
        executor.close()
        assert list(folder.iterdir()) == []


@pytest.fixture
def limited(
    boot: uuid.UUID, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunnerExecutor]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with cgroup.limited(_LIMIT) as folder:
        enter = ("sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh")
        runners = ChildRunners(command=(*enter, *ChildRunners().command))
        executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot, runners=runners)
        yield executor
        executor.close()


def test_options_become_arguments_of_the_runner() -> None:
    options = ChildRunners(is_isolating=True, uids=uids.UidRange(5, 9), processes=7)
    assert options.arguments() == ["--isolate", "--uids", "5-9", "--processes", "7"]
    assert ChildRunners().arguments() == []


@_ONLY_ROOT
async def test_command_has_its_own_uid_and_a_process_limit(
    isolated: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(isolated, make("id -u; ulimit -a | grep process"), None)
    uid, limit = ended.output.decode().splitlines()
    assert spare_uids.UIDS.first < int(uid) <= spare_uids.UIDS.last
    assert limit.split()[-1] == "50"


@_ONLY_ROOT
async def test_processes_of_the_uids_are_dead_when_the_loss_of_their_runner_is_reported(
    isolated: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    collector = OutputCollector()
    hidden = "cd / && exec env -i sh -c 'id -u; echo $$; exec sleep 1000'"
    run = asyncio.ensure_future(run_task(isolated, make(hidden), collector))
    while len(collector.received.split()) < 2:
        await collector.wait()
    uid, pid = map(int, collector.received.split())
    assert uids.is_used(uid)
    assert lives(pid)
    assert isinstance(isolated._runner, ChildRunner)
    os.kill(isolated._runner.pid, signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert not lives(pid)


def test_runner_does_not_start_when_its_options_are_refused(
    boot: uuid.UUID, capfd: pytest.CaptureFixture[str]
) -> None:
    runners = ChildRunners(processes=5)
    with pytest.raises(StartError, match="its standard error says why"):
        RunnerExecutor(grace=timedelta(), boot=boot, runners=runners)
    assert "--processes needs" in capfd.readouterr().err


async def test_only_the_command_fails_that_exceeds_the_memory_limit(
    limited: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    collectors = [OutputCollector() for _ in range(3)]
    wait = f"echo on; until test -e {tmp_path}/go; do sleep 0.05; done"
    siblings = [
        asyncio.ensure_future(run_task(limited, make(wait), collector)) for collector in collectors
    ]
    for collector in collectors:
        await collector.wait()
    ended = await run_task(limited, make([sys.executable, "-c", cgroup.HOG]), None)
    assert (ended.reason, ended.exit_code) == (Reason.OUT_OF_MEMORY, 137)
    assert ended.message is not None
    assert "near the memory limit of 256 MiB" in ended.message
    (tmp_path / "go").touch()
    assert [(await one).reason for one in siblings] == [None, None, None]

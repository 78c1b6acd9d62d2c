"""An executor whose runner keeps its commands apart, and watches their memory."""

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
from tests.worker.ear import Ear
from workron.core.states import Reason
from workron_runner import protocol, uids
from workron_worker import outcome, runner_connection
from workron_worker.executor import CommandTask, RunnerLostError, StartError
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import ChildRunner, ChildRunners

Make = Callable[..., CommandTask]
_LIMIT = 256 * 2**20
_ONLY_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may start commands with another uid"
)


@pytest.fixture
def apart(boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunnerExecutor]:
    with spare_uids.traversable_folder() as folder:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        runners = ChildRunners(uids=spare_uids.UIDS, processes=50)
        executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot, runners=runners)
        yield executor
        executor.close()
        assert list(folder.iterdir()) == []


@pytest.fixture
def narrow(
    boot: uuid.UUID, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunnerExecutor]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with cgroup.limited(_LIMIT) as folder:
        enter = ("sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh")
        monkeypatch.setattr(
            runner_connection, "_RUNNER_COMMAND", (*enter, *runner_connection._RUNNER_COMMAND)
        )
        executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot)
        yield executor
        executor.close()


def test_options_are_written_as_a_runner_reads_them() -> None:
    options = ChildRunners(is_isolating=True, uids=uids.UidRange(5, 9), processes=7)
    assert options.arguments() == ["--isolate", "--uids", "5-9", "--processes", "7"]
    assert ChildRunners().arguments() == []


@_ONLY_ROOT
async def test_commands_have_uids_of_their_own_and_a_limit(
    apart: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(apart, make("id -u; ulimit -a | grep process"), None)
    uid, limit = ended.output.decode().splitlines()
    assert spare_uids.UIDS.first < int(uid) <= spare_uids.UIDS.last
    assert limit.split()[-1] == "50"


@_ONLY_ROOT
async def test_lost_runner_is_told_of_when_nothing_of_its_uids_is_left(
    apart: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    ear = Ear()
    hidden = "cd / && exec env -i sh -c 'id -u; echo $$; exec sleep 1000'"
    run = asyncio.ensure_future(run_task(apart, make(hidden), ear))
    while len(ear.heard.split()) < 2:
        await ear.wait()
    uid, pid = map(int, ear.heard.split())
    assert uids.is_used(uid)
    assert lives(pid)
    assert isinstance(apart._runner, ChildRunner)
    os.kill(apart._runner.pid, signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert not lives(pid)


def test_runner_that_may_not_do_as_it_is_told_does_not_start(
    boot: uuid.UUID, capfd: pytest.CaptureFixture[str]
) -> None:
    runners = ChildRunners(processes=5)
    with pytest.raises(StartError, match="its standard error says why"):
        RunnerExecutor(grace=timedelta(), boot=boot, runners=runners)
    assert "--processes needs" in capfd.readouterr().err


async def test_command_that_takes_all_memory_fails_for_that_and_the_others_do_not(
    narrow: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    ears = [Ear() for _ in range(3)]
    wait = f"echo on; until test -e {tmp_path}/go; do sleep 0.05; done"
    siblings = [asyncio.ensure_future(run_task(narrow, make(wait), ear)) for ear in ears]
    for ear in ears:
        await ear.wait()
    ended = await run_task(narrow, make([sys.executable, "-c", cgroup.HOG]), None)
    assert (ended.reason, ended.exit_code) == (Reason.OUT_OF_MEMORY, 137)
    assert ended.message is not None
    assert "near the memory limit of 256 MiB" in ended.message
    (tmp_path / "go").touch()
    assert [(await one).reason for one in siblings] == [None, None, None]


def test_message_names_limit_and_peak_when_memory_ran_short(make: Make) -> None:
    message = protocol.Ended(
        "", "memory", None, 9, 0.0, 0.0, 300 * 2**20, 0, None, limit_bytes=512 * 2**20
    )
    ended = outcome.judge_end(make("true"), message, b"out", b"", is_killed=False)
    assert ended.message == (
        "the command was killed near the memory limit of 512 MiB that all commands of its "
        "worker share; it used up to 300 MiB"
    )
    assert (ended.reason, ended.exit_code, ended.output) == (Reason.OUT_OF_MEMORY, 137, b"out")

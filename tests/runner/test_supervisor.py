"""The supervisor neither kills too much nor twice."""

import contextlib
import os
import pathlib
import resource
import select
import subprocess
import uuid
from collections.abc import Iterator
from concurrent import futures

import pytest

from workron_runner import process_reaper, protocol
from workron_runner.attempt import AttemptProcess, EndCause
from workron_runner.supervisor import Supervisor
from workron_runner.workspace import Workspace


@pytest.fixture(autouse=True)
def visible_pids(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the pids that the supervisor sees.

    It kills every unknown child of the first thread, and other tests have such children too.
    """
    pids = set[int]()
    monkeypatch.setattr(process_reaper, "list_pids", lambda: iter(pids))
    return pids


@pytest.fixture
def launcher() -> Iterator[futures.Executor]:
    """Start commands on another thread: children of the first one are leftover processes."""
    with futures.ThreadPoolExecutor(1) as launcher:
        yield launcher


def test_kill_has_no_effect_when_the_command_has_exited(
    tmp_path: pathlib.Path, launcher: futures.Executor
) -> None:
    attempt = _started(launcher, tmp_path, "true")
    supervisor = Supervisor()
    supervisor.add(attempt, None)
    select.select([attempt.pidfd], [], [])
    assert supervisor.command_exited(attempt)
    supervisor.kill(attempt, 0)
    assert not attempt.is_terminated
    assert attempt.cause is EndCause.EXIT
    assert attempt.ended(0, None).exit_code == 0
    attempt.close()


def test_only_one_attempt_at_a_time_is_killed_when_memory_runs_short(
    tmp_path: pathlib.Path, launcher: futures.Executor
) -> None:
    attempts = [_started(launcher, tmp_path, "sleep", "1000") for _ in range(3)]
    supervisor = Supervisor(None, _FullMemory())  # type: ignore[arg-type]
    for one in attempts:
        supervisor.add(one, None)
    for count in (1, 2, 3):
        supervisor.check_timers()
        supervisor.check_timers()
        killed = [one for one in attempts if one.cause is EndCause.MEMORY]
        assert len(killed) == count
        for one in killed:
            _finish(supervisor, one)
    for one in attempts:
        one.close()


@pytest.mark.parametrize("is_starting", [True, False])
def test_leftover_process_is_spared_only_when_its_command_is_starting(
    tmp_path: pathlib.Path, launcher: futures.Executor, visible_pids: set[int], *, is_starting: bool
) -> None:
    # A child of the first thread, as leftover processes are.
    with subprocess.Popen(["/bin/sleep", "1000"]) as leftover:
        visible_pids.add(leftover.pid)
        resource.prlimit(leftover.pid, process_reaper._RLIMIT_LOCKS, (77, 77))
        supervisor = Supervisor(starting_tags={77} if is_starting else set())
        attempt = _started(launcher, tmp_path, "true")
        supervisor.add(attempt, None)
        _finish(supervisor, attempt)
        attempt.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            leftover.wait(0.2 if is_starting else 20)
        assert (leftover.returncode is None) is is_starting
        leftover.kill()


class _FullMemory:
    """A MemoryMonitor whose headroom is always too small."""

    def check(self) -> int:
        return 1000

    def limit_of_kill(self, code: int) -> None:
        del code


def _finish(supervisor: Supervisor, attempt: AttemptProcess) -> None:
    if supervisor.get(attempt.claim):
        select.select([attempt.pidfd], [], [])
        assert supervisor.command_exited(attempt)
        assert list(supervisor.take_ended()) == [attempt]


def _started(launcher: futures.Executor, folder: pathlib.Path, *argv: str) -> AttemptProcess:
    request = protocol.Start(
        claim=uuid.uuid4().hex, argv=list(argv), environment={}, inputs="{}", output_limit_bytes=0,
        window_bytes=0, workdir=None, timeout=None, grace=0, outlives_deadline=False,
    )  # fmt: skip
    reader, writer = os.pipe()
    os.close(writer)
    pid = launcher.submit(os.posix_spawnp, argv[0], argv, os.environ, setsid=True).result()
    # The tag only names the owner of leftover processes, and here are none.
    return AttemptProcess(request, Workspace(folder, folder, folder), pid, -pid, reader)

"""What a supervisor must not do, though it could."""

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
def own(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes of the test, and all that a supervisor gets to see.

    A runner ends whatever child of its first thread it does not know; other tests have some, too.
    """
    pids = set[int]()
    monkeypatch.setattr(process_reaper, "list_pids", lambda: iter(pids))
    return pids


@pytest.fixture
def hand() -> Iterator[futures.Executor]:
    """Give another thread, whose children are commands; those of the first one are strays."""
    with futures.ThreadPoolExecutor(1) as hand:
        yield hand


def test_kill_after_the_end_neither_signals_nor_changes_what_is_told(
    tmp_path: pathlib.Path, hand: futures.Executor
) -> None:
    attempt = _started(hand, tmp_path, "true")
    supervisor = Supervisor()
    supervisor.add(attempt, None)
    select.select([attempt.pidfd], [], [])
    assert supervisor.command_exited(attempt)
    supervisor.kill(attempt, 0)
    assert not attempt.is_terminated
    assert attempt.cause is EndCause.EXIT
    assert attempt.ended(0, None).exit_code == 0
    attempt.close()


def test_only_one_is_killed_for_memory_until_it_is_gone(
    tmp_path: pathlib.Path, hand: futures.Executor
) -> None:
    attempts = [_started(hand, tmp_path, "sleep", "1000") for _ in range(3)]
    supervisor = Supervisor(None, _Short())  # type: ignore[arg-type]
    for one in attempts:
        supervisor.add(one, None)
    for count in (1, 2, 3):
        supervisor.check_timers()
        supervisor.check_timers()
        killed = [one for one in attempts if one.cause is EndCause.MEMORY]
        assert len(killed) == count
        for one in killed:
            _see_off(supervisor, one)
    for one in attempts:
        one.close()


@pytest.mark.parametrize("is_coming", [True, False])
def test_orphan_is_let_be_only_if_it_is_of_a_command_that_has_begun(
    tmp_path: pathlib.Path, hand: futures.Executor, own: set[int], *, is_coming: bool
) -> None:
    # A child of the first thread, as orphans are.
    with subprocess.Popen(["/bin/sleep", "1000"]) as orphan:
        own.add(orphan.pid)
        resource.prlimit(orphan.pid, process_reaper._RLIMIT_LOCKS, (77, 77))
        supervisor = Supervisor(starting_tags={77} if is_coming else set())
        attempt = _started(hand, tmp_path, "true")
        supervisor.add(attempt, None)
        _see_off(supervisor, attempt)
        attempt.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            orphan.wait(0.2 if is_coming else 20)
        assert (orphan.returncode is None) is is_coming
        orphan.kill()


class _Short:
    """CgroupMemory that is always short."""

    def check(self) -> int:
        return 1000

    def limit_of_kill(self, code: int) -> None:
        del code


def _see_off(supervisor: Supervisor, attempt: AttemptProcess) -> None:
    if supervisor.get(attempt.claim):
        select.select([attempt.pidfd], [], [])
        assert supervisor.command_exited(attempt)
        assert list(supervisor.take_ended()) == [attempt]


def _started(hand: futures.Executor, folder: pathlib.Path, *argv: str) -> AttemptProcess:
    order = protocol.Start(
        claim=uuid.uuid4().hex, argv=list(argv), environment={}, inputs="{}", output_limit_bytes=0,
        window_bytes=0, workdir=None, timeout=None, grace=0, outlives_deadline=False,
    )  # fmt: skip
    reader, writer = os.pipe()
    os.close(writer)
    pid = hand.submit(os.posix_spawnp, argv[0], argv, os.environ, setsid=True).result()
    # The mark says only whose an orphan is, and here are none.
    return AttemptProcess(order, Workspace(folder, folder, folder), pid, -pid, reader)

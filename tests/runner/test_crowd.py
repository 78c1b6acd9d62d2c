"""What a crowd must not do, though it could."""

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
from workron_runner.attempt import Attempt, Because
from workron_runner.supervisor import Supervisor
from workron_runner.workspace import Workspace


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes of the test, and all that a crowd gets to see.

    A runner ends whatever child of its first thread it does not know; other tests have some, too.
    """
    pids = set[int]()
    monkeypatch.setattr(process_reaper, "pids", lambda: iter(pids))
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
    crowd = Supervisor()
    crowd.enter(attempt, None)
    select.select([attempt.exit], [], [])
    assert crowd.exited(attempt)
    crowd.kill(attempt, 0)
    assert not attempt.is_told
    assert attempt.because is Because.ITSELF
    assert attempt.ended(None).exit_code == 0
    attempt.close()


def test_only_one_is_killed_for_memory_until_it_is_gone(
    tmp_path: pathlib.Path, hand: futures.Executor
) -> None:
    attempts = [_started(hand, tmp_path, "sleep", "1000") for _ in range(3)]
    crowd = Supervisor(None, _Short())  # type: ignore[arg-type]
    for one in attempts:
        crowd.enter(one, None)
    for count in (1, 2, 3):
        crowd.look_at_clock()
        crowd.look_at_clock()
        killed = [one for one in attempts if one.because is Because.MEMORY]
        assert len(killed) == count
        for one in killed:
            _see_off(crowd, one)
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
        crowd = Supervisor(coming={77} if is_coming else set())
        attempt = _started(hand, tmp_path, "true")
        crowd.enter(attempt, None)
        _see_off(crowd, attempt)
        attempt.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            orphan.wait(0.2 if is_coming else 20)
        assert (orphan.returncode is None) is is_coming
        orphan.kill()


class _Short:
    """Memory that is always short."""

    def look(self) -> int:
        return 1000

    def has_ended(self, code: int) -> None:
        del code


def _see_off(crowd: Supervisor, attempt: Attempt) -> None:
    if crowd.get(attempt.claim):
        select.select([attempt.exit], [], [])
        assert crowd.exited(attempt)
        assert list(crowd.over()) == [attempt]


def _started(hand: futures.Executor, folder: pathlib.Path, *argv: str) -> Attempt:
    order = protocol.Run(
        claim=uuid.uuid4().hex, argv=list(argv), environment={}, inputs="{}", output_bytes=0,
        window=0, workdir=None, timeout=None, grace=0, outlives_deadline=False,
    )  # fmt: skip
    reader, writer = os.pipe()
    os.close(writer)
    pid = hand.submit(os.posix_spawnp, argv[0], argv, os.environ, setsid=True).result()
    # The mark says only whose an orphan is, and here are none.
    return Attempt(order, Workspace(folder, folder, folder), pid, -pid, reader)

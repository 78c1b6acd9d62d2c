"""Commands that behave as badly as commands do: each ends, or is ended, and leaves nothing.

A quiet neighbour runs beside each of them on the same worker, and ends as if it were alone.
"""

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from faults import limits, processes
from faults.harness import FaultHarness, now
from faults.programs import Worker

_MEGABYTE = 1 << 20
_MOST_GROWTH = 64 * _MEGABYTE
_FLOOD = 50 * _MEGABYTE
_TAIL = 65536
_BOMB = pathlib.Path(__file__).with_name("fork_bomb.py")


def _run(harness: FaultHarness, command: str, **fields: Any) -> Worker:
    """Run the command to its end beside a neighbour."""
    harness.maintainer()
    harness.submit("flow", unruly={"command": command, **fields}, neighbour="sleep 0.2")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    return worker


def _assert_nothing_runs(harness: FaultHarness, worker: Worker) -> None:
    """An end is told when nothing of its command is left; and nothing else was asked for."""
    assert worker.commands() == []
    assert worker.is_alive
    assert harness.states()["neighbour"] == ("Succeeded", None, 1, 0, 0)
    assert harness.check().wrongs == []


def _output(harness: FaultHarness) -> bytes:
    output: bytes = harness.value(
        "SELECT o.data FROM workron.output o JOIN workron.job j ON j.id = o.job"
        " WHERE j.name = 'unruly'"
    )
    return output


def test_job_that_ignores_term_is_ended_by_its_timeout(harness: FaultHarness) -> None:
    command = "trap '' TERM; while :; do sleep 0.1; done"
    worker = _run(harness, command, timeout="500ms", maxAttempts=1)
    _assert_nothing_runs(harness, worker)
    assert harness.states()["unruly"][:2] == ("Failed", "Timeout")


def test_job_that_ignores_term_is_handed_back_by_a_worker_that_drains(
    harness: FaultHarness,
) -> None:
    harness.submit("flow", unruly=f"trap '' TERM; live {harness.folder}/go")
    worker = harness.worker("--grace", "200ms")
    first = harness.await_execution()
    assert worker.end() == 0
    assert not processes.is_alive(first.pid)
    (harness.folder / "go").touch()
    harness.worker()
    harness.await_end()
    assert harness.states() == {"unruly": ("Succeeded", None, 2, 0, 0)}
    assert harness.check().wrongs == []


def test_job_that_daemonises_with_setsid_twice_leaves_no_daemon(harness: FaultHarness) -> None:
    # In no session, group, folder or environment by which it could be known.
    daemon = "cd /; exec env -i sleep 1000"
    command = f"""
        setsid sh -c 'setsid sh -c "{daemon}" & echo $! >{harness.folder}/daemon' \
            </dev/null >/dev/null 2>&1 &
        until test -s {harness.folder}/daemon; do sleep 0.01; done
        """
    worker = _run(harness, command)
    _assert_nothing_runs(harness, worker)
    assert not processes.is_alive(int((harness.folder / "daemon").read_text()))
    assert harness.states()["unruly"] == ("Succeeded", None, 1, 0, 0)


def test_grandchildren_that_hold_the_pipe_do_not_hold_up_the_end(harness: FaultHarness) -> None:
    since = now()
    command = """
        (trap '' TERM; sleep 1000; sleep 1000) &
        setsid sh -c 'echo $$ >elsewhere; sleep 1000; sleep 1000' &
        until test -s elsewhere; do sleep 0.01; done
        echo began
        """
    worker = _run(harness, command)
    assert now() - since < 10
    _assert_nothing_runs(harness, worker)
    assert harness.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    assert _output(harness) == b"began\n"


def test_fork_bomb_is_ended_whole(harness: FaultHarness) -> None:
    harness.maintainer()
    counter = harness.folder / "forks"
    counter.touch()
    counter.chmod(0o666)
    worker = harness.worker("--slots", 2)
    with limits.processes(worker.pid, worker.await_runner(), most=limits.MOST_PROCESSES):
        harness.submit("flow", unruly=f"{sys.executable} {_BOMB} {counter}", neighbour="sleep 0.2")
        harness.await_end()
        _assert_nothing_runs(harness, worker)
    assert harness.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    assert counter.stat().st_size >= 100, "that was no bomb"


@pytest.fixture
def small_disk(harness: FaultHarness) -> Iterator[pathlib.Path]:
    """A disk of its own for the first worker, too small for what is to come."""
    folder = harness.folder / "w000"
    with limits.small_disk(folder, 8 * _MEGABYTE):
        yield folder
        for worker in harness.workers:
            worker.end()


def test_job_that_fills_the_disk_fails_alone_and_its_room_is_given_back(
    harness: FaultHarness, small_disk: pathlib.Path
) -> None:
    harness.maintainer()
    harness.submit(
        "flow",
        unruly={"command": "head -c 16M /dev/zero >full || exit 1", "maxAttempts": 1},
        neighbour="sleep 0.2",
        after={
            "command": f"dd if=/dev/zero of=most bs=1M count=6 && touch {harness.folder}/fits",
            "dependsOn": [{"name": "unruly", "when": "Failed"}],
        },
    )
    worker = harness.worker("--slots", 2)
    assert worker.folder == small_disk
    harness.await_end()
    _assert_nothing_runs(harness, worker)
    assert harness.states()["unruly"][:2] == ("Failed", "ExitCode")
    assert b"No space left on device" in _output(harness)
    assert (harness.folder / "fits").exists()


def test_jobs_that_cannot_be_started_on_a_full_disk_are_lost_to_nobody(
    harness: FaultHarness, small_disk: pathlib.Path
) -> None:
    harness.maintainer()
    gate = harness.folder / "go"
    # Once, and no more than that: wherever it is tried again, the disk is a real one.
    fill = "test $WORKRON_ATTEMPT != 1 || head -c 16M /dev/zero >full"
    harness.submit("flow", unruly=f"{fill}; live {gate}")
    full = harness.worker("--slots", 2)
    assert full.folder == small_disk
    harness.until(lambda: _free(small_disk) == 0, "the disk is full")
    harness.submit("others", work={"command": ":", "count": 4})
    other = harness.worker("--slots", 2)
    harness.until(lambda: "command not started" in full.said(), "it cannot start another command")
    gate.touch()
    harness.await_end()
    assert other.is_alive
    assert set(harness.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    assert harness.check().wrongs == []


def _free(folder: pathlib.Path) -> int:
    return limits.free_bytes(folder)


def test_job_that_kills_its_parent_once_is_run_again(harness: FaultHarness) -> None:
    harness.maintainer()
    harness.submit("flow", unruly="test $WORKRON_ATTEMPT != 1 || kill -9 $PPID")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    assert worker.is_alive
    assert harness.states()["unruly"][0] == "Succeeded"
    assert harness.check().wrongs == []


def test_job_that_always_kills_its_parent_is_given_up_and_its_worker_lives(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", unruly={"command": "kill -9 $PPID; sleep 1000", "maxWorkerLosses": 2})
    worker = harness.worker("--slots", 2)
    harness.await_end()
    assert worker.is_alive
    assert harness.states()["unruly"][:2] == ("Failed", "WorkerLost")
    harness.submit("next", neighbour="sleep 0.2")
    harness.await_end()
    _assert_nothing_runs(harness, worker)


@pytest.mark.parametrize(
    ("command", "begins", "ends"),
    [
        (f"head -c {_FLOOD} /dev/urandom; echo done", b"", b"done\n"),
        (f"head -c {_FLOOD} /dev/zero | tr '\\0' x", b"x" * 100, b"x" * 100),
        (
            r"printf '\033[2J\033]0;title\007\000\377\376\r\b'",
            b"\x1b[2J\x1b]0;title\x07\x00\xff\xfe\r\b",
            b"\r\b",
        ),
    ],
    ids=["random bytes", "one endless line", "ANSI and NUL"],
)
def test_output_of_any_bytes_is_kept_in_bounds_and_grows_no_worker(
    harness: FaultHarness, command: str, begins: bytes, ends: bytes
) -> None:
    harness.maintainer()
    harness.submit("before", neighbour=":")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    pids = [worker.pid, worker.await_runner()]
    before = [processes.peak_bytes(pid) for pid in pids]
    harness.submit("flow", unruly=command)
    harness.await_end()
    grown = [processes.peak_bytes(pid) - was for pid, was in zip(pids, before, strict=True)]
    assert max(grown) < _MOST_GROWTH
    assert harness.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    kept = _output(harness)
    assert len(kept) <= _TAIL + 200
    assert kept.startswith(begins)
    assert kept.endswith(ends)
    _assert_nothing_runs(harness, worker)

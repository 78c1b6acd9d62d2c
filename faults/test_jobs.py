"""Commands that misbehave: each ends or is killed, and leaves nothing behind.

A normal job runs on the same worker at the same time, and is not affected.
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
_MAX_GROWTH = 64 * _MEGABYTE
_FLOOD = 50 * _MEGABYTE
_TAIL = 65536
_BOMB = pathlib.Path(__file__).with_name("fork_bomb.py")


def _run(harness: FaultHarness, command: str, **fields: Any) -> Worker:
    """Run the command to its end, together with a normal job."""
    harness.maintainer()
    harness.submit("flow", misbehaving={"command": command, **fields}, normal="sleep 0.2")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    return worker


def _assert_nothing_runs(harness: FaultHarness, worker: Worker) -> None:
    """Check that no command is left and that the normal job has succeeded."""
    assert worker.commands() == []
    assert worker.is_alive
    assert harness.states()["normal"] == ("Succeeded", None, 1, 0, 0)
    assert harness.check().errors == []


def _output(harness: FaultHarness) -> bytes:
    output: bytes = harness.value(
        "SELECT o.data FROM workron.output o JOIN workron.job j ON j.id = o.job"
        " WHERE j.name = 'misbehaving'"
    )
    return output


def test_job_is_killed_by_its_timeout_when_it_ignores_sigterm(harness: FaultHarness) -> None:
    command = "trap '' TERM; while :; do sleep 0.1; done"
    worker = _run(harness, command, timeout="500ms", maxAttempts=1)
    _assert_nothing_runs(harness, worker)
    assert harness.states()["misbehaving"][:2] == ("Failed", "Timeout")


def test_job_is_released_by_a_draining_worker_when_it_ignores_sigterm(
    harness: FaultHarness,
) -> None:
    harness.submit("flow", misbehaving=f"trap '' TERM; live {harness.folder}/go")
    worker = harness.worker("--grace", "200ms")
    first = harness.await_execution()
    assert worker.end() == 0
    assert not processes.is_alive(first.pid)
    (harness.folder / "go").touch()
    harness.worker()
    harness.await_end()
    assert harness.states() == {"misbehaving": ("Succeeded", None, 2, 0, 0)}
    assert harness.check().errors == []


def test_daemon_is_killed_when_a_job_daemonizes_with_setsid_twice(harness: FaultHarness) -> None:
    # Without the session, group, folder and environment of the command.
    daemon = "cd /; exec env -i sleep 1000"
    command = f"""
        setsid sh -c 'setsid sh -c "{daemon}" & echo $! >{harness.folder}/daemon' \
            </dev/null >/dev/null 2>&1 &
        until test -s {harness.folder}/daemon; do sleep 0.01; done
        """
    worker = _run(harness, command)
    _assert_nothing_runs(harness, worker)
    assert not processes.is_alive(int((harness.folder / "daemon").read_text()))
    assert harness.states()["misbehaving"] == ("Succeeded", None, 1, 0, 0)


def test_end_is_not_delayed_when_grandchildren_hold_the_pipe(harness: FaultHarness) -> None:
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
    assert harness.states()["misbehaving"] == ("Succeeded", None, 1, 0, 0)
    assert _output(harness) == b"began\n"


def test_all_processes_are_killed_when_a_job_is_a_fork_bomb(harness: FaultHarness) -> None:
    harness.maintainer()
    counter = harness.folder / "forks"
    counter.touch()
    counter.chmod(0o666)
    worker = harness.worker("--slots", 2)
    with limits.processes(worker.pid, worker.await_runner(), limit=limits.MAX_PROCESSES):
        harness.submit(
            "flow", misbehaving=f"{sys.executable} {_BOMB} {counter}", normal="sleep 0.2"
        )
        harness.await_end()
        _assert_nothing_runs(harness, worker)
    assert harness.states()["misbehaving"] == ("Succeeded", None, 1, 0, 0)
    assert counter.stat().st_size >= 100, "too few processes for a fork bomb"


@pytest.fixture
def small_disk(harness: FaultHarness) -> Iterator[pathlib.Path]:
    """A small disk for the first worker."""
    folder = harness.folder / "w000"
    with limits.small_disk(folder, 8 * _MEGABYTE):
        yield folder
        for worker in harness.workers:
            worker.end()


def test_only_the_job_fails_and_its_space_is_freed_when_it_fills_the_disk(
    harness: FaultHarness, small_disk: pathlib.Path
) -> None:
    harness.maintainer()
    harness.submit(
        "flow",
        misbehaving={"command": "head -c 16M /dev/zero >full || exit 1", "maxAttempts": 1},
        normal="sleep 0.2",
        after={
            "command": f"dd if=/dev/zero of=most bs=1M count=6 && touch {harness.folder}/fits",
            "dependsOn": [{"name": "misbehaving", "when": "Failed"}],
        },
    )
    worker = harness.worker("--slots", 2)
    assert worker.folder == small_disk
    harness.await_end()
    _assert_nothing_runs(harness, worker)
    assert harness.states()["misbehaving"][:2] == ("Failed", "ExitCode")
    assert b"No space left on device" in _output(harness)
    assert (harness.folder / "fits").exists()


def test_jobs_run_on_another_worker_when_the_disk_is_full(
    harness: FaultHarness, small_disk: pathlib.Path
) -> None:
    harness.maintainer()
    gate = harness.folder / "go"
    # Only in the first attempt: another attempt may run on a real disk.
    fill = "test $WORKRON_ATTEMPT != 1 || head -c 16M /dev/zero >full"
    harness.submit("flow", misbehaving=f"{fill}; live {gate}")
    full = harness.worker("--slots", 2)
    assert full.folder == small_disk
    harness.until(lambda: _free(small_disk) == 0, "the disk is full")
    harness.submit("others", work={"command": ":", "count": 4})
    other = harness.worker("--slots", 2)
    harness.until(
        lambda: "command not started" in full.log_tail(), "it cannot start another command"
    )
    gate.touch()
    harness.await_end()
    assert other.is_alive
    assert set(harness.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    assert harness.check().errors == []


def _free(folder: pathlib.Path) -> int:
    return limits.free_bytes(folder)


def test_job_is_run_again_when_it_killed_its_parent_once(harness: FaultHarness) -> None:
    harness.maintainer()
    harness.submit("flow", misbehaving="test $WORKRON_ATTEMPT != 1 || kill -9 $PPID")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    assert worker.is_alive
    assert harness.states()["misbehaving"][0] == "Succeeded"
    assert harness.check().errors == []


def test_job_fails_and_its_worker_survives_when_it_always_kills_its_parent(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit(
        "flow", misbehaving={"command": "kill -9 $PPID; sleep 1000", "maxWorkerLosses": 2}
    )
    worker = harness.worker("--slots", 2)
    harness.await_end()
    assert worker.is_alive
    assert harness.states()["misbehaving"][:2] == ("Failed", "WorkerLost")
    harness.submit("next", normal="sleep 0.2")
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
def test_output_and_memory_are_bounded_when_a_job_writes_arbitrary_bytes(
    harness: FaultHarness, command: str, begins: bytes, ends: bytes
) -> None:
    harness.maintainer()
    harness.submit("before", normal=":")
    worker = harness.worker("--slots", 2)
    harness.await_end()
    pids = [worker.pid, worker.await_runner()]
    before = [processes.peak_bytes(pid) for pid in pids]
    harness.submit("flow", misbehaving=command)
    harness.await_end()
    grown = [processes.peak_bytes(pid) - was for pid, was in zip(pids, before, strict=True)]
    assert max(grown) < _MAX_GROWTH
    assert harness.states()["misbehaving"] == ("Succeeded", None, 1, 0, 0)
    output = _output(harness)
    assert len(output) <= _TAIL + 200
    assert output.startswith(begins)
    assert output.endswith(ends)
    _assert_nothing_runs(harness, worker)

"""Commands that behave as badly as commands do: each ends, or is ended, and leaves nothing.

A quiet neighbour runs beside each of them on the same worker, and ends as if it were alone.
"""

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from faults import limits, processes
from faults.crew import Worker
from faults.house import House, now

_MEGABYTE = 1 << 20
_MOST_GROWTH = 64 * _MEGABYTE
_FLOOD = 50 * _MEGABYTE
_TAIL = 65536
_BOMB = pathlib.Path(__file__).with_name("bomb.py")


def _run(house: House, command: str, **fields: Any) -> Worker:
    """Run the command to its end beside a neighbour."""
    house.maintainer()
    house.submit("flow", unruly={"command": command, **fields}, neighbour="sleep 0.2")
    worker = house.worker("--slots", 2)
    house.await_end()
    return worker


def _assert_nothing_runs(house: House, worker: Worker) -> None:
    """An end is told when nothing of its command is left; and nothing else was asked for."""
    assert worker.commands() == []
    assert worker.is_alive
    assert house.states()["neighbour"] == ("Succeeded", None, 1, 0, 0)
    assert house.check().wrongs == []


def _output(house: House) -> bytes:
    output: bytes = house.value(
        "SELECT o.data FROM workron.output o JOIN workron.job j ON j.id = o.job"
        " WHERE j.name = 'unruly'"
    )
    return output


def test_job_that_ignores_term_is_ended_by_its_timeout(house: House) -> None:
    command = "trap '' TERM; while :; do sleep 0.1; done"
    worker = _run(house, command, timeout="500ms", maxAttempts=1)
    _assert_nothing_runs(house, worker)
    assert house.states()["unruly"][:2] == ("Failed", "Timeout")


def test_job_that_ignores_term_is_handed_back_by_a_worker_that_drains(house: House) -> None:
    house.submit("flow", unruly=f"trap '' TERM; live {house.folder}/go")
    worker = house.worker("--grace", "200ms")
    first = house.await_execution()
    assert worker.end() == 0
    assert not processes.is_alive(first.pid)
    (house.folder / "go").touch()
    house.worker()
    house.await_end()
    assert house.states() == {"unruly": ("Succeeded", None, 2, 0, 0)}
    assert house.check().wrongs == []


def test_job_that_daemonises_with_setsid_twice_leaves_no_daemon(house: House) -> None:
    # In no session, group, folder or environment by which it could be known.
    daemon = "cd /; exec env -i sleep 1000"
    command = f"""
        setsid sh -c 'setsid sh -c "{daemon}" & echo $! >{house.folder}/daemon' \
            </dev/null >/dev/null 2>&1 &
        until test -s {house.folder}/daemon; do sleep 0.01; done
        """
    worker = _run(house, command)
    _assert_nothing_runs(house, worker)
    assert not processes.is_alive(int((house.folder / "daemon").read_text()))
    assert house.states()["unruly"] == ("Succeeded", None, 1, 0, 0)


def test_grandchildren_that_hold_the_pipe_do_not_hold_up_the_end(house: House) -> None:
    since = now()
    command = """
        (trap '' TERM; sleep 1000; sleep 1000) &
        setsid sh -c 'echo $$ >elsewhere; sleep 1000; sleep 1000' &
        until test -s elsewhere; do sleep 0.01; done
        echo began
        """
    worker = _run(house, command)
    assert now() - since < 10
    _assert_nothing_runs(house, worker)
    assert house.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    assert _output(house) == b"began\n"


def test_fork_bomb_is_ended_whole(house: House) -> None:
    house.maintainer()
    counter = house.folder / "forks"
    counter.touch()
    counter.chmod(0o666)
    worker = house.worker("--slots", 2)
    with limits.processes(worker.pid, worker.await_runner(), most=limits.MOST_PROCESSES):
        house.submit("flow", unruly=f"{sys.executable} {_BOMB} {counter}", neighbour="sleep 0.2")
        house.await_end()
        _assert_nothing_runs(house, worker)
    assert house.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    assert counter.stat().st_size >= 100, "that was no bomb"


@pytest.fixture
def small_disk(house: House) -> Iterator[pathlib.Path]:
    """A disk of its own for the first worker, too small for what is to come."""
    folder = house.folder / "w000"
    with limits.small_disk(folder, 8 * _MEGABYTE):
        yield folder
        for worker in house.workers:
            worker.end()


def test_job_that_fills_the_disk_fails_alone_and_its_room_is_given_back(
    house: House, small_disk: pathlib.Path
) -> None:
    house.maintainer()
    house.submit(
        "flow",
        unruly={"command": "head -c 16M /dev/zero >full || exit 1", "maxAttempts": 1},
        neighbour="sleep 0.2",
        after={
            "command": f"dd if=/dev/zero of=most bs=1M count=6 && touch {house.folder}/fits",
            "dependsOn": [{"name": "unruly", "when": "Failed"}],
        },
    )
    worker = house.worker("--slots", 2)
    assert worker.folder == small_disk
    house.await_end()
    _assert_nothing_runs(house, worker)
    assert house.states()["unruly"][:2] == ("Failed", "ExitCode")
    assert b"No space left on device" in _output(house)
    assert (house.folder / "fits").exists()


def test_jobs_that_cannot_be_started_on_a_full_disk_are_lost_to_nobody(
    house: House, small_disk: pathlib.Path
) -> None:
    house.maintainer()
    gate = house.folder / "go"
    # Once, and no more than that: wherever it is tried again, the disk is a real one.
    fill = "test $WORKRON_ATTEMPT != 1 || head -c 16M /dev/zero >full"
    house.submit("flow", unruly=f"{fill}; live {gate}")
    full = house.worker("--slots", 2)
    assert full.folder == small_disk
    house.until(lambda: _free(small_disk) == 0, "the disk is full")
    house.submit("others", work={"command": ":", "count": 4})
    other = house.worker("--slots", 2)
    house.until(lambda: "was not started" in full.said(), "it cannot start another command")
    gate.touch()
    house.await_end()
    assert other.is_alive
    assert set(house.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    assert house.check().wrongs == []


def _free(folder: pathlib.Path) -> int:
    return limits.free_bytes(folder)


def test_job_that_kills_its_parent_once_is_run_again(house: House) -> None:
    house.maintainer()
    house.submit("flow", unruly="test $WORKRON_ATTEMPT != 1 || kill -9 $PPID")
    worker = house.worker("--slots", 2)
    house.await_end()
    assert worker.is_alive
    assert house.states()["unruly"][0] == "Succeeded"
    assert house.check().wrongs == []


def test_job_that_always_kills_its_parent_is_given_up_and_its_worker_lives(house: House) -> None:
    house.maintainer()
    house.submit("flow", unruly={"command": "kill -9 $PPID; sleep 1000", "maxWorkerLosses": 2})
    worker = house.worker("--slots", 2)
    house.await_end()
    assert worker.is_alive
    assert house.states()["unruly"][:2] == ("Failed", "WorkerLost")
    house.submit("next", neighbour="sleep 0.2")
    house.await_end()
    _assert_nothing_runs(house, worker)


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
    house: House, command: str, begins: bytes, ends: bytes
) -> None:
    house.maintainer()
    house.submit("before", neighbour=":")
    worker = house.worker("--slots", 2)
    house.await_end()
    pids = [worker.pid, worker.await_runner()]
    before = [processes.peak_bytes(pid) for pid in pids]
    house.submit("flow", unruly=command)
    house.await_end()
    grown = [processes.peak_bytes(pid) - was for pid, was in zip(pids, before, strict=True)]
    assert max(grown) < _MOST_GROWTH
    assert house.states()["unruly"] == ("Succeeded", None, 1, 0, 0)
    kept = _output(house)
    assert len(kept) <= _TAIL + 200
    assert kept.startswith(begins)
    assert kept.endswith(ends)
    _assert_nothing_runs(house, worker)

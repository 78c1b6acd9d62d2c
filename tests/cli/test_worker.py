"""`workron worker`: one worker as a process, from its start to its orderly exit."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
from typing import Any
from unittest import mock

import pytest

from tests.cli.conftest import Call, Start, Write, read_log_until
from tests.store.postgres import roles
from workron.cli import local_workers, system_clock
from workron.store import connect

_STAY = "echo $$ > {0}/on; cat {0}/go"


@pytest.fixture
def fifos(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with `on`, to which a job writes its pid, and `go`, for which it waits."""
    os.mkfifo(tmp_path / "on")
    os.mkfifo(tmp_path / "go")
    return tmp_path


def _row(call: Call, url: str, name: str = "hello") -> dict[str, Any]:
    result = json.loads(call("get", name, "--store", url, "-o", "json").out)
    [row] = result["items"]
    status: dict[str, Any] = row["status"]
    return status


def _token(url: str, lease_seconds: float | None = None, pool: str = "default") -> str:
    async def take() -> str:
        store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
        token = await store.ensure_pool("default", pool, lease_seconds=lease_seconds)
        await store.close()
        return token

    return asyncio.run(take())


def test_worker_exits_when_it_has_run_the_maximum_of_jobs(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("one"), write("two"), "--store", url)
    result = call("worker", "--store", url, "--max-jobs", "1")
    assert result.code == 0
    states = [_row(call, url, name)["phase"] for name in ("one", "two")]
    assert sorted(states) == ["Queued", "Succeeded"]


def test_worker_exits_when_it_was_idle_for_the_given_time(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("hello", command="exit 3", more="maxAttempts: 1"), "--store", url)
    result = call("worker", "--store", url, "--idle-exit", "1ms")
    assert (result.code, result.out) == (0, "")
    assert _row(call, url)["exitCode"] == 3


@pytest.mark.parametrize(("given", "seconds"), [([], 2), (["--heartbeat", "300ms"], 0.3)])
def test_heartbeat_interval_is_that_of_the_option(
    call: Call,
    write: Write,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    seconds: float,
) -> None:
    call("submit", write("hello"), "--store", url)
    made = mock.Mock(wraps=local_workers.LocalWorkers)
    monkeypatch.setattr("workron.cli.worker.LocalWorkers", made)
    call("worker", "--store", url, "--idle-exit", "1ms", *given)
    assert made.call_args.kwargs["config"].heartbeat.total_seconds() == seconds


def test_worker_runs_no_jobs_of_other_pools(call: Call, write: Write, url: str) -> None:
    call("submit", write("hello", more="pool: large"), "--store", url)
    call("worker", "--store", url, "--idle-exit", "1ms")
    assert _row(call, url)["phase"] == "Queued"
    call("worker", "--store", url, "--pool", "large", "--idle-exit", "1ms")
    assert _row(call, url)["phase"] == "Succeeded"


@pytest.mark.parametrize("given", [[], ["--pool", "large"], ["-n", "default"]])
def test_token_decides_the_pool_of_a_worker(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    call("submit", write("hello", more="pool: large"), "--store", url)
    monkeypatch.setenv("WORKRON_TOKEN", _token(url, pool="large"))
    result = call("worker", "--store", url, "--max-jobs", "1", *given)
    assert result.code == 0
    [line] = [one for one in result.err.splitlines() if "worker registered" in one]
    assert json.loads(line)["pool"] == "default/large"
    assert _row(call, url)["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--pool", "other"], "default/other"),
        (["-n", "elsewhere"], "elsewhere/default"),
        (["--pool", "other", "-n", "elsewhere"], "elsewhere/other"),
    ],
)
def test_token_is_refused_when_it_belongs_to_another_pool_than_the_option(
    call: Call,
    write: Write,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    wanted: str,
) -> None:
    call("submit", write("hello"), "--store", url)
    monkeypatch.setenv("WORKRON_TOKEN", _token(url))
    result = call("worker", "--store", url, "--idle-exit", "1ms", *given)
    words = f"the token in WORKRON_TOKEN is for pool default/default, not {wanted}; set"
    assert (result.code, result.err.count(words)) == (3, 1)
    assert "worker registered" not in result.err
    assert _row(call, url)["phase"] == "Queued"
    assert asyncio.run(_count_workers(url)) == 0


async def _count_workers(url: str) -> int:
    store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    workers = await store.list_heartbeats()
    await store.close()
    return len(workers)


async def test_error_names_the_missing_token_when_the_role_cannot_create_pools(
    start: Start, fresh_database: str
) -> None:
    await asyncio.to_thread(start("migrate", "--store", fresh_database).communicate)
    async with roles.made_in(fresh_database) as role:
        worker = start("worker", "--store", role.dsn, "--pool", "large")
        result, _ = await asyncio.to_thread(worker.communicate)
    assert worker.returncode == 3
    # Before it are lines about other leftovers of this machine.
    [first, second, third] = result.splitlines()[-3:]
    assert first.startswith("workron: WORKRON_TOKEN is not set; only the owner")
    assert "SELECT workron.ensure_pool('default', 'large', 'TOKEN', NULL)" in second
    assert "permission denied" in third


def test_running_job_finishes_when_the_worker_drains(
    call: Call, start: Start, write: Write, url: str, fifos: pathlib.Path
) -> None:
    call("submit", write("hello", command=_STAY.format(fifos)), "--store", url)
    worker = start("worker", "--store", url)
    (fifos / "on").read_text()
    call("submit", write("later"), "--store", url)
    worker.send_signal(signal.SIGTERM)
    read_log_until(worker, "worker draining")
    (fifos / "go").write_text("")
    worker.communicate()
    assert worker.returncode == 0
    assert (_row(call, url)["phase"], _row(call, url)["attempts"]) == ("Succeeded", 1)


def test_signal_changes_nothing_when_the_worker_is_exiting(start: Start, url: str) -> None:
    _token(url)
    worker = start("worker", "--store", url)
    read_log_until(worker, "worker registered")
    for _ in range(1000):
        worker.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(0.005)
            break
    worker.communicate()
    assert worker.returncode == 0


@pytest.mark.parametrize(("grace", "signals"), [("10ms", 1), ("1h", 2)])
def test_job_is_stopped_and_requeued_without_a_failure_when_it_outlasts_the_grace_period(  # noqa: PLR0913
    *,
    call: Call,
    start: Start,
    write: Write,
    url: str,
    fifos: pathlib.Path,
    grace: str,
    signals: int,
) -> None:
    call("submit", write("hello", command=_STAY.format(fifos)), "--store", url)
    worker = start("worker", "--store", url, "--grace", grace)
    pid = (fifos / "on").read_text().strip()
    worker.send_signal(signal.SIGTERM)
    read_log_until(worker, "worker draining")
    # Two signals that arrive at once count as one.
    if signals == 2:
        worker.send_signal(signal.SIGTERM)
    read_log_until(worker, "stopping running jobs and requeueing them")
    worker.communicate()
    assert worker.returncode == 0
    assert not _is_alive(int(pid))
    row = _row(call, url)
    assert (row["phase"], row["failures"], row["losses"]) == ("Queued", 0, 0)


def test_runner_kills_the_command_when_its_agent_is_frozen_past_the_lease(
    *,
    call: Call,
    start: Start,
    write: Write,
    url: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    os.mkfifo(tmp_path / "life")
    command = f"exec 3> {tmp_path}/life; echo $WORKRON_ATTEMPT >&3; [ $WORKRON_ATTEMPT = 2 ] || cat"
    command = command.replace("|| cat", f"|| exec tail -f {tmp_path}/jobs.db")
    call("submit", write("hello", command=command), "--store", url)
    monkeypatch.setenv("WORKRON_TOKEN", _token(url, lease_seconds=2))
    worker = start("worker", "--store", url, "--max-jobs", "2")
    with (tmp_path / "life").open() as life:
        assert life.readline() == "1\n"
        worker.send_signal(signal.SIGSTOP)
        # The read ends when no process has the other end open.
        assert life.read() == ""
        assert _state(worker.pid) == "T"
    worker.send_signal(signal.SIGCONT)
    assert (tmp_path / "life").read_text() == "2\n"
    worker.communicate()
    row = _row(call, url)
    assert (row["phase"], row["attempts"], row["failures"]) == ("Succeeded", 2, 0)


def test_next_worker_kills_leftover_processes_when_worker_and_runner_were_killed(
    *,
    call: Call,
    start: Start,
    write: Write,
    url: str,
    fifos: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(fifos))
    call("submit", write("hello", command=_STAY.format(fifos)), "--store", url)
    monkeypatch.setenv("WORKRON_TOKEN", _token(url))
    worker = start("worker", "--store", url)
    command = int((fifos / "on").read_text())
    [runner] = _children(worker.pid)
    # It is stopped first, so that it cannot kill the command.
    os.kill(runner, signal.SIGSTOP)
    worker.kill()
    worker.wait()
    os.kill(runner, signal.SIGKILL)
    assert _is_alive(command)
    result, _ = start("worker", "--store", url, "--idle-exit", "1ms").communicate()
    assert '"event":"cleaned up after dead worker"' in result
    assert not _is_alive(command)
    assert list(fifos.glob("workron-*")) == []


def _children(pid: int) -> list[int]:
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _is_alive(pid: int) -> bool:
    return pathlib.Path(f"/proc/{pid}").exists() and _state(pid) != "Z"


def _state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ["--store", "memory:"],
            "a memory: store is empty, because it ends with the command that created it",
        ),
        (["--store", "sqlite:///{}/none.db"], "none.db does not exist"),
        (["--store", "{}", "--grace", "5"], "--grace: '5' is not a duration; write it as 90s"),
        (["--store", "{}", "--pool", "Big"], "--pool: 'Big' is not the name of a pool"),
        (["--store", "{}", "-n", "a b"], "--namespace: 'a b' is not a name"),
        (["--store", "{}", "--idle-exit", "soon"], "--idle-exit: 'soon' is not a duration"),
        (
            ["--store", "{}", "--heartbeat", "99ms"],
            "--heartbeat: 99ms is too short; the minimum is 100ms",
        ),
        (["--store", "{}", "--log", "yaml"], "'yaml' is not one of: text, json"),
        ([], "no store given"),
    ],
)
def test_option_is_refused_when_its_value_is_invalid(
    call: Call, tmp_path: pathlib.Path, given: list[str], words: str
) -> None:
    result = call("worker", *(one.format(tmp_path) for one in given))
    assert result.code == 2
    assert words in result.err


def test_worker_exits_when_its_token_is_unknown(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("submit", write("hello"), "--store", url)
    monkeypatch.setenv("WORKRON_TOKEN", "a-guess")
    result = call("worker", "--store", url)
    assert result.code == 3
    assert result.err.count("the token is unknown or has expired; create a new one") == 1
    assert "a-guess" not in result.err

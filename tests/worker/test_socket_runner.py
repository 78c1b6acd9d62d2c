"""An agent whose runners listen at a path: claims, losses and jobs as runners come and go."""

import asyncio
import os
import pathlib
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import structlog

from tests.runner.fake_agent import COMMAND, environment
from tests.worker.agent_harness import ENDS_IN_ATTEMPT_2, AgentHarness
from tests.worker.output_collector import OutputCollector
from workron.core.lease import HeartbeatVersion
from workron.core.states import State
from workron_runner import event_loop, protocol
from workron_worker import runner_connection
from workron_worker.executor import CommandTask, StartError
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import SocketRunner, SocketRunners

Make = Callable[..., CommandTask]
Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "runner.sock"


@pytest.fixture
def start(tmp_path: pathlib.Path, path: pathlib.Path) -> Iterator[Start]:
    """Start a runner at that path."""
    children: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        command = [*COMMAND, "--socket", str(path)]
        children.append(subprocess.Popen(command, env=environment(tmp_path)))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait()


@pytest.fixture
def executor(boot: uuid.UUID, path: pathlib.Path) -> Iterator[RunnerExecutor]:
    executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot, runners=SocketRunners(path))
    yield executor
    executor.close()


@pytest.fixture
def external(harness: AgentHarness, path: pathlib.Path) -> WorkerMetrics:
    """The metrics of a harness whose executor waits for an external runner."""
    harness.executor.close()
    harness.executor = RunnerExecutor(
        grace=timedelta(seconds=0.1),
        boot=uuid.uuid4(),
        runners=SocketRunners(path),
        metrics=harness.metrics,
    )
    return harness.metrics


async def _connected(executor: RunnerExecutor) -> "asyncio.Task[None]":
    """Let it connect to runners from now on, and wait until it has one."""
    is_ready = asyncio.Event()
    keeping = asyncio.ensure_future(executor.keep_ready(is_ready.set))
    await is_ready.wait()
    return keeping


async def test_agent_neither_registers_nor_claims_before_a_runner_is_connected(
    harness: AgentHarness, external: WorkerMetrics, start: Start, path: pathlib.Path
) -> None:
    job = await harness.job(command="true")
    async with harness.working(await harness.agent()):
        while str(path) not in (external.why_not_ready(harness.clock.monotonic()) or ""):
            await asyncio.sleep(0)
        assert list(await harness.store.list_heartbeats()) == []
        start()
        assert (await harness.ended(job)).state is State.SUCCEEDED
        assert external.why_not_ready(harness.clock.monotonic()) is None


async def test_jobs_are_run_by_the_next_runner_without_a_loss_when_their_runner_was_lost(
    harness: AgentHarness, external: WorkerMetrics, start: Start
) -> None:
    run = await harness.workflow({"name": "many", "count": 2, "command": ENDS_IN_ATTEMPT_2})
    first = start()
    async with harness.working(await harness.agent()):
        await harness.collector.wait_for(b"on", 2)
        first.kill()
        while external.why_not_ready(harness.clock.monotonic()) is None:
            await asyncio.sleep(0)
        waiting = await harness.job("late", command="true")
        # It is notified of the job and sends heartbeats, but claims nothing.
        versions = set[HeartbeatVersion]()
        while len(versions) < 20:
            versions.update(worker.version for worker in await harness.store.list_heartbeats())
        start()
        await harness.ended(run)
        assert (await harness.ended(waiting)).attempts == 1
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {(row.state, row.attempts, row.losses) for row in rows} == {(State.SUCCEEDED, 2, 0)}


async def test_agent_can_be_drained_when_it_waits_for_a_runner(
    harness: AgentHarness, external: WorkerMetrics
) -> None:
    async with harness.working(await harness.agent()):
        while external.why_not_ready(harness.clock.monotonic()) is None:
            await asyncio.sleep(0)


async def test_agent_fails_when_it_finds_no_runner_for_too_long(
    harness: AgentHarness, path: pathlib.Path
) -> None:
    harness.executor.close()
    harness.executor = RunnerExecutor(
        grace=timedelta(),
        boot=harness.boot,
        runners=SocketRunners(path),
        metrics=harness.metrics,
        wait_seconds=0,
    )
    agent = await harness.agent()
    with pytest.raises(StartError, match=f"no runner listens at {path}: No such file"):
        await agent.run()
    assert "no runner listens at" in (harness.metrics.failure or "")


async def test_start_error_is_raised_when_no_runner_listens(
    executor: RunnerExecutor, make: Make
) -> None:
    assert not executor.is_ready
    with pytest.raises(StartError, match="no runner listens at"):
        await run_task(executor, make("true"), None)


async def test_deadline_and_kill_apply_to_an_external_runner(
    executor: RunnerExecutor, start: Start, make: Make
) -> None:
    start()
    keeping = await _connected(executor)
    collector, task = OutputCollector(), make("echo on; exec sleep 1000")
    run = asyncio.ensure_future(run_task(executor, task, collector))
    await collector.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    executor.set_deadline(event_loop.boottime() + 0.1)
    assert (await run_task(executor, make("exec sleep 1000"), None)).is_past_deadline
    keeping.cancel()


def test_disconnect_waits_until_the_runner_has_ended(
    path: pathlib.Path, boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_connection, "CLOSE_TIMEOUT_SECONDS", 0.01)
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        connection = _answered(path, boot, _HELLO, process.pid)
        disconnect = threading.Thread(target=connection.disconnect_and_wait)
        with structlog.testing.capture_logs() as events:
            disconnect.start()
            while not events:
                assert disconnect.is_alive()
        process.kill()
        disconnect.join()
    assert events[0]["event"] == "lost runner still running"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "it did not answer"),
        (protocol.encode(protocol.Shutdown("no memory")), "no memory"),
        (protocol.encode(protocol.Hello(2, "", 0)), "it speaks version 2, not 1"),
    ],
)
def test_external_runner_is_rejected_when_its_hello_is_wrong(
    path: pathlib.Path, boot: uuid.UUID, answer: bytes, message: str
) -> None:
    with pytest.raises(StartError, match=f"cannot use the runner at {path}: {message}"):
        _answered(path, boot, answer)


def test_external_runner_is_rejected_when_it_passes_no_pidfd(
    path: pathlib.Path, boot: uuid.UUID
) -> None:
    with pytest.raises(StartError, match="passes no pidfd"):
        _answered(path, boot, _HELLO)


_HELLO = b"a valid Hello"


def _answered(
    path: pathlib.Path, boot: uuid.UUID, answer: bytes, pid: int | None = None
) -> SocketRunner:
    """Connect to a process that answers with this and disconnects; it passes the pidfd of `pid`."""

    def answer_once() -> None:
        stream, _ = listener.accept()
        with stream:
            stream.recv(1000)
            hello = protocol.encode(protocol.Hello(protocol.VERSION, "", event_loop.boottime()))
            sent = hello if answer is _HELLO else answer
            if pid is None:
                stream.sendall(sent)
                return
            pidfd = os.pidfd_open(pid)
            socket.send_fds(stream, [sent], [pidfd])
            os.close(pidfd)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        thread = threading.Thread(target=answer_once)
        thread.start()
        try:
            return SocketRunners(path).connect(boot)
        finally:
            thread.join()


def test_executor_needs_no_temporary_folder_when_its_runner_is_external(
    path: pathlib.Path, boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", fail)
    RunnerExecutor(grace=timedelta(), boot=boot, runners=SocketRunners(path)).close()

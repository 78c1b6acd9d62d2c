"""An agent whose runner waits at a path: what is claimed, lost and run as runners come and go."""

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
from tests.worker.ear import Ear
from tests.worker.shop import Shop
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

_STAY_ONCE = 'if [ "$WORKRON_ATTEMPT" = 1 ]; then echo on; exec sleep 1000; fi'


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "door"


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
def distant(shop: Shop, path: pathlib.Path) -> WorkerMetrics:
    """The shop's executor, which waits for its runner, and what is told of it."""
    shop.executor.close()
    shop.metrics = metrics = WorkerMetrics()
    shop.executor = RunnerExecutor(
        grace=timedelta(seconds=0.1),
        boot=uuid.uuid4(),
        runners=SocketRunners(path),
        metrics=metrics,
    )
    return metrics


async def _found(executor: RunnerExecutor) -> "asyncio.Task[None]":
    """Have it look for runners from now on, and wait until it has one."""
    is_ready = asyncio.Event()
    keeping = asyncio.ensure_future(executor.keep_ready(is_ready.set))
    await is_ready.wait()
    return keeping


async def test_nothing_is_claimed_and_no_worker_is_entered_until_there_is_a_runner(
    shop: Shop, distant: WorkerMetrics, start: Start, path: pathlib.Path
) -> None:
    job = await shop.job(command="true")
    async with shop.working(await shop.agent()):
        while str(path) not in (distant.why_not_ready(shop.clock.monotonic()) or ""):
            await asyncio.sleep(0)
        assert list(await shop.store.list_heartbeats()) == []
        start()
        assert (await shop.ended(job)).state is State.SUCCEEDED
        assert distant.why_not_ready(shop.clock.monotonic()) is None


async def test_jobs_that_fell_with_a_runner_are_run_by_the_next_and_charged_nothing(
    shop: Shop, distant: WorkerMetrics, start: Start
) -> None:
    root = await shop.workflow({"name": "many", "count": 2, "command": _STAY_ONCE})
    first = start()
    async with shop.working(await shop.agent()):
        while shop.ear.heard.count(b"on") < 2:
            await shop.ear.wait()
        first.kill()
        while distant.why_not_ready(shop.clock.monotonic()) is None:
            await asyncio.sleep(0)
        waiting = await shop.job("late", command="true")
        # It hears of the job, and beats on, and asks for nothing.
        signs = set[HeartbeatVersion]()
        while len(signs) < 20:
            signs.update(worker.version for worker in await shop.store.list_heartbeats())
        start()
        await shop.ended(root)
        assert (await shop.ended(waiting)).attempts == 1
    rows = [row for row in await shop.store.list_jobs(root) if row.index is not None]
    assert {(row.state, row.attempts, row.losses) for row in rows} == {(State.SUCCEEDED, 2, 0)}


async def test_agent_that_waits_for_a_runner_can_be_drained(
    shop: Shop, distant: WorkerMetrics
) -> None:
    async with shop.working(await shop.agent()):
        while distant.why_not_ready(shop.clock.monotonic()) is None:
            await asyncio.sleep(0)


async def test_agent_that_finds_no_runner_for_long_ends_and_says_why(
    shop: Shop, path: pathlib.Path
) -> None:
    shop.executor.close()
    shop.executor = RunnerExecutor(
        grace=timedelta(),
        boot=shop.boot,
        runners=SocketRunners(path),
        metrics=shop.metrics,
        wait_seconds=0,
    )
    agent = await shop.agent()
    with pytest.raises(StartError, match=f"no runner listens at {path}: No such file"):
        await agent.run()
    assert "no runner listens at" in (shop.metrics.failure or "")


async def test_task_that_finds_no_runner_is_told_so_at_once(
    executor: RunnerExecutor, make: Make
) -> None:
    assert not executor.is_ready
    with pytest.raises(StartError, match="no runner listens at"):
        await run_task(executor, make("true"), None)


async def test_deadline_and_kill_hold_as_for_a_child(
    executor: RunnerExecutor, start: Start, make: Make
) -> None:
    start()
    keeping = await _found(executor)
    ear, task = Ear(), make("echo on; exec sleep 1000")
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    executor.set_deadline(event_loop.boottime() + 0.1)
    assert (await run_task(executor, make("exec sleep 1000"), None)).is_past_deadline
    keeping.cancel()


def test_lost_runner_is_waited_for_until_it_has_ended_itself(
    path: pathlib.Path, boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_connection, "CLOSE_TIMEOUT_SECONDS", 0.01)
    with subprocess.Popen(["/bin/sleep", "1000"]) as body:
        line = _answered(path, boot, _HELLO, body.pid)
        burial = threading.Thread(target=line.disconnect_and_wait)
        with structlog.testing.capture_logs() as said:
            burial.start()
            while not said:
                assert burial.is_alive()
        body.kill()
        burial.join()
    assert said[0]["event"] == "lost runner still running"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it did not answer"),
        (protocol.encode(protocol.Shutdown("tired")), "tired"),
        (protocol.encode(protocol.Hello(2, "", 0)), "it speaks version 2, not 1"),
    ],
)
def test_one_that_begins_wrong_is_not_taken(
    path: pathlib.Path, boot: uuid.UUID, answer: bytes, why: str
) -> None:
    with pytest.raises(StartError, match=f"cannot use the runner at {path}: {why}"):
        _answered(path, boot, answer)


def test_one_whose_end_could_not_be_seen_is_not_taken(path: pathlib.Path, boot: uuid.UUID) -> None:
    with pytest.raises(StartError, match="passes no pidfd"):
        _answered(path, boot, _HELLO)


_HELLO = b"a Hello of now"


def _answered(
    path: pathlib.Path, boot: uuid.UUID, answer: bytes, body: int | None = None
) -> SocketRunner:
    """Begin with what answers so and hangs up; its end is that of `body`."""

    def answer_once() -> None:
        stream, _ = door.accept()
        with stream:
            stream.recv(1000)
            hello = protocol.encode(protocol.Hello(protocol.VERSION, "", event_loop.boottime()))
            said = hello if answer is _HELLO else answer
            if body is None:
                stream.sendall(said)
                return
            death = os.pidfd_open(body)
            socket.send_fds(stream, [said], [death])
            os.close(death)

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen(1)
        thread = threading.Thread(target=answer_once)
        thread.start()
        try:
            return SocketRunners(path).connect(boot)
        finally:
            thread.join()


def test_agent_needs_no_folder_for_commands_that_run_elsewhere(
    path: pathlib.Path, boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    RunnerExecutor(grace=timedelta(), boot=boot, runners=SocketRunners(path)).close()

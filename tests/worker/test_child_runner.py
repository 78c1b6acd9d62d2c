"""An executor and its child runner: two processes, either of which may be lost."""

import asyncio
import os
import pathlib
import signal
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.worker.output_collector import OutputCollector, discard
from workron_runner import event_loop, protocol
from workron_runner.protocol import Frame
from workron_worker.executor import (
    Acknowledge,
    CommandEnd,
    CommandTask,
    OnOutput,
    RunnerLostError,
    StartError,
)
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import ChildRunner, ChildRunners

Make = Callable[..., CommandTask]


def _pid(executor: RunnerExecutor) -> int:
    assert isinstance(executor._runner, ChildRunner)
    return executor._runner.pid


async def test_commands_are_dead_when_the_loss_of_their_runner_is_reported(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    collector = OutputCollector()
    command = "trap '' TERM; setsid sleep 1000 & echo $! $$; sleep 1000; sleep 1000"
    run = asyncio.ensure_future(run_task(executor, make(command), collector))
    await collector.wait()
    os.kill(_pid(executor), signal.SIGKILL)
    with pytest.raises(RunnerLostError, match="the runner was lost: it has disconnected"):
        await run
    assert [lives(int(pid)) for pid in collector.received.split()] == [False, False]


async def test_next_command_gets_a_new_runner_when_the_runner_was_lost(
    executor: RunnerExecutor, make: Make
) -> None:
    lost = _pid(executor)
    run = asyncio.ensure_future(run_task(executor, make("exec sleep 1000"), discard))
    os.kill(lost, signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert (await run_task(executor, make("echo again"), discard)).output == b"again\n"
    assert _pid(executor) != lost


async def test_command_is_run_by_the_next_runner_when_it_starts_during_a_loss(
    executor: RunnerExecutor, make: Make
) -> None:
    await run_task(executor, make("true"), None)
    assert executor._runner is not None
    loop, runs = asyncio.get_running_loop(), list[asyncio.Task[CommandEnd]]()
    on_lost = executor._runner._on_lost

    def start_and_lose(reason: str) -> None:
        # Before the cleanup that the loss begins.
        runs.append(loop.create_task(run_task(executor, make("echo on"), None)))
        on_lost(reason)

    executor._runner._on_lost = start_and_lose
    os.kill(_pid(executor), signal.SIGKILL)
    while not runs:
        await asyncio.sleep(0)
    assert (await runs[0]).output == b"on\n"
    assert (await run_task(executor, make("echo on"), None)).output == b"on\n"


async def test_task_ends_when_it_is_cancelled_as_its_command_ends(
    executor: RunnerExecutor, make: Make
) -> None:
    run = asyncio.ensure_future(run_task(executor, make("true"), None))
    notify = executor._notify_ended

    def cancel_and_notify() -> None:
        run.cancel()
        notify()

    executor._notify_ended = cancel_and_notify  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_runner_gets_no_deadline_before_its_first_command(executor: RunnerExecutor) -> None:
    for _ in range(1000):
        executor.set_deadline(event_loop.boottime() + 10)
    assert executor._runner is not None
    assert not executor._runner._connection.has_unsent


async def test_command_is_killed_by_the_runner_when_the_deadline_has_passed(
    executor: RunnerExecutor, make: Make
) -> None:
    executor.set_deadline(event_loop.boottime() + 0.1)
    ended = await run_task(executor, make("exec sleep 1000"), discard)
    assert ended.is_killed
    assert ended.reason is None


async def test_deadline_applies_to_a_new_runner(executor: RunnerExecutor, make: Make) -> None:
    executor.set_deadline(event_loop.boottime())
    run = asyncio.ensure_future(
        run_task(executor, make("exec sleep 1000", outlives_lease=True), discard)
    )
    os.kill(_pid(executor), signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert (await run_task(executor, make("true"), discard)).is_past_deadline


async def test_attempt_ends_with_the_error_that_its_listener_raises(
    executor: RunnerExecutor, make: Make
) -> None:
    def refuse(_: bytes, __: Acknowledge) -> None:
        raise ValueError("the listener failed")

    with pytest.raises(ValueError, match="the listener failed"):
        await run_task(executor, make("echo; exec sleep 1000"), refuse)
    assert (await run_task(executor, make("echo on"), discard)).output == b"on\n"


@pytest.mark.parametrize(("on_output", "is_sent"), [(None, False), (discard, True)])
async def test_output_is_sent_only_when_it_has_a_listener(
    executor: RunnerExecutor,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    on_output: OnOutput | None,
    is_sent: bool,
) -> None:
    kinds = set[int]()
    await run_task(executor, make("true"), None)
    assert executor._runner is not None
    on_frame = executor._runner._on_frame

    def spy(frame: Frame) -> None:
        kinds.add(frame.kind)
        on_frame(frame)

    monkeypatch.setattr(executor._runner, "_on_frame", spy)
    await run_task(executor, make("echo out"), on_output)
    assert (protocol.FrameKind.OUTPUT in kinds) is is_sent
    assert protocol.FrameKind.CAPTURED in kinds


async def test_memory_stays_bounded_when_a_command_writes_much(
    executor: RunnerExecutor, make: Make
) -> None:
    received = 0

    def count(data: bytes, acknowledge: Acknowledge) -> None:
        nonlocal received
        received += len(data)
        acknowledge(len(data))

    await run_task(executor, make("true"), discard)
    before = [_peak(os.getpid()), _peak(_pid(executor))]
    await run_task(executor, make("head -c 200000000 /dev/zero"), count)
    after = [_peak(os.getpid()), _peak(_pid(executor))]
    assert received == 200_000_000
    assert [b - a < 8_000_000 for a, b in zip(before, after, strict=True)] == [True, True]


async def test_command_is_not_started_when_it_is_killed_before_its_runner_is_connected(
    executor: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_task(executor, make("true"), discard)
    os.kill(_pid(executor), signal.SIGKILL)
    task, may_start = make("echo on"), asyncio.Event()
    while executor._runner is not None:
        await asyncio.sleep(0)

    async def start_later(work: Callable[..., object], *arguments: object) -> object:
        await may_start.wait()
        return work(*arguments)

    monkeypatch.setattr("asyncio.to_thread", start_later)
    run = asyncio.ensure_future(run_task(executor, task, discard))
    await asyncio.sleep(0)
    executor.kill(task.claim)
    may_start.set()
    ended = await run
    assert ended.is_killed
    assert ended.output == b""


async def test_runner_is_ended_when_the_executor_is_closed_during_its_start(
    executor: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_task(executor, make("true"), discard)
    os.kill(_pid(executor), signal.SIGKILL)
    while executor._runner is not None:
        await asyncio.sleep(0)
    started = list[ChildRunner]()

    class ClosingRunners(ChildRunners):
        def connect(self, boot: uuid.UUID) -> ChildRunner:
            started.append(super().connect(boot))
            executor.close()
            return started[0]

    monkeypatch.setattr(executor, "_runners", ClosingRunners())
    assert (await run_task(executor, make("echo on"), discard)).is_killed
    while executor._tasks:
        await asyncio.sleep(0)
    assert started[0]._child.returncode is not None


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("pass", "it did not answer"),
        ("import os; os.write(fd, b'\\377' * 5)", "a frame of"),
        ("send(protocol.Hello(2, '', 0))", "it speaks version 2, not 1"),
        ("send(protocol.Hello(1, '', 5))", "another CLOCK_BOOTTIME"),
        ("send(protocol.Deadline(1))", "it began with Deadline"),
        ("send(protocol.Shutdown('no memory'))", "did not start: no memory"),
    ],
)
def test_child_runner_is_rejected_when_its_hello_is_wrong(
    program: str, message: str, boot: uuid.UUID
) -> None:
    prelude = (
        "import os, sys; from workron_runner import protocol; fd = int(sys.argv[2])\n"
        "def send(message): os.write(fd, protocol.encode(message))\n"
    )
    runners = ChildRunners(command=(sys.executable, "-c", prelude + program))
    with pytest.raises(StartError, match=message):
        RunnerExecutor(grace=timedelta(), boot=boot, runners=runners)


async def test_runner_is_started_again_when_it_was_killed_during_its_start(
    boot: uuid.UUID, tmp_path: pathlib.Path, make: Make
) -> None:
    killed_once = f'mkdir {tmp_path}/killed && kill -9 $$; exec "$0" "$@"'
    runners = ChildRunners(command=("sh", "-c", killed_once, *ChildRunners().command))
    executor = RunnerExecutor(grace=timedelta(), boot=boot, runners=runners)
    assert (await run_task(executor, make("echo on"), None)).output == b"on\n"
    executor.close()


def test_no_descriptor_is_left_when_a_child_runner_has_ended() -> None:
    descriptors = pathlib.Path("/proc/self/fd")
    before = {one.name for one in descriptors.iterdir()}
    ChildRunners().connect(uuid.uuid4()).close()
    assert {one.name for one in descriptors.iterdir()} <= before


def test_start_error_is_raised_when_a_runner_cannot_be_started(
    boot: uuid.UUID,
) -> None:
    runners = ChildRunners(command=("/no/such/python",))
    with pytest.raises(StartError, match="cannot start a runner: No such file"):
        RunnerExecutor(grace=timedelta(), boot=boot, runners=runners)


async def test_runner_is_lost_when_it_sends_a_wrong_message(
    executor: RunnerExecutor, make: Make
) -> None:
    collector = OutputCollector()
    run = asyncio.ensure_future(run_task(executor, make("echo on; exec sleep 1000"), collector))
    await collector.wait()
    assert executor._runner is not None
    on_frame = executor._runner._on_frame

    def receive_start(_: Frame) -> None:
        on_frame(Frame(protocol.FrameKind.START, b"{}"))

    executor._runner._on_frame = receive_start
    with pytest.raises(RunnerLostError, match=r"Start\.claim is None"):
        await asyncio.gather(run, run_task(executor, make("echo"), discard))


async def test_runner_is_lost_when_it_cannot_be_understood(
    executor: RunnerExecutor, make: Make
) -> None:
    collector = OutputCollector()
    run = asyncio.ensure_future(run_task(executor, make("echo on; exec sleep 1000"), collector))
    await collector.wait()
    assert executor._runner is not None
    on_frame = executor._runner._on_frame
    executor._runner._on_frame = lambda _: on_frame(Frame(protocol.FrameKind.ENDED, b"[" * 100_000))
    with pytest.raises(RunnerLostError, match="cannot understand it: RecursionError"):
        await asyncio.gather(run, run_task(executor, make("echo"), discard))


def _peak(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

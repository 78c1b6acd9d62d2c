"""What only the executor over a runner has to get right: two processes, either of which may die."""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from tests.worker.ear import Ear
from workron_runner import event_loop, protocol
from workron_runner.connection import FrameConnection
from workron_runner.protocol import Frame
from workron_worker import runner_connection
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


def _ignore(data: bytes, done: Acknowledge) -> None:
    done(len(data))


@pytest.fixture
def runner(
    boot: uuid.UUID, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunnerExecutor]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot)
    yield executor
    executor.close()
    assert list(tmp_path.glob("workron-*")) == []


def _pid(executor: RunnerExecutor) -> int:
    assert isinstance(executor._runner, ChildRunner)
    return executor._runner.pid


async def test_lost_runner_is_told_of_when_nothing_of_its_commands_is_left(
    runner: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    ear = Ear()
    command = "trap '' TERM; setsid sleep 1000 & echo $! $$; sleep 1000; sleep 1000"
    run = asyncio.ensure_future(run_task(runner, make(command), ear))
    await ear.wait()
    os.kill(_pid(runner), signal.SIGKILL)
    with pytest.raises(RunnerLostError, match="the runner was lost: it has disconnected"):
        await run
    assert [lives(int(pid)) for pid in ear.heard.split()] == [False, False]


async def test_command_after_a_lost_runner_gets_a_new_one(
    runner: RunnerExecutor, make: Make
) -> None:
    lost = _pid(runner)
    run = asyncio.ensure_future(run_task(runner, make("exec sleep 1000"), _ignore))
    os.kill(lost, signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert (await run_task(runner, make("echo again"), _ignore)).output == b"again\n"
    assert _pid(runner) != lost


async def test_command_that_comes_as_the_runner_is_lost_is_run_by_the_next(
    runner: RunnerExecutor, make: Make
) -> None:
    await run_task(runner, make("true"), None)
    assert runner._runner is not None
    loop, runs = asyncio.get_running_loop(), list[asyncio.Task[CommandEnd]]()
    lose = runner._runner._on_lost

    def lose_and_begin(why: str) -> None:
        # Before what the loss begins has had a turn.
        runs.append(loop.create_task(run_task(runner, make("echo on"), None)))
        lose(why)

    runner._runner._on_lost = lose_and_begin
    os.kill(_pid(runner), signal.SIGKILL)
    while not runs:
        await asyncio.sleep(0)
    assert (await runs[0]).output == b"on\n"
    assert (await run_task(runner, make("echo on"), None)).output == b"on\n"


async def test_run_that_is_given_up_when_its_command_has_ended_ends(
    runner: RunnerExecutor, make: Make
) -> None:
    run = asyncio.ensure_future(run_task(runner, make("true"), None))
    tell = runner._notify_ended

    def give_up_and_tell() -> None:
        run.cancel()
        tell()

    runner._notify_ended = give_up_and_tell  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_runner_that_has_run_nothing_yet_is_told_nothing(runner: RunnerExecutor) -> None:
    for _ in range(1000):
        runner.set_deadline(event_loop.boottime() + 10)
    assert runner._runner is not None
    assert not runner._runner._connection.has_unsent


async def test_deadline_ends_what_runs_even_while_the_agent_does_nothing(
    runner: RunnerExecutor, make: Make
) -> None:
    runner.set_deadline(event_loop.boottime() + 0.1)
    ended = await run_task(runner, make("exec sleep 1000"), _ignore)
    assert ended.is_killed
    assert ended.reason is None


async def test_deadline_holds_for_a_new_runner_too(runner: RunnerExecutor, make: Make) -> None:
    runner.set_deadline(event_loop.boottime())
    run = asyncio.ensure_future(
        run_task(runner, make("exec sleep 1000", outlives_lease=True), _ignore)
    )
    os.kill(_pid(runner), signal.SIGKILL)
    with pytest.raises(RunnerLostError):
        await run
    assert (await run_task(runner, make("true"), _ignore)).is_past_deadline


async def test_error_of_who_hears_the_output_is_that_of_the_run(
    runner: RunnerExecutor, make: Make
) -> None:
    def refuse(_: bytes, __: Acknowledge) -> None:
        raise ValueError("I do not want this")

    with pytest.raises(ValueError, match="I do not want this"):
        await run_task(runner, make("echo; exec sleep 1000"), refuse)
    assert (await run_task(runner, make("echo on"), _ignore)).output == b"on\n"


@pytest.mark.parametrize(("on_output", "is_sent"), [(None, False), (_ignore, True)])
async def test_output_is_sent_only_if_somebody_hears_it(
    runner: RunnerExecutor,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    on_output: OnOutput | None,
    is_sent: bool,
) -> None:
    kinds = set[int]()
    await run_task(runner, make("true"), None)
    assert runner._runner is not None
    hear = runner._runner._on_frame

    def spy(frame: Frame) -> None:
        kinds.add(frame.kind)
        hear(frame)

    monkeypatch.setattr(runner._runner, "_on_frame", spy)
    await run_task(runner, make("echo out"), on_output)
    assert (protocol.FrameKind.OUTPUT in kinds) is is_sent
    assert protocol.FrameKind.CAPTURED in kinds


async def test_slow_ear_slows_its_command_and_neither_agent_nor_runner_grows(
    runner: RunnerExecutor, make: Make
) -> None:
    heard = 0

    def hear(chunk: bytes, done: Acknowledge) -> None:
        nonlocal heard
        heard += len(chunk)
        done(len(chunk))

    await run_task(runner, make("true"), _ignore)
    before = [_peak(os.getpid()), _peak(_pid(runner))]
    await run_task(runner, make("head -c 200000000 /dev/zero"), hear)
    after = [_peak(os.getpid()), _peak(_pid(runner))]
    assert heard == 200_000_000
    assert [b - a < 8_000_000 for a, b in zip(before, after, strict=True)] == [True, True]


async def test_kill_while_a_runner_is_being_started_starts_nothing(
    runner: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_task(runner, make("true"), _ignore)
    os.kill(_pid(runner), signal.SIGKILL)
    task, may_start = make("echo on"), asyncio.Event()
    while runner._runner is not None:
        await asyncio.sleep(0)

    async def wait(work: Callable[..., object], *given: object) -> object:
        await may_start.wait()
        return work(*given)

    monkeypatch.setattr("asyncio.to_thread", wait)
    run = asyncio.ensure_future(run_task(runner, task, _ignore))
    await asyncio.sleep(0)
    runner.kill(task.claim)
    may_start.set()
    ended = await run
    assert ended.is_killed
    assert ended.output == b""


async def test_runner_that_is_being_started_as_all_is_closed_is_ended(
    runner: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_task(runner, make("true"), _ignore)
    os.kill(_pid(runner), signal.SIGKILL)
    while runner._runner is not None:
        await asyncio.sleep(0)
    started = list[ChildRunner]()

    class ClosingRunners(ChildRunners):
        def connect(self, boot: uuid.UUID) -> ChildRunner:
            started.append(super().connect(boot))
            runner.close()
            return started[0]

    monkeypatch.setattr(runner, "_runners", ClosingRunners())
    assert (await run_task(runner, make("echo on"), _ignore)).is_killed
    while runner._tasks:
        await asyncio.sleep(0)
    assert started[0]._child.returncode is not None


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("pass", "it did not answer"),
        ("import os; os.write(fd, b'\\377' * 5)", "a frame of"),
        ("say(protocol.Hello(2, '', 0))", "it speaks version 2, not 1"),
        ("say(protocol.Hello(1, '', 5))", "another CLOCK_BOOTTIME"),
        ("say(protocol.Deadline(1))", "it began with Deadline"),
        ("say(protocol.Shutdown('tired'))", "did not start: tired"),
    ],
)
def test_runner_that_begins_wrong_is_not_kept(
    program: str, words: str, boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    prelude = (
        "import os, sys; from workron_runner import protocol; fd = int(sys.argv[2])\n"
        "def say(one): os.write(fd, protocol.encode(one))\n"
    )
    monkeypatch.setattr(
        runner_connection, "_RUNNER_COMMAND", (sys.executable, "-c", prelude + program)
    )
    with pytest.raises(StartError, match=words):
        RunnerExecutor(grace=timedelta(), boot=boot)


async def test_runner_that_was_killed_as_it_began_is_begun_again(
    boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    usual = runner_connection._RUNNER_COMMAND
    commands = [("sh", "-c", "kill -9 $$"), usual]
    start = runner_connection._start_process

    def start_next(arguments: list[str]) -> tuple[subprocess.Popen[bytes], FrameConnection]:
        monkeypatch.setattr(runner_connection, "_RUNNER_COMMAND", commands.pop(0))
        return start(arguments)

    monkeypatch.setattr(runner_connection, "_start_process", start_next)
    executor = RunnerExecutor(grace=timedelta(), boot=boot)
    assert (await run_task(executor, make("echo on"), None)).output == b"on\n"
    executor.close()


def test_runner_that_cannot_be_started_is_named(
    boot: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_connection, "_RUNNER_COMMAND", ("/no/such/python",))
    with pytest.raises(StartError, match="cannot start a runner: No such file"):
        RunnerExecutor(grace=timedelta(), boot=boot)


async def test_runner_that_says_what_it_must_not_is_given_up(
    runner: RunnerExecutor, make: Make
) -> None:
    ear = Ear()
    run = asyncio.ensure_future(run_task(runner, make("echo on; exec sleep 1000"), ear))
    await ear.wait()
    assert runner._runner is not None
    hear = runner._runner._on_frame

    def mishear(_: Frame) -> None:
        hear(Frame(protocol.FrameKind.START, b"{}"))

    runner._runner._on_frame = mishear
    with pytest.raises(RunnerLostError, match=r"Start\.claim is None"):
        await asyncio.gather(run, run_task(runner, make("echo"), _ignore))


async def test_runner_that_cannot_be_understood_is_given_up(
    runner: RunnerExecutor, make: Make
) -> None:
    ear = Ear()
    run = asyncio.ensure_future(run_task(runner, make("echo on; exec sleep 1000"), ear))
    await ear.wait()
    assert runner._runner is not None
    hear = runner._runner._on_frame
    runner._runner._on_frame = lambda _: hear(Frame(protocol.FrameKind.ENDED, b"[" * 100_000))
    with pytest.raises(RunnerLostError, match="cannot understand it: RecursionError"):
        await asyncio.gather(run, run_task(runner, make("echo"), _ignore))


def _peak(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

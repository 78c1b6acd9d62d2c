"""The executor that has commands run by a runner, in another process.

When the runner is lost, its commands are killed first, and only then do their attempts end with
RunnerLostError, so that no job ever runs twice at the same time. The next command starts a new
runner; where runners are external, nothing is claimed until one has connected.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog

from workron import retry
from workron.core.ids import ClaimId
from workron_runner import protocol
from workron_runner.protocol import Ended, Frame, FrameKind, Message, ProtocolError, Refused
from workron_worker import outcome
from workron_worker.executor import (
    WINDOW_BYTES,
    CommandEnd,
    CommandTask,
    OnEnd,
    OnOutput,
    RunnerLostError,
    StartError,
)
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_connection import ChildRunners, RunnerConnection, Runners


@dataclass(slots=True)
class ActiveCommand:
    """A task, and what the runner has sent about it so far."""

    task: CommandTask
    on_end: OnEnd
    on_output: OnOutput | None
    is_sent: bool = False
    """Whether the runner knows of it, so that it is lost together with the runner."""
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""


_ENCODER: Final = msgspec.json.Encoder()
_ENDED_DECODER: Final = msgspec.json.Decoder(Ended)
_BYTES_KINDS: Final = frozenset({FrameKind.OUTPUT, FrameKind.CAPTURED, FrameKind.RESULT})
_CHILD_RUNNERS: Final = ChildRunners()
_CONNECT_BACKOFF: Final = retry.RetryBackoff(first=0.2, longest=0.2)
_WAIT_FOR_RUNNER_SECONDS: Final = 900
"""Kubernetes waits for at most 300 s before it restarts a container."""

_log = structlog.get_logger(__name__)


def encode_start(task: CommandTask, grace_seconds: float, *, is_streamed: bool) -> bytes:
    """Encode a Start message; faster than `protocol.encode`, because every attempt needs one."""
    command, timeout = task.command, task.timeout
    fields = {
        "claim": task.claim.hex,
        "argv": [*task.shell, command] if isinstance(command, str) else command,
        "environment": task.environment,
        "inputs": json.dumps(task.inputs, ensure_ascii=False) if task.inputs else "{}",
        "output_limit_bytes": task.output_limit_bytes,
        "window_bytes": WINDOW_BYTES if is_streamed else 0,
        "workdir": task.workdir,
        "timeout": None if timeout is None else timeout.total_seconds(),
        "grace": grace_seconds,
        "outlives_deadline": task.outlives_lease,
    }
    try:
        payload = _ENCODER.encode(fields)
    except UnicodeEncodeError:
        # A lone surrogate stands for a byte that is not UTF-8; the standard library escapes it.
        payload = json.dumps(fields).encode()
    return protocol.encode_frame(FrameKind.START, payload)


def decode_message(frame: Frame) -> Message:
    """Decode a message, an Ended faster than `protocol.decode`, which names what is wrong."""
    if frame.kind == FrameKind.ENDED:
        try:
            return _ENDED_DECODER.decode(frame.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    return protocol.decode(frame.kind, frame.payload)


class RunnerExecutor:
    """Runs commands in a runner; knows nothing of stores, leases or retries."""

    def __init__(
        self,
        *,
        grace: timedelta,
        boot: UUID,
        runners: Runners = _CHILD_RUNNERS,
        metrics: WorkerMetrics | None = None,
        wait_seconds: float = _WAIT_FOR_RUNNER_SECONDS,
    ) -> None:
        """Create it; `wait_seconds` is how long `keep_ready` waits for an external runner."""
        self._runners = runners
        self._metrics = metrics or WorkerMetrics()
        self._grace = grace.total_seconds()
        self._wait_seconds = wait_seconds
        self.boot = boot
        self._deadline = inf
        self._commands: dict[str, ActiveCommand] = {}
        self._ended: list[tuple[OnEnd, CommandEnd | Exception]] = []
        self._connect_lock = asyncio.Lock()
        self._is_attached = False
        self._is_closed = False
        self._runner_lost = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleanup: asyncio.Task[None] | None = None
        # A child is started now: if that fails, the worker must not begin.
        self._runner: RunnerConnection | None = (
            None if runners.are_external else runners.connect(boot)
        )

    @property
    def is_ready(self) -> bool:
        """Whether a command could be started now; else nothing should be claimed."""
        return self._runner is not None or not self._runners.are_external

    async def keep_ready(self, on_ready: Callable[[], object]) -> None:
        """Call `on_ready` whenever an external runner is connected, and connect to the next one.

        Returns if it is always ready; raises StartError if it finds no runner for 15 minutes.
        """
        while self._runners.are_external:
            self._runner_lost.clear()
            await self._wait_for_runner()
            on_ready()
            await self._runner_lost.wait()

    async def _wait_for_runner(self) -> None:
        began, metrics = time.monotonic(), self._metrics
        metrics.runner_problem = "waiting for a runner"

        def not_connected(error: StartError, _: float) -> None:
            if time.monotonic() - began >= self._wait_seconds:
                raise error
            if metrics.runner_problem != str(error):
                metrics.runner_problem = str(error)
                _log.info("waiting for runner", reason=str(error))

        await retry.retry(
            self._connect, errors=StartError, backoff=_CONNECT_BACKOFF, on_retry=not_connected
        )
        metrics.runner_problem = None
        _log.info("runner connected", waited_seconds=round(time.monotonic() - began, 3))

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        """Run one attempt; all of its processes are dead when `on_end` is called.

        Without `on_output` the command never blocks on its output. Unacknowledged output does not
        delay the end. The error is a StartError (not the job's fault), a RunnerLostError (unknown),
        or what `on_output` has raised.
        """
        command = self._commands[task.claim.hex] = ActiveCommand(task, on_end, on_output)
        if self._is_attached and self._runner is not None:
            self._send_start(command, self._runner)
        else:
            _ = self._create_task(self._start_when_connected(command))

    def kill(self, claim: ClaimId) -> None:
        """Kill an attempt, if it still runs: SIGTERM, and SIGKILL after the grace."""
        command = self._commands.get(claim.hex)
        if command is not None and not command.is_killed:
            command.is_killed = True
            self._send(protocol.encode(protocol.Kill(claim.hex, self._grace)))

    def set_deadline(self, at: float) -> None:
        """Kill everything at that time of CLOCK_BOOTTIME, unless called again before.

        Nothing starts after it, either. Tasks with `outlives_lease` are spared.
        """
        self._deadline = at
        self._send(protocol.encode(protocol.Deadline(at)))

    def close(self) -> None:
        """Kill everything, and return when the runner has ended and its folder is removed."""
        self._is_closed = True
        if self._runner is not None:
            self._runner.close()
        self._runners.clean_up(self.boot)
        self._ended += [(one.on_end, CommandEnd(is_killed=True)) for one in self._commands.values()]
        self._commands.clear()
        self._notify_ended()

    def _create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _end(self, command: ActiveCommand, end: CommandEnd | Exception) -> None:
        """Call `on_end` soon, together with all that end in this iteration of the loop."""
        del self._commands[command.task.claim.hex]
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._notify_ended)
        self._ended.append((command.on_end, end))

    def _notify_ended(self) -> None:
        ended, self._ended = self._ended, []
        for on_end, end in ended:
            on_end(end)

    async def _connect(self) -> RunnerConnection:
        async with self._connect_lock:
            if self._cleanup is not None:
                # The processes of a lost runner are dead before there is another one.
                await asyncio.wait([self._cleanup])
            if self._runner is None:
                self._runner = await asyncio.to_thread(self._connect_blocking)
            if not self._is_attached:
                self._is_attached = True
                self._runner.attach(self._frame_received, self._lost)
                if self._deadline < inf:
                    self._send(protocol.encode(protocol.Deadline(self._deadline)))
            return self._runner

    def _send(self, frames: bytes) -> None:
        # A runner that is not attached yet runs nothing.
        if self._runner is not None and self._is_attached:
            self._runner.send(frames)

    def _connect_blocking(self) -> RunnerConnection:
        runner = self._runners.connect(self.boot)
        if self._is_closed:
            # Closed meanwhile; nothing else would shut this runner down.
            runner.close()
            raise StartError("the executor is closed")
        return runner

    async def _start_when_connected(self, command: ActiveCommand) -> None:
        try:
            runner = await self._connect()
            if command.is_killed:
                self._end(command, CommandEnd(is_killed=True))
            else:
                self._send_start(command, runner)
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt must end
            self._end(command, error)

    def _send_start(self, command: ActiveCommand, runner: RunnerConnection) -> None:
        is_streamed = command.on_output is not None
        runner.send(encode_start(command.task, self._grace, is_streamed=is_streamed))
        command.is_sent = True

    def _frame_received(self, frame: Frame) -> None:
        if frame.kind in _BYTES_KINDS:
            claim, data = protocol.decode_bytes(frame.payload)
            if command := self._commands.get(claim):
                self._bytes_received(command, frame.kind, data)
            return
        message = decode_message(frame)
        if not isinstance(message, Ended | Refused):
            raise ProtocolError(f"an agent takes no {type(message).__name__}")
        command = self._commands.get(message.claim)
        if command is None:
            return
        task, is_killed = command.task, command.is_killed
        if isinstance(message, Refused):
            self._end(command, outcome.judge_refusal(task, message))
        # After a kill that the agent did not ask for the runner is shutting down, and will be lost.
        elif is_killed or message.cause != "kill":
            end = outcome.judge_end(
                task, message, command.output, command.result, is_killed=is_killed
            )
            self._end(command, end)

    def _bytes_received(self, command: ActiveCommand, kind: int, data: bytes) -> None:
        if kind == FrameKind.CAPTURED:
            command.output = data
        elif kind == FrameKind.RESULT:
            command.result = data
        elif command.on_output is not None:
            claim = command.task.claim.hex

            def acknowledge(count: int) -> None:
                self._send(protocol.encode(protocol.Credit(claim, count)))

            try:
                command.on_output(data, acknowledge)
            except Exception as error:  # noqa: BLE001 - the listener's error ends the attempt
                self._end(command, error)
                self._send(protocol.encode(protocol.Kill(claim, 0)))
                acknowledge(len(data))

    def _lost(self, reason: str) -> None:
        lost, self._runner = self._runner, None
        self._is_attached = False
        self._runner_lost.set()
        if lost is not None:
            self._cleanup = self._create_task(self._clean_up(lost, reason))

    async def _clean_up(self, lost: RunnerConnection, reason: str) -> None:
        """Kill what a lost runner left, and only then end its attempts."""
        try:
            await asyncio.to_thread(lost.disconnect_and_wait)
            await asyncio.to_thread(self._runners.clean_up, self.boot)
        except OSError as error:
            reason = f"{reason}; not everything that it left could be killed: {error}"
        commands = [one for one in self._commands.values() if one.is_sent]
        for command in commands:
            self._end(command, RunnerLostError(reason, is_alone=len(commands) == 1))


async def run_task(
    executor: RunnerExecutor, task: CommandTask, on_output: OnOutput | None = None
) -> CommandEnd:
    """Run one attempt and wait for its end; if cancelled, kill it first."""
    ended: asyncio.Future[CommandEnd] = asyncio.get_running_loop().create_future()

    def on_end(end: CommandEnd | Exception) -> None:
        if ended.done():
            return
        if isinstance(end, Exception):
            ended.set_exception(end)
        else:
            ended.set_result(end)

    executor.start(task, on_end, on_output)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        executor.kill(task.claim)
        await asyncio.gather(ended, return_exceptions=True)
        raise

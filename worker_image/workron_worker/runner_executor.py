"""The executor over a runner: commands run in another process, which outlives no agent.

Fills the port in `executor`. When the runner is lost, what it ran is ended here, and only then is
that said, so that nothing is run again beside itself; the next command gets a new runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from workron_runner import messages
from workron_runner.frame import ProtocolError
from workron_runner.messages import Ended as Told
from workron_runner.messages import Kind, Refused
from workron_runner.refusal import Refusal
from workron_worker import judge, orphans, result
from workron_worker.executor import RunnerLostError, StartError
from workron_worker.runner_process import RunnerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_runner.frame import Frame
    from workron_worker.executor import Ended, Task

_WINDOW_BYTES: Final = 256 * 1024
"""So much output of one command may be on its way here; then it waits in its own pipe."""


@dataclass(slots=True)
class _Attempt:
    task: Task
    on_output: Callable[[bytes], None]
    future: asyncio.Future[Ended]
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""
    is_settled: bool = False

    def settle(self, outcome: Ended | Exception) -> None:
        """Have `run` return or raise this; from any thread."""
        self.is_settled = True
        # Its loop may be over, and then nobody waits for this any more.
        with contextlib.suppress(RuntimeError):
            self.future.get_loop().call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: Ended | Exception) -> None:
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class RunnerExecutor:
    """Runs as many commands at once as it is asked to."""

    def __init__(self, *, grace: timedelta, boot: UUID) -> None:
        self._grace = grace
        self._boot = boot
        self._deadline = inf
        self._is_closing = False
        self._attempts: dict[str, _Attempt] = {}
        self._starting = asyncio.Lock()
        self._process: RunnerProcess | None = self._start()

    async def run(self, task: Task, on_output: Callable[[bytes], None]) -> Ended:
        """Run one attempt to its end; see the port."""
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        attempt = self._attempts[task.claim.hex] = _Attempt(task, on_output, future)
        try:
            process = await self._ready()
            if attempt.is_killed:
                return judge.killed(b"")
            process.send(messages.encode(self._order(task)))
            return await self._end_of(attempt, process)
        finally:
            del self._attempts[task.claim.hex]

    def kill(self, claim: ClaimId) -> None:
        """End an attempt, if it still runs."""
        attempt = self._attempts.get(claim.hex)
        if attempt is not None and not attempt.is_killed:
            attempt.is_killed = True
            grace = self._grace.total_seconds()
            self._send(messages.encode(messages.Kill(claim.hex, grace)))

    def hold_until(self, at: float) -> None:
        """Let what runs live until that moment of CLOCK_BOOTTIME, unless this is called again."""
        self._deadline = at
        self._send(messages.encode(messages.Deadline(at)))

    def close(self) -> None:
        """End everything, and return when the runner is gone and its folder with it."""
        self._is_closing = True
        if self._process is not None:
            self._process.close()
        orphans.end(self._boot)

    async def _ready(self) -> RunnerProcess:
        async with self._starting:
            if self._process is None:
                process = await asyncio.to_thread(self._start)
                # It may have been lost before it was known here.
                self._process = None if process.is_lost else process
                return process
            return self._process

    def _start(self) -> RunnerProcess:
        process = RunnerProcess(self._boot, self._hear, self._lose)
        if self._deadline < inf:
            process.send(messages.encode(messages.Deadline(self._deadline)))
        return process

    async def _end_of(self, attempt: _Attempt, process: RunnerProcess) -> Ended:
        is_over = False
        try:
            ended = await attempt.future
            is_over = True
            return ended
        finally:
            if not is_over:
                # Given up by who asked for it, or by who heard its output.
                process.send(messages.encode(messages.Kill(attempt.task.claim.hex, 0)))

    def _send(self, frames: bytes) -> None:
        if self._process is not None:
            self._process.send(frames)

    def _order(self, task: Task) -> messages.Run:
        is_shell = isinstance(task.command, str)
        return messages.Run(
            claim=task.claim.hex,
            argv=["sh", "-c", str(task.command)] if is_shell else list(task.command),
            environment=dict(task.environment),
            inputs=json.dumps(task.inputs, ensure_ascii=False),
            output_bytes=task.output_bytes,
            window=_WINDOW_BYTES,
            workdir=task.workdir,
            timeout=None if task.timeout is None else task.timeout.total_seconds(),
            grace=self._grace.total_seconds(),
            outlives_deadline=task.outlives_lease,
        )

    def _hear(self, frame: Frame) -> None:
        """Take in what the runner says; on its thread."""
        if frame.kind in (Kind.OUTPUT, Kind.KEPT, Kind.RESULT):
            claim, data = messages.decode_bytes(frame.payload)
            if attempt := self._attempts.get(claim):
                self._take(attempt, frame.kind, data)
            return
        message = messages.decode(frame.kind, frame.payload)
        if not isinstance(message, Told | Refused):
            raise ProtocolError(f"{type(message).__name__} is not for an agent")
        attempt = self._attempts.get(message.claim)
        # What a runner killed that nobody asked to is lost with all else: it is about to end.
        is_asked = self._is_closing or (attempt and attempt.is_killed)
        if attempt and (is_asked or not _is_by_runner(message)):
            attempt.settle(_outcome(attempt, message))

    def _take(self, attempt: _Attempt, kind: int, data: bytes) -> None:
        if kind == Kind.KEPT:
            attempt.output = data
        elif kind == Kind.RESULT:
            attempt.result = data
        else:
            try:
                attempt.on_output(data)
            except Exception as error:  # noqa: BLE001 - it belongs to who listens, and goes there
                attempt.settle(error)
            self._send(messages.encode(messages.Credit(attempt.task.claim.hex, len(data))))

    def _lose(self, why: str) -> None:
        """End what a lost runner left; on its thread, the last thing that this does."""
        if not self._is_closing:
            orphans.end(self._boot)
        self._process = None
        fallen = [attempt for attempt in list(self._attempts.values()) if not attempt.is_settled]
        for attempt in fallen:
            attempt.settle(RunnerLostError(why, is_alone=len(fallen) == 1))


def _is_by_runner(told: Told | Refused) -> bool:
    return isinstance(told, Told) and told.because == "kill"


def _outcome(attempt: _Attempt, told: Told | Refused) -> Ended | Exception:
    try:
        if isinstance(told, Refused):
            return judge.refused(attempt.task, Refusal(told.fault == "job", told.what, told.where))
        return _judged(attempt, told)
    except StartError as error:
        return error


def _judged(attempt: _Attempt, told: Told) -> Ended:
    task = attempt.task
    if told.because == "timeout" and task.timeout is not None and not attempt.is_killed:
        return judge.late(task.timeout, attempt.output)
    if told.because == "deadline":
        return judge.overdue(attempt.output)
    if told.because != "itself":
        return judge.killed(attempt.output)
    code = -(told.signal or 0) if told.exit_code is None else told.exit_code
    value = functools.partial(_value, attempt.result, told.result_error)
    return judge.ended(task, code, attempt.output, value)


def _value(raw: bytes, wrong: str | None) -> Any:
    if wrong is not None:
        raise result.ResultError(wrong)
    return result.parse(raw)

"""The executor over a runner: commands run in another process, which outlives no agent.

Fills the port in `executor`. When the runner is lost, what it ran is ended here, and only then is
that said, so that nothing is run again beside itself; the next command gets a new runner.
"""

from __future__ import annotations

import asyncio
import dataclasses
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
from workron_worker import judge, orphans, result, runner_process
from workron_worker.executor import WINDOW_BYTES, RunnerLostError, StartError
from workron_worker.runner_options import RunnerOptions

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_runner.frame import Frame
    from workron_worker.executor import Ended, OnOutput, Task
    from workron_worker.runner_process import RunnerProcess


_USUAL: Final = RunnerOptions()


@dataclass(slots=True)
class _Attempt:
    task: Task
    on_output: OnOutput | None
    future: asyncio.Future[Ended]
    is_ordered: bool = False
    """Whether the runner was told of it, so that it is lost together with it."""
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""
    is_settled: bool = False

    def settle(self, outcome: Ended | Exception) -> None:
        """Have `run` return or raise this."""
        self.is_settled = True
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class RunnerExecutor:
    """Runs as many commands at once as it is asked to."""

    def __init__(self, *, grace: timedelta, boot: UUID, options: RunnerOptions = _USUAL) -> None:
        self._options = options
        self._grace = grace
        self.boot = boot
        self._deadline = inf
        self._attempts: dict[str, _Attempt] = {}
        self._changing = asyncio.Lock()
        self._is_attended = False
        self._burial: asyncio.Task[None] | None = None
        self._process: RunnerProcess | None = runner_process.begun(boot, options)

    async def run(self, task: Task, on_output: OnOutput | None) -> Ended:
        """Run one attempt to its end; see the port."""
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        attempt = self._attempts[task.claim.hex] = _Attempt(task, on_output, future)
        try:
            process = self._process if self._is_attended else None
            process = process or await self._ready()
            if attempt.is_killed:
                return judge.killed(b"")
            attempt.is_ordered = True
            window = 0 if on_output is None else WINDOW_BYTES
            process.send(messages.encode(self._order(task, window)))
            return await self._end_of(attempt)
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
        if self._process is not None:
            self._process.close()
        orphans.end(self.boot)
        for attempt in self._attempts.values():
            attempt.settle(judge.killed(b""))

    async def _ready(self) -> RunnerProcess:
        async with self._changing:
            if self._burial is not None:
                # One at a time: what a lost runner left is dead before there is another.
                await asyncio.wait([self._burial])
            if self._process is None:
                self._process = await asyncio.to_thread(
                    runner_process.begun, self.boot, self._options
                )
            if not self._is_attended:
                self._is_attended = True
                self._process.attend(self._hear, self._lose)
                if self._deadline < inf:
                    self._send(messages.encode(messages.Deadline(self._deadline)))
            return self._process

    async def _end_of(self, attempt: _Attempt) -> Ended:
        try:
            return await attempt.future
        except asyncio.CancelledError:
            if attempt.is_settled:
                raise
            # Given up, which is no fault of its own: it ends as softly as one that is killed.
            attempt.future = asyncio.get_running_loop().create_future()
            self.kill(attempt.task.claim)
            await asyncio.gather(attempt.future, return_exceptions=True)
            raise

    def _send(self, frames: bytes) -> None:
        # To one that nobody listens to yet, nothing is said: it runs nothing.
        if self._process is not None and self._is_attended:
            self._process.send(frames)

    def _order(self, task: Task, window: int) -> messages.Run:
        is_shell = isinstance(task.command, str)
        return messages.Run(
            claim=task.claim.hex,
            argv=["sh", "-c", str(task.command)] if is_shell else list(task.command),
            environment=dict(task.environment),
            inputs=json.dumps(task.inputs, ensure_ascii=False),
            output_bytes=task.output_bytes,
            window=window,
            workdir=task.workdir,
            timeout=None if task.timeout is None else task.timeout.total_seconds(),
            grace=self._grace.total_seconds(),
            outlives_deadline=task.outlives_lease,
        )

    def _hear(self, frame: Frame) -> None:
        """Take in what the runner says."""
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
        if attempt and (attempt.is_killed or not _is_by_runner(message)):
            attempt.settle(_outcome(attempt, message))

    def _take(self, attempt: _Attempt, kind: int, data: bytes) -> None:
        if kind == Kind.KEPT:
            attempt.output = data
        elif kind == Kind.RESULT:
            attempt.result = data
        elif attempt.on_output is not None:
            done = functools.partial(self._credit, attempt.task.claim)
            try:
                attempt.on_output(data, done)
            except Exception as error:  # noqa: BLE001 - it belongs to who listens, and goes there
                attempt.settle(error)
                self._send(messages.encode(messages.Kill(attempt.task.claim.hex, 0)))
                done(len(data))

    def _credit(self, claim: ClaimId, count: int) -> None:
        self._send(messages.encode(messages.Credit(claim.hex, count)))

    def _lose(self, why: str) -> None:
        lost, self._process = self._process, None
        self._is_attended = False
        if lost is not None:
            self._burial = asyncio.get_running_loop().create_task(self._bury(lost, why))

    async def _bury(self, lost: RunnerProcess, why: str) -> None:
        """End what a lost runner left, and only then say so."""
        try:
            await asyncio.to_thread(lost.bury)
            await asyncio.to_thread(self._clear)
        except OSError as error:
            why = f"{why}; not all that it left could be ended: {error}"
        fallen = [one for one in self._attempts.values() if one.is_ordered and not one.is_settled]
        for attempt in fallen:
            attempt.settle(RunnerLostError(why, is_alone=len(fallen) == 1))

    def _clear(self) -> None:
        orphans.end(self.boot)
        self._options.end_all()


def _is_by_runner(told: Told | Refused) -> bool:
    return isinstance(told, Told) and told.because == "kill"


def _outcome(attempt: _Attempt, told: Told | Refused) -> Ended | Exception:
    try:
        if isinstance(told, Refused) and told.fault == "late":
            return judge.overdue(b"")
        if isinstance(told, Refused):
            return judge.refused(attempt.task, Refusal(told.fault == "job", told.what, told.where))
        return dataclasses.replace(_judged(attempt, told), start_seconds=told.start_seconds)
    except StartError as error:
        return error


def _judged(attempt: _Attempt, told: Told) -> Ended:
    task = attempt.task
    if told.because == "timeout" and task.timeout is not None and not attempt.is_killed:
        return judge.late(task.timeout, attempt.output)
    if told.because == "memory" and told.limit_bytes is not None and not attempt.is_killed:
        return judge.out_of_memory(told.limit_bytes, told.peak_bytes, attempt.output)
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

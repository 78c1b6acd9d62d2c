"""The executor over a runner: commands run in another process, which outlives no agent.

Fills the port in `executor`. When the runner is lost, what it ran is ended here, and only then is
that said, so that nothing is run again beside itself; the next command gets a new runner.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workron_runner import messages
from workron_runner.frame import ProtocolError
from workron_runner.messages import Ended as Told
from workron_runner.messages import Kind, Refused
from workron_runner.refusal import Refusal
from workron_worker import codec, judge, orphans, result, runner_process
from workron_worker.executor import RunnerLostError, StartError
from workron_worker.runner_options import RunnerOptions

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_runner.frame import Frame
    from workron_worker.executor import Ended, OnEnd, OnOutput, Task
    from workron_worker.runner_process import RunnerProcess

_USUAL: Final = RunnerOptions()
_BYTES: Final = frozenset({Kind.OUTPUT, Kind.KEPT, Kind.RESULT})


@dataclass(slots=True)
class _Attempt:
    task: Task
    on_end: OnEnd
    on_output: OnOutput | None
    is_ordered: bool = False
    """Whether the runner was told of it, so that it is lost together with it."""
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""


class RunnerExecutor:
    """Runs as many commands at once as it is asked to."""

    def __init__(self, *, grace: timedelta, boot: UUID, options: RunnerOptions = _USUAL) -> None:
        self._options = options
        self._grace = grace.total_seconds()
        self.boot = boot
        self._deadline = inf
        self._attempts: dict[str, _Attempt] = {}
        self._over: list[tuple[OnEnd, Ended | Exception]] = []
        self._changing = asyncio.Lock()
        self._is_attended = False
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._burial: asyncio.Task[None] | None = None
        self._process: RunnerProcess | None = runner_process.begun(boot, options)

    def start(self, task: Task, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        """Run one attempt; see the port."""
        attempt = self._attempts[task.claim.hex] = _Attempt(task, on_end, on_output)
        if self._is_attended and self._process is not None:
            self._order(attempt, self._process)
        else:
            _ = self._later(self._order_when_ready(attempt))

    def kill(self, claim: ClaimId) -> None:
        """End an attempt, if it still runs."""
        attempt = self._attempts.get(claim.hex)
        if attempt is not None and not attempt.is_killed:
            attempt.is_killed = True
            self._send(messages.encode(messages.Kill(claim.hex, self._grace)))

    def hold_until(self, at: float) -> None:
        """Let what runs live until that moment of CLOCK_BOOTTIME, unless this is called again."""
        self._deadline = at
        self._send(messages.encode(messages.Deadline(at)))

    def close(self) -> None:
        """End everything, and return when the runner is gone and its folder with it."""
        self._is_closed = True
        if self._process is not None:
            self._process.close()
        orphans.end(self.boot)
        self._over += [(one.on_end, judge.killed(b"")) for one in self._attempts.values()]
        self._attempts.clear()
        self._tell()

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _settle(self, attempt: _Attempt, outcome: Ended | Exception) -> None:
        """Have it told soon, together with all that end in the same turn of the loop."""
        del self._attempts[attempt.task.claim.hex]
        if not self._over:
            asyncio.get_running_loop().call_soon(self._tell)
        self._over.append((attempt.on_end, outcome))

    def _tell(self) -> None:
        over, self._over = self._over, []
        for on_end, outcome in over:
            on_end(outcome)

    async def _ready(self) -> RunnerProcess:
        async with self._changing:
            if self._burial is not None:
                # One at a time: what a lost runner left is dead before there is another.
                await asyncio.wait([self._burial])
            if self._process is None:
                self._process = await asyncio.to_thread(self._begun)
            if not self._is_attended:
                self._is_attended = True
                self._process.attend(self._hear, self._lose)
                if self._deadline < inf:
                    self._send(messages.encode(messages.Deadline(self._deadline)))
            return self._process

    def _send(self, frames: bytes) -> None:
        # To one that nobody listens to yet, nothing is said: it runs nothing.
        if self._process is not None and self._is_attended:
            self._process.send(frames)

    def _begun(self) -> RunnerProcess:
        process = runner_process.begun(self.boot, self._options)
        if self._is_closed:
            # Meanwhile; nobody would end it any more.
            process.close()
            raise StartError("no command is started any more")
        return process

    async def _order_when_ready(self, attempt: _Attempt) -> None:
        try:
            process = await self._ready()
            if attempt.is_killed:
                self._settle(attempt, judge.killed(b""))
            else:
                self._order(attempt, process)
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for an end is told
            self._settle(attempt, error)

    def _order(self, attempt: _Attempt, process: RunnerProcess) -> None:
        is_heard = attempt.on_output is not None
        process.send(codec.order(attempt.task, self._grace, is_heard=is_heard))
        attempt.is_ordered = True

    def _hear(self, frame: Frame) -> None:
        """Take in what the runner says."""
        if frame.kind in _BYTES:
            claim, data = messages.decode_bytes(frame.payload)
            if attempt := self._attempts.get(claim):
                self._take(attempt, frame.kind, data)
            return
        message = codec.read(frame)
        if not isinstance(message, Told | Refused):
            raise ProtocolError(f"{type(message).__name__} is not for an agent")
        attempt = self._attempts.get(message.claim)
        # What a runner killed that nobody asked to is lost with all else: it is about to end.
        if attempt and (attempt.is_killed or not _is_by_runner(message)):
            self._settle(attempt, _outcome(attempt, message))

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
                self._settle(attempt, error)
                self._send(messages.encode(messages.Kill(attempt.task.claim.hex, 0)))
                done(len(data))

    def _credit(self, claim: ClaimId, count: int) -> None:
        self._send(messages.encode(messages.Credit(claim.hex, count)))

    def _lose(self, why: str) -> None:
        lost, self._process = self._process, None
        self._is_attended = False
        if lost is not None:
            self._burial = self._later(self._bury(lost, why))

    async def _bury(self, lost: RunnerProcess, why: str) -> None:
        """End what a lost runner left, and only then say so."""
        try:
            await asyncio.to_thread(lost.bury)
            await asyncio.to_thread(self._clear)
        except OSError as error:
            why = f"{why}; not all that it left could be ended: {error}"
        fallen = [one for one in self._attempts.values() if one.is_ordered]
        for attempt in fallen:
            self._settle(attempt, RunnerLostError(why, is_alone=len(fallen) == 1))

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
        ended = _judged(attempt, told)
        return msgspec.structs.replace(ended, start_seconds=told.start_seconds)
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

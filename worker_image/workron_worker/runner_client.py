"""The executor over a runner: commands run in another process, which outlives no agent.

Fills the port in `executor`. When the runner is lost, what it ran is ended here, and only then is
that said, so that nothing is run again beside itself; the next command gets a new runner, or, where
none can be started from here, nothing is claimed until one has come.
"""

from __future__ import annotations

import asyncio
import functools
import json
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workron_runner import protocol
from workron_runner.protocol import Ended, Kind, ProtocolError, Refused
from workron_runner.protocol import Ended as Told
from workron_runner.spawn import StartRefusal
from workron_worker import meter, outcome, runner_connection
from workron_worker.executor import WINDOW_BYTES, RunnerLostError, StartError
from workron_worker.runner_connection import ChildRunners

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_runner.protocol import Frame, Message
    from workron_worker.executor import CommandEnd, CommandTask, OnEnd, OnOutput
    from workron_worker.meter import WorkerMeter
    from workron_worker.runner_connection import RunnerConnection, Runners


@dataclass(slots=True)
class RunnerAttempt:
    """What was asked for, and what was heard of it so far."""

    task: CommandTask
    on_end: OnEnd
    on_output: OnOutput | None
    is_ordered: bool = False
    """Whether the runner was told of it, so that it is lost together with it."""
    is_killed: bool = False
    output: bytes = b""
    result: bytes = b""


def is_by_runner(told: Told | Refused) -> bool:
    """Whether the runner ended it by itself, if the agent did not ask for that."""
    return isinstance(told, Told) and told.because == "kill"


def ended_of(attempt: RunnerAttempt, told: Told | Refused) -> CommandEnd | Exception:
    """Say how an attempt ended, or why it did not begin."""
    try:
        if isinstance(told, Refused) and told.fault == "late":
            return outcome.was_overdue(b"")
        if isinstance(told, Refused):
            return outcome.start_refused(
                attempt.task, StartRefusal(told.fault == "job", told.what, told.where)
            )
        ended = _judged(attempt, told)
        return msgspec.structs.replace(ended, start_seconds=told.start_seconds)
    except StartError as error:
        return error


def _judged(attempt: RunnerAttempt, told: Told) -> CommandEnd:
    task = attempt.task
    if told.because == "timeout" and task.timeout is not None and not attempt.is_killed:
        return outcome.timed_out(task.timeout, attempt.output)
    if told.because == "memory" and told.limit_bytes is not None and not attempt.is_killed:
        return outcome.out_of_memory(told.limit_bytes, told.peak_bytes, attempt.output)
    if told.because == "deadline":
        return outcome.was_overdue(attempt.output)
    if told.because != "itself":
        return outcome.was_killed(attempt.output)
    code = -(told.signal or 0) if told.exit_code is None else told.exit_code
    value = functools.partial(_value, attempt.result, told.result_error)
    return outcome.outcome_of_exit(task, code, attempt.output, value)


def _value(raw: bytes, wrong: str | None) -> Any:
    if wrong is not None:
        raise outcome.ResultError(wrong)
    return outcome.parse_result(raw)


_WRITER: Final = msgspec.json.Encoder()
_READER: Final = msgspec.json.Decoder(Ended)


def encode_order(task: CommandTask, grace_seconds: float, *, is_heard: bool) -> bytes:
    """Write the order to run a task as a frame; `is_heard` has its output sent as it comes."""
    command, timeout = task.command, task.timeout
    fields = {
        "claim": task.claim.hex,
        "argv": ["sh", "-c", command] if isinstance(command, str) else command,
        "environment": task.environment,
        "inputs": json.dumps(task.inputs, ensure_ascii=False) if task.inputs else "{}",
        "output_bytes": task.output_bytes,
        "window": WINDOW_BYTES if is_heard else 0,
        "workdir": task.workdir,
        "timeout": None if timeout is None else timeout.total_seconds(),
        "grace": grace_seconds,
        "outlives_deadline": task.outlives_lease,
    }
    try:
        payload = _WRITER.encode(fields)
    except UnicodeEncodeError:
        # Half of a surrogate pair stands for a byte that is no UTF-8; this one writes that down.
        payload = json.dumps(fields).encode()
    return protocol.encode_frame(Kind.RUN, payload)


def read_message(one: Frame) -> Message:
    """Read a message; ProtocolError says what is wrong with it."""
    if one.kind == Kind.ENDED:
        try:
            return _READER.decode(one.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    return protocol.decode(one.kind, one.payload)


_USUAL: Final = ChildRunners()
_BYTES: Final = frozenset({Kind.OUTPUT, Kind.KEPT, Kind.RESULT})


class RunnerExecutor:
    """Runs as many commands at once as it is asked to."""

    def __init__(
        self,
        *,
        grace: timedelta,
        boot: UUID,
        runners: Runners = _USUAL,
        meter: WorkerMeter = meter.NO_METER,
    ) -> None:
        self._runners = runners
        self._meter = meter
        self._grace = grace.total_seconds()
        self.boot = boot
        self._deadline = inf
        self._attempts: dict[str, RunnerAttempt] = {}
        self._over: list[tuple[OnEnd, CommandEnd | Exception]] = []
        self._changing = asyncio.Lock()
        self._is_attended = False
        self._is_closed = False
        self._has_lost = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._burial: asyncio.Task[None] | None = None
        # What can be had at once and is not is a reason not to begin.
        self._process: RunnerConnection | None = (
            None if runners.are_awaited else runners.begin(boot)
        )

    @property
    def is_ready(self) -> bool:
        """Whether there is a runner, or one can be started; see the port."""
        return self._process is not None or not self._runners.are_awaited

    async def keep(self, tell: Callable[[], object]) -> None:
        """Look for a runner whenever there is none and none can be started; see the port."""
        while self._runners.are_awaited:
            self._has_lost.clear()
            await runner_connection.wait_for_runner(self._ready, self._meter)
            tell()
            await self._has_lost.wait()

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        """Run one attempt; see the port."""
        attempt = self._attempts[task.claim.hex] = RunnerAttempt(task, on_end, on_output)
        if self._is_attended and self._process is not None:
            self._order(attempt, self._process)
        else:
            _ = self._later(self._order_when_ready(attempt))

    def kill(self, claim: ClaimId) -> None:
        """End an attempt, if it still runs."""
        attempt = self._attempts.get(claim.hex)
        if attempt is not None and not attempt.is_killed:
            attempt.is_killed = True
            self._send(protocol.encode(protocol.Kill(claim.hex, self._grace)))

    def hold_until(self, at: float) -> None:
        """Let what runs live until that moment of CLOCK_BOOTTIME, unless this is called again."""
        self._deadline = at
        self._send(protocol.encode(protocol.Deadline(at)))

    def close(self) -> None:
        """End everything, and return when the runner is gone and its folder with it."""
        self._is_closed = True
        if self._process is not None:
            self._process.close()
        self._runners.clear(self.boot)
        self._over += [(one.on_end, outcome.was_killed(b"")) for one in self._attempts.values()]
        self._attempts.clear()
        self._tell()

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _settle(self, attempt: RunnerAttempt, end: CommandEnd | Exception) -> None:
        """Have it told soon, together with all that end in the same turn of the loop."""
        del self._attempts[attempt.task.claim.hex]
        if not self._over:
            asyncio.get_running_loop().call_soon(self._tell)
        self._over.append((attempt.on_end, end))

    def _tell(self) -> None:
        over, self._over = self._over, []
        for on_end, end in over:
            on_end(end)

    async def _ready(self) -> RunnerConnection:
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
                    self._send(protocol.encode(protocol.Deadline(self._deadline)))
            return self._process

    def _send(self, frames: bytes) -> None:
        # To one that nobody listens to yet, nothing is said: it runs nothing.
        if self._process is not None and self._is_attended:
            self._process.send(frames)

    def _begun(self) -> RunnerConnection:
        process = self._runners.begin(self.boot)
        if self._is_closed:
            # Meanwhile; nobody would end it any more.
            process.close()
            raise StartError("no command is started any more")
        return process

    async def _order_when_ready(self, attempt: RunnerAttempt) -> None:
        try:
            process = await self._ready()
            if attempt.is_killed:
                self._settle(attempt, outcome.was_killed(b""))
            else:
                self._order(attempt, process)
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for an end is told
            self._settle(attempt, error)

    def _order(self, attempt: RunnerAttempt, process: RunnerConnection) -> None:
        is_heard = attempt.on_output is not None
        process.send(encode_order(attempt.task, self._grace, is_heard=is_heard))
        attempt.is_ordered = True

    def _hear(self, frame: Frame) -> None:
        """Take in what the runner says."""
        if frame.kind in _BYTES:
            claim, data = protocol.decode_bytes(frame.payload)
            if attempt := self._attempts.get(claim):
                self._take(attempt, frame.kind, data)
            return
        message = read_message(frame)
        if not isinstance(message, Told | Refused):
            raise ProtocolError(f"{type(message).__name__} is not for an agent")
        attempt = self._attempts.get(message.claim)
        # What a runner killed that nobody asked to is lost with all else: it is about to end.
        if attempt and (attempt.is_killed or not is_by_runner(message)):
            self._settle(attempt, ended_of(attempt, message))

    def _take(self, attempt: RunnerAttempt, kind: int, data: bytes) -> None:
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
                self._send(protocol.encode(protocol.Kill(attempt.task.claim.hex, 0)))
                done(len(data))

    def _credit(self, claim: ClaimId, count: int) -> None:
        self._send(protocol.encode(protocol.Credit(claim.hex, count)))

    def _lose(self, why: str) -> None:
        lost, self._process = self._process, None
        self._is_attended = False
        self._has_lost.set()
        if lost is not None:
            self._burial = self._later(self._bury(lost, why))

    async def _bury(self, lost: RunnerConnection, why: str) -> None:
        """End what a lost runner left, and only then say so."""
        try:
            await asyncio.to_thread(lost.bury)
            await asyncio.to_thread(self._runners.clear, self.boot)
        except OSError as error:
            why = f"{why}; not all that it left could be ended: {error}"
        fallen = [one for one in self._attempts.values() if one.is_ordered]
        for attempt in fallen:
            self._settle(attempt, RunnerLostError(why, is_alone=len(fallen) == 1))

"""The executor over a runner: commands run in another process, which outlives no agent.

Fills the port in `executor`. When the runner is lost, what it ran is ended here, and only then is
that said, so that nothing is run again beside itself; the next command gets a new runner, or, where
none can be started from here, nothing is claimed until one has come.
"""

from __future__ import annotations

import asyncio
import functools
from math import inf
from typing import TYPE_CHECKING, Any, Final

from workron_runner import messages
from workron_runner.frame import ProtocolError
from workron_runner.messages import Ended as Told
from workron_runner.messages import Kind, Refused
from workron_worker import codec, judge, outcome, search
from workron_worker import meter as metering
from workron_worker.executor import RunnerLostError, StartError
from workron_worker.outcome import Attempt
from workron_worker.runner_process import Children

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_runner.frame import Frame
    from workron_worker.executor import Ended, OnEnd, OnOutput, Task
    from workron_worker.meter import Meter
    from workron_worker.runner_line import RunnerLine, Runners

_USUAL: Final = Children()
_BYTES: Final = frozenset({Kind.OUTPUT, Kind.KEPT, Kind.RESULT})


class RunnerExecutor:
    """Runs as many commands at once as it is asked to."""

    def __init__(
        self,
        *,
        grace: timedelta,
        boot: UUID,
        runners: Runners = _USUAL,
        meter: Meter = metering.SILENT,
    ) -> None:
        self._runners = runners
        self._meter = meter
        self._grace = grace.total_seconds()
        self.boot = boot
        self._deadline = inf
        self._attempts: dict[str, Attempt] = {}
        self._over: list[tuple[OnEnd, Ended | Exception]] = []
        self._changing = asyncio.Lock()
        self._is_attended = False
        self._is_closed = False
        self._has_lost = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._burial: asyncio.Task[None] | None = None
        # What can be had at once and is not is a reason not to begin.
        self._process: RunnerLine | None = None if runners.are_awaited else runners.begin(boot)

    @property
    def is_ready(self) -> bool:
        """Whether there is a runner, or one can be started; see the port."""
        return self._process is not None or not self._runners.are_awaited

    async def keep(self, tell: Callable[[], object]) -> None:
        """Look for a runner whenever there is none and none can be started; see the port."""
        while self._runners.are_awaited:
            self._has_lost.clear()
            await search.until_found(self._ready, self._meter)
            tell()
            await self._has_lost.wait()

    def start(self, task: Task, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        """Run one attempt; see the port."""
        attempt = self._attempts[task.claim.hex] = Attempt(task, on_end, on_output)
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
        self._runners.clear(self.boot)
        self._over += [(one.on_end, judge.killed(b"")) for one in self._attempts.values()]
        self._attempts.clear()
        self._tell()

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _settle(self, attempt: Attempt, end: Ended | Exception) -> None:
        """Have it told soon, together with all that end in the same turn of the loop."""
        del self._attempts[attempt.task.claim.hex]
        if not self._over:
            asyncio.get_running_loop().call_soon(self._tell)
        self._over.append((attempt.on_end, end))

    def _tell(self) -> None:
        over, self._over = self._over, []
        for on_end, end in over:
            on_end(end)

    async def _ready(self) -> RunnerLine:
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

    def _begun(self) -> RunnerLine:
        process = self._runners.begin(self.boot)
        if self._is_closed:
            # Meanwhile; nobody would end it any more.
            process.close()
            raise StartError("no command is started any more")
        return process

    async def _order_when_ready(self, attempt: Attempt) -> None:
        try:
            process = await self._ready()
            if attempt.is_killed:
                self._settle(attempt, judge.killed(b""))
            else:
                self._order(attempt, process)
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for an end is told
            self._settle(attempt, error)

    def _order(self, attempt: Attempt, process: RunnerLine) -> None:
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
        if attempt and (attempt.is_killed or not outcome.is_by_runner(message)):
            self._settle(attempt, outcome.of(attempt, message))

    def _take(self, attempt: Attempt, kind: int, data: bytes) -> None:
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
        self._has_lost.set()
        if lost is not None:
            self._burial = self._later(self._bury(lost, why))

    async def _bury(self, lost: RunnerLine, why: str) -> None:
        """End what a lost runner left, and only then say so."""
        try:
            await asyncio.to_thread(lost.bury)
            await asyncio.to_thread(self._runners.clear, self.boot)
        except OSError as error:
            why = f"{why}; not all that it left could be ended: {error}"
        fallen = [one for one in self._attempts.values() if one.is_ordered]
        for attempt in fallen:
            self._settle(attempt, RunnerLostError(why, is_alone=len(fallen) == 1))

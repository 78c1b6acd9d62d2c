"""What an agent does for one claim: has its command run, and says what its end means.

Called by `loop` with each claim that was granted; what comes of it goes to `finish`. Most claims
are two calls, one at the start and one at the end: tasks are for what waits in between.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from workron.core.states import Reason
from workron_worker import order
from workron_worker.executor import Ended, RunnerLostError, StartError
from workron_worker.ledger import Fate
from workron_worker.stream import Streams
from workron_worker.stumbles import Stumbles

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from workron.core.ids import SessionKey
    from workron.store.protocol import End
    from workron_worker.executor import OnOutput, Task
    from workron_worker.journal import Journal
    from workron_worker.ledger import Running
    from workron_worker.patience import Patience
    from workron_worker.surroundings import Surroundings

    Finish = Callable[[Running, End | None], None]


class Attempts:
    """All that one agent has begun."""

    def __init__(
        self,
        around: Surroundings,
        journal: Journal,
        patience: Patience,
        finish: Finish,
        is_late: Callable[[], bool],
    ) -> None:
        """Make it; `finish` is told of each end, None for an attempt that came to none."""
        self._around = around
        self._journal = journal
        self._finish = finish
        self._is_late = is_late
        self._streams = Streams(around, patience)
        self._stumbles = Stumbles(around.clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._has_failed = asyncio.Event()

    async def watch(self) -> None:
        """Raise the first error that is no attempt's but the agent's, as soon as there is one."""
        await self._has_failed.wait()
        assert self._error is not None
        raise self._error

    def hurry(self) -> None:
        """Bear a store that is away no longer than the agent does now."""
        self._streams.hurry()

    def begin(self, running: Running, key: SessionKey) -> None:
        """Have the command of a claim run."""
        try:
            self._start(running, key)
        except Exception as error:  # noqa: BLE001 - as with ends
            self._fail(running, error)

    def _start(self, running: Running, key: SessionKey) -> None:
        claimed = running.claimed
        if claimed.inputs_too_large:
            self._end(running, order.refuse_inputs(claimed))
            return
        try:
            task = order.task_of(claimed)
        except ValueError as error:
            message = f"this worker cannot read the job's spec: {error}"
            self._end(running, order.refuse(claimed, Reason.COMMAND_NOT_FOUND, message))
            return
        listener = self._around.listener(claimed)
        if task.stream_bytes:
            self._wait(running, self._stream(running, key, task, listener))
        else:
            self._around.executor.start(task, functools.partial(self._over, running), listener)

    async def _stream(
        self, running: Running, key: SessionKey, task: Task, listener: OnOutput | None
    ) -> None:
        self._journal.name(running.claimed)
        if running.fate is not Fate.REPORT:
            # Ended before this task had its first turn, when there was nothing to kill yet.
            self._end(running, None)
            return
        try:
            outcome: Ended | Exception = await self._streams.run(key, running, task, listener)
        except (RunnerLostError, StartError) as error:
            outcome = error
        self._over(running, outcome)

    def _over(self, running: Running, outcome: Ended | Exception) -> None:
        try:
            self._judge(running, outcome)
        except Exception as error:  # noqa: BLE001 - it is the agent's, whoever calls
            self._fail(running, error)

    def _judge(self, running: Running, outcome: Ended | Exception) -> None:
        if isinstance(outcome, Ended):
            self._stumbles.start_well()
            self._end(running, self._end_of(running, outcome))
        elif isinstance(outcome, RunnerLostError):
            self._journal.lost(running.claimed, outcome)
            if running.fate is Fate.REPORT:
                running.fate = Fate.LOST_ALONE if outcome.is_alone else Fate.LOST_TOGETHER
            self._end(running, None)
        elif isinstance(outcome, StartError):
            self._wait(running, self._stumble(running, outcome))
        else:
            raise outcome

    def _end_of(self, running: Running, ended: Ended) -> End:
        around = self._around
        if ended.start_seconds is not None:
            around.meter.spawned(ended.start_seconds)
        if ended.is_overdue and running.fate is Fate.REPORT:
            # The executor was faster than this process, which may have been frozen.
            running.fate = Fate.RELEASE
            around.meter.cut_off(1)
        if not ended.is_killed and running.fate is Fate.RELEASE:
            # It came to its own end before the signal did.
            running.fate = Fate.REPORT
        return order.end_of(running.claimed, ended, around.rng)

    async def _stumble(self, running: Running, error: StartError) -> None:
        self._journal.name(running.claimed)
        if not self._is_late():
            await self._stumbles.bear(error)
        self._end(running, None)

    def _end(self, running: Running, end: End | None) -> None:
        self._finish(running, end)
        seconds = self._around.clock.monotonic() - running.began_at
        self._journal.ended(running, end, seconds)

    def _wait(self, running: Running, work: Coroutine[Any, Any, None]) -> None:
        # Not in a group of the agent: one that is ending takes no task any more, and has those end
        # that it had just taken before they did anything.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._waited, running))

    def _waited(self, running: Running, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._drop(running)
        elif (error := task.exception()) is not None:
            self._fail(running, error)

    def _fail(self, running: Running, error: BaseException) -> None:
        """Have the agent fail with it."""
        self._drop(running)
        self._error = self._error or error
        self._has_failed.set()

    def _drop(self, running: Running) -> None:
        if not running.is_over:
            self._finish(running, None)

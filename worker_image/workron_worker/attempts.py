"""What an agent does for one claim: has its command run, and says what its end means.

Called by `loop` with each claim that was granted; what comes of it goes to `finish`. Most claims
are two calls, one at the start and one at the end: tasks are for what waits in between.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from workron.core.states import Reason
from workron_worker import order
from workron_worker.executor import Ended, RunnerLostError, StartError
from workron_worker.ledger import Fate
from workron_worker.stream import Streams
from workron_worker.stumbles import Stumbles

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

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
        self._group: asyncio.TaskGroup

    def join(self, group: asyncio.TaskGroup) -> None:
        """Have what waits do so in this group, which fails with it."""
        self._group = group

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
            self._group.create_task(self._stream(running, key, task, listener))
        else:
            self._around.executor.start(task, functools.partial(self._over, running), listener)

    async def _stream(
        self, running: Running, key: SessionKey, task: Task, listener: OnOutput | None
    ) -> None:
        self._journal.name(running.claimed)
        try:
            outcome: Ended | Exception = await self._streams.run(key, running, task, listener)
        except (RunnerLostError, StartError) as error:
            outcome = error
        except BaseException:
            self._finish(running, None)
            raise
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
            self._group.create_task(self._stumble(running, outcome))
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
        try:
            if not self._is_late():
                await self._stumbles.bear(error)
        finally:
            self._end(running, None)

    def _end(self, running: Running, end: End | None) -> None:
        self._finish(running, end)
        seconds = self._around.clock.monotonic() - running.began_at
        self._journal.ended(running, end, seconds)

    def _fail(self, running: Running, error: Exception) -> None:
        """Have the agent fail with it."""
        self._finish(running, None)
        self._group.create_task(_raise(error))


async def _raise(error: Exception) -> None:
    raise error

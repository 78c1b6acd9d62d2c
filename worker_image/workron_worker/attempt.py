"""What an agent does for one claim: has its command run, and says what its end means.

Called by `loop` with each claim that was granted; what comes of it goes to `finish`. Most claims
are two calls, one at the start and one at the end: tasks are for what waits in between.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import trace_context
from workron.core.states import Reason
from workron_worker import outcome
from workron_worker.claims import Fate
from workron_worker.executor import CommandEnd, RunnerLostError, StartError
from workron_worker.output_stream import OutputStreams
from workron_worker.start_failures import StartFailures

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from workron.core.ids import SessionKey
    from workron.store.types import AttemptReport, ClaimedJob, Registration, Session
    from workron_worker.claims import RunningClaim
    from workron_worker.config import AgentDependencies
    from workron_worker.executor import CommandTask, OnOutput
    from workron_worker.store_calls import StoreRetry


if TYPE_CHECKING:
    Finish = Callable[[RunningClaim, AttemptReport | None], None]


class AttemptRunner:
    """All that one agent has begun."""

    def __init__(
        self,
        around: AgentDependencies,
        journal: WorkerLog,
        patience: StoreRetry,
        finish: Finish,
        is_late: Callable[[], bool],
    ) -> None:
        """Make it; `finish` is told of each end, None for an attempt that came to none."""
        self._around = around
        self._journal = journal
        self._finish = finish
        self._is_late = is_late
        self._streams = OutputStreams(around, patience)
        self._stumbles = StartFailures(around.clock)
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

    def begin(self, running: RunningClaim, key: SessionKey) -> None:
        """Have the command of a claim run."""
        try:
            self._start(running, key)
        except Exception as error:  # noqa: BLE001 - as with ends
            self._fail(running, error)

    def _start(self, running: RunningClaim, key: SessionKey) -> None:
        claimed = running.claimed
        if claimed.inputs_too_large:
            self._end(running, outcome.refuse_inputs(claimed))
            return
        try:
            task = outcome.task_of(claimed)
        except ValueError as error:
            message = f"this worker cannot read the job's spec: {error}"
            self._end(running, outcome.refuse_claim(claimed, Reason.COMMAND_NOT_FOUND, message))
            return
        listener = self._around.listener(claimed)
        if task.stream_bytes:
            self._wait(running, self._stream(running, key, task, listener))
        else:
            self._around.executor.start(task, functools.partial(self._over, running), listener)

    async def _stream(
        self, running: RunningClaim, key: SessionKey, task: CommandTask, listener: OnOutput | None
    ) -> None:
        self._journal.name(running.claimed)
        if running.fate is not Fate.REPORT:
            # Ended before this task had its first turn, when there was nothing to kill yet.
            self._end(running, None)
            return
        try:
            outcome: CommandEnd | Exception = await self._streams.run(key, running, task, listener)
        except (RunnerLostError, StartError) as error:
            outcome = error
        self._over(running, outcome)

    def _over(self, running: RunningClaim, outcome: CommandEnd | Exception) -> None:
        try:
            self._judge(running, outcome)
        except Exception as error:  # noqa: BLE001 - it is the agent's, whoever calls
            self._fail(running, error)

    def _judge(self, running: RunningClaim, outcome: CommandEnd | Exception) -> None:
        if isinstance(outcome, CommandEnd):
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

    def _end_of(self, running: RunningClaim, ended: CommandEnd) -> AttemptReport:
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
        return outcome.report_of(running.claimed, ended, around.rng)

    async def _stumble(self, running: RunningClaim, error: StartError) -> None:
        self._journal.name(running.claimed)
        if not self._is_late():
            await self._stumbles.bear(error)
        self._end(running, None)

    def _end(self, running: RunningClaim, end: AttemptReport | None) -> None:
        self._finish(running, end)
        seconds = self._around.clock.monotonic() - running.began_at
        self._journal.ended(running, end, seconds)

    def _wait(self, running: RunningClaim, work: Coroutine[Any, Any, None]) -> None:
        # Not in a group of the agent: one that is ending takes no task any more, and has those end
        # that it had just taken before they did anything.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._waited, running))

    def _waited(self, running: RunningClaim, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._drop(running)
        elif (error := task.exception()) is not None:
            self._fail(running, error)

    def _fail(self, running: RunningClaim, error: BaseException) -> None:
        """Have the agent fail with it."""
        self._drop(running)
        self._error = self._error or error
        self._has_failed.set()

    def _drop(self, running: RunningClaim) -> None:
        if not running.is_over:
            self._finish(running, None)


_FATES: Final = {
    Fate.RELEASE: "Released",
    Fate.DROP: "TakenBack",
    Fate.LOST_ALONE: "Lost",
    Fate.LOST_TOGETHER: "Lost",
}


class WorkerLog:
    """What one agent logs."""

    def __init__(self, registration: Registration) -> None:
        self._worker = registration.name
        self._slots = registration.slots
        # Bound once: a proxy would look up how to log at each line.
        self._log = structlog.get_logger(__name__).bind()

    def registered(self, session: Session) -> None:
        """Say that the worker has entered."""
        self._log.info(
            "worker registered",
            worker=self._worker,
            pool=f"{session.namespace}/{session.pool}",
            slots=self._slots,
            lease_seconds=session.lease_seconds,
        )

    def shift_over(self, limit: str) -> None:
        """Say that the worker drains by itself, and which of its limits it has met."""
        self._log.info("worker drains: its shift is over", worker=self._worker, limit=limit)

    def name(self, claimed: ClaimedJob) -> None:
        """Name an attempt in all that is logged in this task from now on."""
        structlog.contextvars.bind_contextvars(**_names(claimed, self._worker))

    def runs(self, claimed: ClaimedJob) -> None:
        """Say that an attempt has begun and goes on."""
        self._log.info("attempt runs", **_names(claimed, self._worker))

    def lost(self, claimed: ClaimedJob, error: Exception) -> None:
        """Say that what ran a command is gone."""
        self._log.warning("command was lost", **_names(claimed, self._worker), error=str(error))

    def ended(self, running: RunningClaim, end: AttemptReport | None, seconds: float) -> None:
        """Say how the attempt ended, and when after it was claimed."""
        about = _names(running.claimed, self._worker)
        if end is None or running.fate is not Fate.REPORT:
            about["outcome"] = _FATES.get(running.fate, _FATES[Fate.RELEASE])
        else:
            about["outcome"] = end.outcome.value
            about["reason"] = end.reason and end.reason.value
            about["exit_code"] = end.exit_code
        about["seconds"] = round(seconds, 3)
        self._log.info("attempt ended", **about)


def _names(claimed: ClaimedJob, worker: str) -> dict[str, Any]:
    # Both may be larger than what JavaScript and jq read as a number without rounding it.
    names = {
        "job": str(claimed.job),
        "name": _path(claimed),
        "attempt": claimed.attempt,
        "fence": str(claimed.fence),
        "worker": worker,
    }
    if of_trace := trace_context.trace_id(trace_context.traceparent_of(claimed.spec.body)):
        names["trace_id"] = of_trace
    return names


def _path(claimed: ClaimedJob) -> str:
    index = "" if claimed.index is None else f"/{claimed.index}"
    return f"{claimed.namespace}/{claimed.run}/{claimed.name}{index}"

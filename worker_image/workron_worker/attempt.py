"""Runs the attempt of each claim: from a granted claim to a report for the store.

Most attempts need no task: one call starts the command, and the executor's callback ends it. A task
exists only for an attempt that streams its output, and for the pause after a failed start.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import trace_context
from workron.core.states import Reason
from workron_worker import outcome
from workron_worker.claims import Disposition
from workron_worker.executor import CommandEnd, RunnerLostError, StartError
from workron_worker.output_stream import OutputStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from workron.core.clock import Clock
    from workron.core.ids import SessionKey
    from workron.store.types import AttemptReport, ClaimedJob, Registration, Session
    from workron_worker.claims import RunningClaim
    from workron_worker.config import AgentDependencies
    from workron_worker.executor import CommandTask, OnOutput
    from workron_worker.store_retry import StoreRetry

    Finish = Callable[[RunningClaim, AttemptReport | None], None]


_log = structlog.get_logger(__name__)
_MAX_START_FAILURES: Final = 5


class StartBackoff:
    """Pauses after a failed start; after several failures in a row the agent fails."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._pause_ends_at = 0.0

    def succeeded(self) -> None:
        """Note that a command was started."""
        self._failures = 0

    async def failed(self, error: StartError) -> None:
        """Pause before the next start; raise the error if too many have failed."""
        now = self._clock.monotonic()
        # Several failures during one pause have one cause and count once.
        if now >= self._pause_ends_at:
            self._failures += 1
            if self._failures >= _MAX_START_FAILURES:
                raise error
            pause = 2**self._failures / 10
            self._pause_ends_at = now + pause
            _log.warning("command not started", error=str(error), pause_seconds=pause)
        # The slot stays taken meanwhile, so that the next job does not fail in the same way.
        await asyncio.sleep(self._pause_ends_at - now)


class AttemptRunner:
    """All attempts that one agent has begun."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        log: WorkerLog,
        retry: StoreRetry,
        finish: Finish,
        is_late: Callable[[], bool],
    ) -> None:
        """Create it; `finish` is called once per claim, with None if there is nothing to report."""
        self._dependencies = dependencies
        self._log = log
        self._finish = finish
        self._is_late = is_late
        self._streams = OutputStreams(dependencies, retry)
        self._start_backoff = StartBackoff(dependencies.clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._has_failed = asyncio.Event()

    async def watch(self) -> None:
        """Raise the first error that is the agent's and not an attempt's."""
        await self._has_failed.wait()
        assert self._error is not None
        raise self._error

    def limit_shortened(self) -> None:
        """Apply a shorter limit of the store retry to streams that are being finished."""
        self._streams.limit_shortened()

    def begin(self, running: RunningClaim, key: SessionKey) -> None:
        """Start the command of a claim."""
        try:
            self._start(running, key)
        except Exception as error:  # noqa: BLE001 - raised by `watch`
            self._fail(running, error)

    def _start(self, running: RunningClaim, key: SessionKey) -> None:
        job = running.job
        if job.inputs_too_large:
            self._end(running, outcome.refuse_inputs(job))
            return
        try:
            task = outcome.task_of(job)
        except ValueError as error:
            message = f"this worker cannot read the job's spec: {error}"
            self._end(running, outcome.refuse_claim(job, Reason.COMMAND_NOT_FOUND, message))
            return
        listener = self._dependencies.listener(job)
        if task.stream_limit_bytes:
            self._create_task(running, self._stream(running, key, task, listener))
        else:
            on_end = functools.partial(self._command_ended, running)
            self._dependencies.executor.start(task, on_end, listener)

    async def _stream(
        self, running: RunningClaim, key: SessionKey, task: CommandTask, listener: OnOutput | None
    ) -> None:
        self._log.set_attempt(running.job)
        if running.disposition is not Disposition.REPORT:
            # Killed before this task first ran, when the executor had nothing to kill yet.
            self._end(running, None)
            return
        try:
            end: CommandEnd | Exception = await self._streams.run(key, running, task, listener)
        except (RunnerLostError, StartError) as error:
            end = error
        self._command_ended(running, end)

    def _command_ended(self, running: RunningClaim, end: CommandEnd | Exception) -> None:
        try:
            self._judge(running, end)
        except Exception as error:  # noqa: BLE001 - raised by `watch`
            self._fail(running, error)

    def _judge(self, running: RunningClaim, end: CommandEnd | Exception) -> None:
        if isinstance(end, CommandEnd):
            self._start_backoff.succeeded()
            self._end(running, self._report_of(running, end))
        elif isinstance(end, RunnerLostError):
            self._log.command_lost(running.job, end)
            if running.disposition is Disposition.REPORT:
                running.disposition = (
                    Disposition.LOST_ALONE if end.is_alone else Disposition.LOST_TOGETHER
                )
            self._end(running, None)
        elif isinstance(end, StartError):
            self._create_task(running, self._start_failed(running, end))
        else:
            raise end

    def _report_of(self, running: RunningClaim, end: CommandEnd) -> AttemptReport:
        metrics = self._dependencies.metrics
        if end.start_seconds is not None:
            metrics.start_seconds.observe(end.start_seconds)
        if end.is_past_deadline and running.disposition is Disposition.REPORT:
            # The executor was faster than this process, which may have been frozen.
            running.disposition = Disposition.RELEASE
            metrics.lease_kills += 1
        if not end.is_killed and running.disposition is Disposition.RELEASE:
            # It exited before the signal arrived.
            running.disposition = Disposition.REPORT
        return outcome.report_of(running.job, end, self._dependencies.rng)

    async def _start_failed(self, running: RunningClaim, error: StartError) -> None:
        self._log.set_attempt(running.job)
        if not self._is_late():
            await self._start_backoff.failed(error)
        self._end(running, None)

    def _end(self, running: RunningClaim, report: AttemptReport | None) -> None:
        self._finish(running, report)
        seconds = self._dependencies.clock.monotonic() - running.began_at
        self._log.attempt_ended(running, report, seconds)

    def _create_task(self, running: RunningClaim, work: Coroutine[Any, Any, None]) -> None:
        # Not in the agent's task group: a group that is ending accepts no task, and cancels those
        # that it has just accepted before they run.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._task_done, running))

    def _task_done(self, running: RunningClaim, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._abandon(running)
        elif (error := task.exception()) is not None:
            self._fail(running, error)

    def _fail(self, running: RunningClaim, error: BaseException) -> None:
        """Make the agent fail with this error."""
        self._abandon(running)
        self._error = self._error or error
        self._has_failed.set()

    def _abandon(self, running: RunningClaim) -> None:
        if not running.has_ended:
            self._finish(running, None)


_OUTCOMES: Final = {
    Disposition.RELEASE: "Released",
    Disposition.DROP: "TakenBack",
    Disposition.LOST_ALONE: "Lost",
    Disposition.LOST_TOGETHER: "Lost",
}


class WorkerLog:
    """The log events of one agent."""

    def __init__(self, registration: Registration) -> None:
        self._worker = registration.name
        self._slots = registration.slots
        # Bound once: a lazy proxy would look its configuration up at every event.
        self._log = structlog.get_logger(__name__).bind()

    def worker_registered(self, session: Session) -> None:
        """Log a new session."""
        self._log.info(
            "worker registered",
            worker=self._worker,
            pool=f"{session.namespace}/{session.pool}",
            slots=self._slots,
            lease_seconds=session.lease_seconds,
        )

    def limit_reached(self, limit: str) -> None:
        """Log that the worker drains because of one of its own limits."""
        self._log.info("limit reached, draining", worker=self._worker, limit=limit)

    def set_attempt(self, job: ClaimedJob) -> None:
        """Add the fields of an attempt to every event of the current task."""
        structlog.contextvars.bind_contextvars(**_fields(job, self._worker))

    def attempt_running(self, job: ClaimedJob) -> None:
        """Log an attempt that is not short."""
        self._log.info("attempt running", **_fields(job, self._worker))

    def command_lost(self, job: ClaimedJob, error: Exception) -> None:
        """Log that the runner of a command was lost."""
        self._log.warning("command lost", **_fields(job, self._worker), error=str(error))

    def attempt_ended(
        self, running: RunningClaim, report: AttemptReport | None, seconds: float
    ) -> None:
        """Log the end of an attempt, in seconds after it was claimed."""
        fields = _fields(running.job, self._worker)
        if report is None or running.disposition is not Disposition.REPORT:
            fields["outcome"] = _OUTCOMES.get(running.disposition, _OUTCOMES[Disposition.RELEASE])
        else:
            fields["outcome"] = report.outcome.value
            fields["reason"] = report.reason and report.reason.value
            fields["exit_code"] = report.exit_code
        fields["seconds"] = round(seconds, 3)
        self._log.info("attempt ended", **fields)


def _fields(job: ClaimedJob, worker: str) -> dict[str, Any]:
    # Strings: both numbers may be larger than what JavaScript and jq read without rounding.
    fields = {
        "job": str(job.job),
        "name": _path(job),
        "attempt": job.attempt,
        "fence": str(job.fence),
        "worker": worker,
    }
    if trace_id := trace_context.trace_id(trace_context.traceparent_of(job.spec.body)):
        fields["trace_id"] = trace_id
    return fields


def _path(job: ClaimedJob) -> str:
    index = "" if job.index is None else f"/{job.index}"
    return f"{job.namespace}/{job.run}/{job.name}{index}"

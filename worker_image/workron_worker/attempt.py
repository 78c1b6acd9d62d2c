"""Runs the attempt of each claim: from a granted claim to a report for the store.

Most attempts need no task: one call starts the command, and the executor's callback ends it. A task
exists only for an attempt that streams its output, and for the pause after a failed start.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from workron import retry
from workron.core import trace_context
from workron.core.ids import SessionKey
from workron.core.states import Reason
from workron.store.types import AttemptReport, ClaimedJob, LossKind, Session
from workron_worker import outcome
from workron_worker.claims import Disposition, RunningClaim
from workron_worker.config import AgentDependencies
from workron_worker.executor import CommandEnd, CommandTask, OnOutput, RunnerLostError, StartError
from workron_worker.output_stream import OutputStreams
from workron_worker.store_retry import StoreRetry

Finish = Callable[[RunningClaim, AttemptReport | None], None]


_log = structlog.get_logger(__name__)
_START_BACKOFF: Final = retry.RetryBackoff(first=0.2, longest=2.0)


class AttemptRunner:
    """All attempts that one agent has begun."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        worker: str,
        store_retry: StoreRetry,
        finish: Finish,
        is_late: Callable[[], bool],
        max_start_failures: int,
    ) -> None:
        """Create it; `finish` is called once per claim, with None if there is nothing to report."""
        self._dependencies = dependencies
        self._worker = worker
        # Bound once: a lazy proxy would look its configuration up at every event.
        self._log = _log.bind(worker=worker)
        self._finish = finish
        self._is_late = is_late
        self._max_start_failures = max_start_failures
        self._streams = OutputStreams(dependencies, store_retry)
        self._start_failures = 0
        self._pause_ends_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._has_failed = asyncio.Event()

    async def watch(self) -> None:
        """Raise the first error that is the agent's and not an attempt's."""
        await self._has_failed.wait()
        assert self._error is not None
        raise self._error

    def begin(self, running: RunningClaim, session: Session) -> None:
        """Start the command of a claim."""
        try:
            self._start(running, session)
        except Exception as error:  # noqa: BLE001 - raised by `watch`
            self._fail(running, error)

    def _start(self, running: RunningClaim, session: Session) -> None:
        job = running.job
        if job.inputs_too_large:
            reason, message = Reason.INPUTS_TOO_LARGE, outcome.INPUTS_TOO_LARGE
            self._end(running, outcome.refuse_claim(job, reason, message))
            return
        try:
            task = outcome.task_of(job, session.pool, self._dependencies.variables(job))
        except (ValueError, outcome.MissingVariableError) as error:
            what = "this worker cannot read the job's spec: " * isinstance(error, ValueError)
            reason = Reason.COMMAND_NOT_FOUND
            self._end(running, outcome.refuse_claim(job, reason, f"{what}{error}"))
            return
        find_listener = self._dependencies.listener
        listener = find_listener and find_listener(job)
        if task.stream_limit_bytes:
            self._create_task(running, self._stream(running, session.key, task, listener))
        else:
            on_end = functools.partial(self._command_ended, running)
            self._dependencies.executor.start(task, on_end, listener)

    async def _stream(
        self, running: RunningClaim, key: SessionKey, task: CommandTask, listener: OnOutput | None
    ) -> None:
        structlog.contextvars.bind_contextvars(worker=self._worker, **log_fields(running.job))
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
            self._start_failures = 0
            self._end(running, self._report_of(running, end))
        elif isinstance(end, RunnerLostError):
            self._log.warning("command lost", **log_fields(running.job), error=str(end))
            if running.disposition is Disposition.REPORT:
                running.disposition = Disposition.RELEASE
                running.loss = LossKind.ALONE if end.is_alone else LossKind.TOGETHER
            self._end(running, None)
        elif isinstance(end, StartError):
            self._create_task(running, self._start_failed(running, end))
        else:
            raise end

    def _report_of(self, running: RunningClaim, end: CommandEnd) -> AttemptReport:
        metrics = self._dependencies.metrics
        if end.start_seconds is not None:
            metrics.spawn_latency_seconds.observe(end.start_seconds)
        if end.is_past_deadline and running.disposition is Disposition.REPORT:
            # The executor was faster than this process, which may have been frozen.
            running.disposition = Disposition.RELEASE
            metrics.lease_kills += 1
        if not end.is_killed and running.disposition is Disposition.RELEASE:
            # It exited before the signal arrived.
            running.disposition = Disposition.REPORT
        return outcome.report_of(running.job, end, self._dependencies.rng)

    async def _start_failed(self, running: RunningClaim, error: StartError) -> None:
        if not self._is_late():
            now = self._dependencies.clock.monotonic()
            # Several failures during one pause have one cause and count once.
            if now >= self._pause_ends_at:
                self._start_failures += 1
                if self._start_failures >= self._max_start_failures:
                    raise error
                pause = _START_BACKOFF.pause(self._start_failures)
                self._pause_ends_at = now + pause
                fields = log_fields(running.job) | {"error": str(error), "pause_seconds": pause}
                self._log.warning("command not started", **fields)
            # The slot stays taken meanwhile, so that the next job does not fail in the same way.
            await asyncio.sleep(self._pause_ends_at - now)
        self._end(running, None)

    def _end(self, running: RunningClaim, report: AttemptReport | None) -> None:
        self._finish(running, report)
        fields = log_fields(running.job)
        if running.disposition is Disposition.DROP:
            fields["outcome"] = "TakenBack"
        elif report is None or running.disposition is Disposition.RELEASE:
            fields["outcome"] = "Lost" if running.loss else "Released"
        else:
            fields["outcome"] = report.outcome.value
            fields["reason"] = report.reason and report.reason.value
            fields["exit_code"] = report.exit_code
        seconds = self._dependencies.clock.monotonic() - running.began_at
        self._log.info("attempt ended", **fields, seconds=round(seconds, 3))

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


def log_fields(job: ClaimedJob) -> dict[str, Any]:
    """Return the fields that identify an attempt in log events."""
    index = "" if job.index is None else f"/{job.index}"
    # Strings: both numbers may be larger than what JavaScript and jq read without rounding.
    fields = {
        "job": str(job.job),
        "name": f"{job.namespace}/{job.run}/{job.name}{index}",
        "attempt": job.attempt,
        "fence": str(job.fence),
    }
    if trace_id := trace_context.trace_id(trace_context.traceparent_of(job.spec.body)):
        fields["trace_id"] = trace_id
    return fields

"""The executor for this machine: processes as the user who runs Workron, one thread an attempt.

Called by `workron run` through the port in `executor`. Jobs are kept apart by folders and
environments only: whoever may run this process may do all that its jobs do.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import signal
from concurrent import futures
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workron_runner import refusal, scratch
from workron_runner.kept import Kept
from workron_worker import judge, orphans, process, result
from workron_worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta
    from uuid import UUID

    from workron.core.ids import ClaimId
    from workron_worker.executor import Ended, Task


@dataclass(slots=True)
class _Attempt:
    process: process.Process
    is_killed: bool = False
    is_late: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class LocalExecutor:
    """Runs at most `slots` commands at once."""

    def __init__(self, *, slots: int, grace: timedelta, boot: UUID) -> None:
        self._grace = grace
        self._threads = futures.ThreadPoolExecutor(slots, thread_name_prefix="attempt")
        self._boot = boot
        self._scratch = _scratch(boot)
        self._attempts: dict[ClaimId, _Attempt] = {}

    async def run(self, task: Task, on_output: Callable[[bytes], None]) -> Ended:
        """Run one attempt to its end; see the port."""
        loop = asyncio.get_running_loop()
        attempt = _Attempt(process.Process())
        self._attempts[task.claim] = attempt
        if task.timeout is not None:
            late = loop.call_later(task.timeout.total_seconds(), self._expire, attempt)
            attempt.timers.append(late)
        try:
            work = functools.partial(self._run, attempt, task, on_output)
            return await loop.run_in_executor(self._threads, work)
        finally:
            attempt.process.signal(signal.SIGKILL)
            del self._attempts[task.claim]
            for timer in attempt.timers:
                timer.cancel()

    def kill(self, claim: ClaimId) -> None:
        """End an attempt, if it still runs."""
        attempt = self._attempts.get(claim)
        if attempt is not None and not attempt.is_killed:
            attempt.is_killed = True
            self._terminate(attempt)

    def hold_until(self, at: float) -> None:
        """Do nothing: threads of this process stand still with it, and so cannot act for it."""

    def close(self) -> None:
        """Remove what is on disk, after killing what was given up or left its process group."""
        for attempt in self._attempts.values():
            attempt.process.signal(signal.SIGKILL)
        self._threads.shutdown()
        self._scratch.close()
        orphans.end(self._boot)

    def _expire(self, attempt: _Attempt) -> None:
        attempt.is_late = True
        self._terminate(attempt)

    def _terminate(self, attempt: _Attempt) -> None:
        attempt.process.signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        seconds = self._grace.total_seconds()
        attempt.timers.append(loop.call_later(seconds, attempt.process.signal, signal.SIGKILL))

    def _run(self, attempt: _Attempt, task: Task, on_output: Callable[[bytes], None]) -> Ended:
        kept = Kept(task.output_bytes)

        def take(chunk: bytes) -> None:
            kept.add(chunk)
            on_output(chunk)

        with self._place(task) as place:
            try:
                code = attempt.process.run(self._launch(task, place), take)
            except (OSError, ValueError) as error:
                return judge.refused(task, refusal.of(error))
            if attempt.is_killed:
                return judge.killed(kept.value())
            if attempt.is_late and task.timeout is not None:
                return judge.late(task.timeout, kept.value())
            value = functools.partial(result.read, place.result)
            return judge.ended(task, code, kept.value(), value)

    @contextlib.contextmanager
    def _place(self, task: Task) -> Iterator[scratch.Place]:
        try:
            place = self._scratch.place(json.dumps(task.inputs, ensure_ascii=False))
        except scratch.ScratchError as error:
            raise StartError(str(error)) from error
        try:
            yield place
        finally:
            self._scratch.leave(place)

    def _launch(self, task: Task, place: scratch.Place) -> process.Launch:
        command = task.command
        return process.Launch(
            argv=("sh", "-c", command) if isinstance(command, str) else command,
            directory=place.within(task.workdir),
            environment=self._scratch.environment(task.environment, place),
        )


def _scratch(boot: UUID) -> scratch.Scratch:
    try:
        return scratch.Scratch(boot)
    except scratch.ScratchError as error:
        raise StartError(str(error)) from error

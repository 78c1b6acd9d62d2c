"""Cancel, suspend, resume and reprioritize a whole run in bounded steps.

Each step is a transaction. The caller that requested the update runs all steps; the maintainer
continues an update that was interrupted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from workron.store.sqlite import completion
from workron.store.sqlite.engine import SqliteDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from workron.core.ids import JobId
    from workron.store.sqlite.engine import Transaction


_STEP: Final = 5_000


class SqliteBulkUpdates(SqliteDatabase):
    """Base of the interfaces that change whole runs."""

    async def _bulk_update(self, operation: str, run: JobId, **values: Any) -> bool:
        begin = partial(_begin_update, run=run, operation=operation, values=values)
        return await self._update(run, begin)

    async def _update(self, run: JobId, begin: Callable[[Transaction], bool]) -> bool:
        """Do all steps of an update; False if `begin` finds nothing to change."""
        if not await self._write_and_wake(begin):
            return False
        while not await self._write_and_wake(partial(_update_step, run=run)):
            pass
        return True


def _begin_update(tx: Transaction, run: JobId, operation: str, values: Mapping[str, Any]) -> bool:
    if not tx.run(f"{operation}.update_run", run=run, **values):
        return False
    tx.run("bulk_update.request", run=run, operation=operation, priority=None)
    return True


def _update_step(tx: Transaction, run: JobId) -> bool:
    """Do one step; True when nothing is left to do."""
    update = tx.row("bulk_update.current", run=run)
    if update is None:
        return True
    tx.clear()
    jobs = {"run": run, "last": update["last"], "last_cancelled": update["last_cancelled"]}
    moved = bool(update["operation"]) and _STEPS[update["operation"]](tx, jobs)
    if update["priority"] is not None:
        moved |= _prioritize(tx, jobs, update["priority"])
    if moved:
        return False
    tx.run("bulk_update.delete", run=run)
    return True


def continue_updates(tx: Transaction) -> bool:
    """Do a step of the oldest interrupted update; False if there is none."""
    oldest = tx.row("bulk_update.oldest")
    if oldest is None:
        return False
    _update_step(tx, oldest["run"])
    return True


def _cancel(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    cancelled = {"run": jobs["run"], "last": jobs["last_cancelled"]}
    tx.run("cancel.signal_running", **cancelled)
    moved = sum(
        tx.run(f"cancel.select_{table}", **cancelled, limit=_STEP)
        for table in ("ready", "deferred", "waiting")
    )
    leave_queues(tx)
    completion.record_ends(tx)
    completion.defer_propagation(tx)
    tx.clear()
    # A suspension must not keep jobs of `finally`.
    has_resumed = _resume(tx, {"run": jobs["last_cancelled"] + 1, "last": jobs["last"]})
    return moved > 0 or has_resumed


def _suspend(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    tx.run("suspend.signal_running", **jobs)
    moved = 0
    for table in ("ready", "deferred"):
        moved += tx.run(f"suspend.select_{table}", **jobs, limit=_STEP)
        tx.run(f"suspend.delete_{table}")
    moved += tx.run("suspend.suspend_waiting", **jobs, limit=_STEP)
    completion.enqueue_jobs(tx)
    return moved > 0


def _resume(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    tx.run("resume.clear_signals", **jobs)
    moved = tx.run("resume.select_waiting", **jobs, limit=_STEP)
    tx.run("resume.resume_waiting")
    completion.update_downstreams(tx)
    return moved > 0


def _prioritize(tx: Transaction, jobs: Mapping[str, int], priority: int) -> bool:
    changed = [
        tx.run(f"bulk_prioritize.{table}", **jobs, priority=priority, limit=_STEP)
        for table in ("ready", "deferred", "waiting", "running")
    ]
    return any(changed)


def leave_queues(tx: Transaction) -> None:
    """Delete the jobs of `ended_job` from the tables in which they waited."""
    for table in ("ready", "deferred", "waiting"):
        tx.run(f"leave_queues.{table}")


_STEPS: Final[Mapping[str, Callable[[Transaction, Mapping[str, int]], bool]]] = {
    "cancel": _cancel,
    "suspend": _suspend,
    "resume": _resume,
}

"""Requeueing claims that their worker did not end: released, reaped, or orphaned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workron.core.ids import JobId, WorkerId
from workron.store.sqlite import completion
from workron.store.types import ReapResult

if TYPE_CHECKING:
    from workron.core.lease import HeartbeatVersion
    from workron.store.sqlite.engine import Transaction


def requeue_claims(
    tx: Transaction, outcome: str, *, losses: int = 0, alone: bool = False, proven: bool = False
) -> list[Any]:
    """Requeue the jobs of `selected_job`; return the new state of each.

    `losses` is charged to each, `alone` makes each run alone next, and `proven` says that its
    worker certainly does not run it any more.
    """
    tx.run("requeue", outcome=outcome, losses=losses, alone=alone, proven=proven)
    completion.end_claims(tx)
    return tx.rows("end_claims.results")


def reap(
    tx: Transaction,
    worker: WorkerId,
    version: HeartbeatVersion | None,
    *,
    charge_losses: bool = True,
) -> ReapResult:
    """Requeue a worker's claims and delete it, unless it has sent a heartbeat since."""
    row = tx.row("reap.find_worker", worker=worker, heartbeats=version and version.heartbeats)
    # Jobs that it lost earlier may wait for this proof.
    unblocked = [] if version is not None else _mark_worker_dead(tx, worker, row)
    if row is None:
        return ReapResult(was_reaped=False, requeued=unblocked)
    tx.clear()
    lost = tx.run("deregister.select_claims", worker=worker)
    results = requeue_claims(
        tx,
        "Lost",
        losses=int(charge_losses and lost == 1),
        alone=charge_losses and lost > 1,
        proven=version is None,
    )
    tx.run("deregister.delete_worker", worker=worker)
    return ReapResult(
        was_reaped=True,
        requeued=unblocked + [row["job"] for row in results if row["state"] is None],
        failed=[row["job"] for row in results if row["state"] == "Failed"],
    )


def reap_older_sessions(tx: Transaction, row: Any) -> None:
    """Reap the older sessions of a worker name: this one proves that they are dead."""
    who = {"worker": row["id"], "pool": row["pool"], "name": row["name"]}
    for older in tx.rows("reap_older_sessions", **who):
        reap(tx, WorkerId(older["id"]), version=None)
    _mark_worker_dead(tx, row["id"], row)


def _mark_worker_dead(tx: Transaction, worker: WorkerId, row: Any) -> list[JobId]:
    """Unblock jobs that waited for proof that this worker, or an older one of its name, is dead."""
    tx.clear()
    pool, name = (row["pool"], row["name"]) if row else (None, None)
    tx.run("mark_worker_dead.select_waiting", worker=worker, pool=pool, name=name)
    unblocked = [JobId(row["job"]) for row in tx.rows("mark_worker_dead.unblocked")]
    tx.run("mark_worker_dead.clear_awaits_proof")
    tx.run("mark_worker_dead.delete_awaiting_proof")
    completion.update_downstreams(tx)
    return unblocked

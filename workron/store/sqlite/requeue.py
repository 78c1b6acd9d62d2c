"""Requeueing claims that their worker did not end: released, reaped, or orphaned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core.ids import JobId, WorkerId
from workron.store.sqlite import completion
from workron.store.types import LossKind, ReapResult

if TYPE_CHECKING:
    from workron.core.lease import HeartbeatVersion
    from workron.store.sqlite.engine import Transaction


@dataclass(frozen=True, slots=True)
class RequeueTerms:
    """The cost of a requeue for a job."""

    outcome: str
    losses: int = 0
    alone: bool = False
    """Whether each job runs alone next."""
    proven: bool = False
    """Whether it is certain that its worker does not run it any more."""


RELEASED: Final = RequeueTerms("Released", proven=True)
ORPHANED: Final = RequeueTerms("Lost", alone=True)


def requeue_terms(lost: LossKind | None) -> RequeueTerms:
    """Return what a release costs: nothing, unless the claims were lost."""
    if lost is None:
        return RELEASED
    was_alone = lost is LossKind.ALONE
    return RequeueTerms("Lost", losses=int(was_alone), alone=not was_alone, proven=True)


def requeue_claims(tx: Transaction, terms: RequeueTerms) -> list[Any]:
    """Requeue the jobs of `selected_job`; return the new state of each."""
    tx.run("requeue.select_ended_claims", **asdict(terms))
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
    lost = tx.run("reap.select_claims", worker=worker)
    one, several = charge_losses and lost == 1, charge_losses and lost > 1
    terms = RequeueTerms("Lost", losses=int(one), alone=several, proven=version is None)
    results = requeue_claims(tx, terms)
    tx.run("reap.delete_worker", worker=worker)
    return ReapResult(
        was_reaped=True,
        requeued=unblocked + [JobId(row["job"]) for row in results if row["state"] is None],
        failed=[JobId(row["job"]) for row in results if row["state"] == "Failed"],
    )


def reap_older_sessions(tx: Transaction, row: Any) -> None:
    """Reap the older sessions of a worker name: this one proves that they are dead."""
    who = {"worker": row["id"], "pool": row["pool"], "name": row["name"]}
    for older in tx.rows("reap_older_sessions.older_sessions", **who):
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

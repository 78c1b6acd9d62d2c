"""Taking claims off workers that did not end them: reaped, orphaned, or handed back.

Called by the worker's and the maintainer's doors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core.ids import JobId, WorkerId
from workron.store.sqlite import completion
from workron.store.types import LossKind, ReapResult

if TYPE_CHECKING:
    from workron.store.sqlite.engine import Transaction
    from workron.store.types import HeartbeatVersion


@dataclass(frozen=True, slots=True)
class RequeueTerms:
    """What falling costs a job."""

    outcome: str
    losses: int = 0
    apart: bool = False
    """Whether each is tried alone next."""
    proven: bool = False
    """Whether its worker cannot run it any more."""


RELEASED: Final = RequeueTerms("Released", proven=True)
ORPHANED: Final = RequeueTerms("Lost", apart=True)


def requeue_terms(lost: LossKind | None) -> RequeueTerms:
    """Say what it costs to be handed back: nothing, unless what ran the claims was lost."""
    if lost is None:
        return RELEASED
    alone = lost is LossKind.ALONE
    return RequeueTerms("Lost", losses=int(alone), apart=not alone, proven=True)


def requeue_claims(tx: Transaction, terms: RequeueTerms) -> list[Any]:
    """Take the picked jobs off their workers; answer what became of each."""
    tx.run("give_back.take", **asdict(terms))
    completion.end_claims(tx)
    return tx.rows("end_claims.fates")


def reap(
    tx: Transaction, worker: WorkerId, sign: HeartbeatVersion | None, *, is_blaming: bool = True
) -> ReapResult:
    """Take a worker's claims back and forget it, unless it has beaten since."""
    row = tx.row("reap.guard", worker=worker, beats=sign and sign.heartbeats)
    # What it held may have fallen earlier, without proof.
    freed = [] if sign is not None else _prove_dead(tx, worker, row)
    if row is None:
        return ReapResult(was_reaped=False, requeued=freed)
    tx.clear()
    fell = tx.run("reap.pick", worker=worker)
    alone, together = is_blaming and fell == 1, is_blaming and fell > 1
    terms = RequeueTerms("Lost", losses=int(alone), apart=together, proven=sign is None)
    fates = requeue_claims(tx, terms)
    tx.run("reap.forget", worker=worker)
    return ReapResult(
        was_reaped=True,
        requeued=freed + [JobId(fate["job"]) for fate in fates if fate["state"] is None],
        failed=[JobId(fate["job"]) for fate in fates if fate["state"] == "Failed"],
    )


def reap_older_sessions(tx: Transaction, row: Any) -> None:
    """Take back at once what older boots of a worker held; they are dead, for this one lives."""
    who = {"worker": row["id"], "pool": row["pool"], "name": row["name"]}
    for older in tx.rows("bury_older.older", **who):
        reap(tx, WorkerId(older["id"]), sign=None)
    _prove_dead(tx, row["id"], row)


def _prove_dead(tx: Transaction, worker: WorkerId, row: Any) -> list[JobId]:
    """Let go what waited for proof of a worker's death, or of an older boot's of its name."""
    tx.clear()
    pool, name = (row["pool"], row["name"]) if row else (None, None)
    tx.run("prove_dead.tell", worker=worker, pool=pool, name=name)
    freed = [JobId(row["job"]) for row in tx.rows("prove_dead.freed")]
    tx.run("prove_dead.prove")
    tx.run("prove_dead.forget")
    completion.conclude_groups(tx)
    return freed

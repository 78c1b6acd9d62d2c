"""Taking claims off workers that did not end them: reaped, orphaned, or handed back.

Called by the worker's and the maintainer's doors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core.ids import JobId
from workron.store.protocol import Reaped
from workron.store.sqlite import settling

if TYPE_CHECKING:
    from workron.core.ids import WorkerId
    from workron.store.sqlite.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Terms:
    """What falling costs a job."""

    outcome: str
    losses: int = 0
    apart: bool = False
    """Whether each is tried alone next."""
    proven: bool = False
    """Whether its worker cannot run it any more."""


RELEASED: Final = Terms("Released", proven=True)
ORPHANED: Final = Terms("Lost", apart=True)


def give_back(tx: Transaction, terms: Terms) -> list[Any]:
    """Take the picked jobs off their workers; answer what became of each."""
    tx.run("give_back.take", **asdict(terms))
    settling.end_claims(tx)
    return tx.rows("end_claims.fates")


def reap(
    tx: Transaction, worker: WorkerId, beats: int | None, *, is_blaming: bool = True
) -> Reaped:
    """Take a worker's claims back and forget it, unless it has beaten since."""
    if tx.row("reap.guard", worker=worker, beats=beats) is None:
        # What it held fell earlier, without proof.
        freed = [] if beats is not None else prove_dead(tx, worker=worker)
        return Reaped(was_reaped=False, requeued=freed)
    tx.clear()
    fell = tx.run("reap.pick", worker=worker)
    alone, together = is_blaming and fell == 1, is_blaming and fell > 1
    terms = Terms("Lost", losses=int(alone), apart=together, proven=beats is None)
    fates = give_back(tx, terms)
    tx.run("reap.forget", worker=worker)
    return Reaped(
        was_reaped=True,
        requeued=[JobId(fate["job"]) for fate in fates if fate["state"] is None],
        failed=[JobId(fate["job"]) for fate in fates if fate["state"] == "Failed"],
    )


def prove_dead(
    tx: Transaction, *, worker: int | None = None, pool: int | None = None, name: str | None = None
) -> list[JobId]:
    """Let go what waited for proof of a worker's death, known by its row's id or its name."""
    tx.clear()
    tx.run("prove_dead.tell", worker=worker, pool=pool, name=name)
    freed = [JobId(row["job"]) for row in tx.rows("prove_dead.freed")]
    tx.run("prove_dead.prove")
    tx.run("prove_dead.forget")
    settling.conclude(tx)
    return freed

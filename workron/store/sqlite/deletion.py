"""Deletion of an ended run in bounded steps, each of which is a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.store.types import DeleteRefusal

if TYPE_CHECKING:
    from workron.core.ids import JobId
    from workron.store.sqlite.engine import Transaction


_STEP: Final = 5_000
"""Jobs whose rows one transaction deletes."""
_TABLES: Final = ("output", "result", "attempt", "deadline", "awaiting_proof", "done")
_STATEMENTS: Final = (
    *(f"delete_{table}" for table in _TABLES),
    "delete_upstream_edges",
    "delete_downstream_edges",
    "delete_external_dependencies",
    "delete_specs",
    "delete_jobs",
)


def begin(tx: Transaction, run: JobId) -> DeleteRefusal | None:
    """Take the name from a run that can be deleted, or return why it must stay."""
    row = tx.row("delete_run.refusal", run=run)
    if row is not None and row["refusal"] is not None:
        return DeleteRefusal(row["refusal"])
    tx.run("delete_run.clear_name", run=run)
    return None


def step(tx: Transaction, run: JobId) -> bool:
    """Delete the rows of some jobs of a run; True when nothing is left."""
    last = tx.row("delete_run.last_job", run=run)["job"]
    if last is None:
        return True
    first = max(run, last - _STEP + 1)
    for statement in _STATEMENTS:
        tx.run(f"delete_run.{statement}", first=first, last=last)
    if first > run:
        return False
    tx.run("delete_run.finish", run=run)
    return True

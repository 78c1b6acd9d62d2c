"""Rows that are over do not slow what comes after them, whether or not they were vacuumed.

A scan of an index leaves a mark at each entry whose row is dead to all, and no later scan reads it
again; a bitmap scan does not. So the worker's verbs forbid bitmap scans.
"""

from tests.store.behaviour import plans
from tests.store.behaviour.worker import report_on
from tests.store.postgres.open_transaction import index_entries_read
from tests.store.postgres.stage import Stage

_ROUNDS = 30
_BATCH = 100


async def test_claims_of_a_worker_that_are_over_are_not_read_again(stage: Stage) -> None:
    await stage.sql.execute("ALTER TABLE workron.running SET (autovacuum_enabled = off)")
    await stage.submit(plans.array(_ROUNDS * _BATCH))
    worker = await stage.worker()
    counts = [0]
    for _ in range(_ROUNDS):
        claimed = await worker.claim(_BATCH)
        await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])
        counts.append(await index_entries_read(worker.store, "running_worker"))
    assert counts[-1] - counts[-2] <= counts[3] - counts[2]

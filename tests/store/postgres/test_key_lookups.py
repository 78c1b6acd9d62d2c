"""Many ends in one call are looked up by key, whatever the statistics say.

A plan that compares all rows with all rows is cheap as long as the tables are as empty as they were
when they were analyzed.
"""

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import mint, report_on
from tests.store.postgres.stage import Stage, WorkerActor

_WIDE = 1_000
_ENDS = 10
_CLAIMS = 300
_WRITTEN_ONCE = ("job", "edge", "run", "spec", "waiting")


async def _rows_read(worker: WorkerActor, table: str) -> int:
    """Count the rows of a table that were read so far, by any index."""
    await worker.store.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await worker.store.connection.fetchval(
        "SELECT sum(pg_stat_get_tuples_returned(indexrelid))::bigint FROM pg_index"
        f" WHERE indrelid = 'workron.{table}'::regclass"
    )
    return int(count)


async def test_complete_reads_only_the_edges_of_its_jobs(stage: Stage) -> None:
    await stage.submit(plans.dag(first=task(), many=task("first", count=_WIDE)))
    worker = await stage.worker()
    [first] = await worker.claim(1)
    await worker.store.complete(worker.session.key, [report_on(first)])
    await stage.sql.execute("ANALYZE workron.edge")
    claimed = await worker.claim(_ENDS)
    assert len(claimed) == _ENDS
    before = await _rows_read(worker, "edge")
    await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])
    assert await _rows_read(worker, "edge") - before <= _ENDS


async def _searches(worker: WorkerActor, index: str) -> int:
    """Count how often an index was searched so far."""
    await worker.store.connection.execute("SELECT pg_stat_force_next_flush()")
    count = await worker.store.connection.fetchval(
        f"SELECT pg_stat_get_numscans('workron.{index}'::regclass)"
    )
    return int(count)


async def test_complete_reads_only_its_own_claims(stage: Stage) -> None:
    await stage.submit(plans.array(_CLAIMS))
    await stage.sql.execute("VACUUM ANALYZE workron.running")
    worker = await stage.worker()
    claimed = await worker.claim(_CLAIMS)
    before = await _searches(worker, "running_pkey"), await _searches(worker, "running_worker")
    await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])
    # A claim that is not looked up is scanned once for each of the others.
    assert await _searches(worker, "running_pkey") - before[0] >= len(claimed) == _CLAIMS
    assert await _searches(worker, "running_worker") - before[1] <= 1


async def _run_all(worker: WorkerActor) -> None:
    while claimed := await worker.claim(1):
        await worker.store.complete(worker.session.key, [report_on(one) for one in claimed])


async def test_complete_reads_only_its_own_downstreams(stage: Stage) -> None:
    worker = await stage.worker()
    await stage.submit(plans.dag(a=task(), b=task("a"), c=task("b")))
    await _run_all(worker)
    await stage.submit(plans.dag(a=task(), b=task("a"), c=task("b"), d=task("b")))
    # From here on plans use the statistics of tables as small as these.
    await stage.sql.execute("VACUUM ANALYZE")
    await _run_all(worker)
    width = 4 * _WIDE
    pairs = {"many": task(count=width), "more": task("many", count=width, each=True)}
    await stage.submit(plans.dag(**pairs))
    ends = [report_on(one) for one in await worker.claim(_CLAIMS)]
    read = {table: await _rows_read(worker, table) for table in _WRITTEN_ONCE}
    await worker.store.complete(worker.session.key, ends, mint(_CLAIMS))
    for table, before in read.items():
        assert await _rows_read(worker, table) - before <= 4 * _CLAIMS


async def test_claim_reads_only_its_own_jobs(stage: Stage) -> None:
    worker = await stage.worker()
    await stage.submit(plans.dag(a=task(), b=task("a"), c=task("b")))
    await stage.sql.execute("VACUUM ANALYZE")
    await _run_all(worker)
    await stage.submit(plans.array(4 * _WIDE))
    before = await _rows_read(worker, "job")
    assert len(await worker.claim(_CLAIMS)) == _CLAIMS
    assert await _rows_read(worker, "job") - before <= 2 * _CLAIMS


async def test_count_states_reads_each_job_once(stage: Stage) -> None:
    worker = await stage.worker()
    run = await stage.submit(plans.job())
    await stage.sql.execute("VACUUM ANALYZE")
    await worker.store.count_states(run)
    run = await stage.submit(plans.array(_WIDE))
    before = await _rows_read(worker, "ready")
    await worker.store.count_states(run)
    assert await _rows_read(worker, "ready") - before <= 2 * _WIDE

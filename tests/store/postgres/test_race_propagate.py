"""Two upstreams of one job that end at the same time."""

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.postgres.stage import Stage

# Without a statement of its own for the lock: one statement has one snapshot, and in the snapshot
# of each of the two ends the other has not ended.
_IN_ONE_STATEMENT = """
    WITH zero AS (
        DELETE FROM workron.waiting w USING unnest(_jobs, _counts) AS t(job, count)
        WHERE w.job = t.job AND NOT w.wide AND w.remaining = t.count RETURNING w.job, w.priority
    ), queued AS (
        INSERT INTO workron.ready (job, pool, priority)
        SELECT z.job, j.pool, z.priority FROM zero z JOIN workron.job j ON j.id = z.job
    )
    UPDATE workron.waiting w SET remaining = w.remaining - t.count
    FROM unnest(_jobs, _counts) AS t(job, count)
    WHERE w.job = t.job AND NOT w.wide AND w.remaining > t.count;
"""
_IN_TWO_STATEMENTS = (
    r"    PERFORM 1 FROM workron\.waiting [^;]*; -- guard: propagate.*?    END IF;\n"
)


async def _end_both_upstreams_at_once(stage: Stage) -> str:
    run = await stage.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    first = await stage.worker()
    claims = await first.claim_by_name()
    await first.begin()
    await first.end(claims["a"])
    second = await stage.twin(first)
    ending = await stage.start(second, second.end(claims["b"]))
    assert not ending.done()
    await first.commit()
    await ending
    return (await stage.states(run))["c"]


async def test_downstream_is_queued_when_both_its_upstreams_end_at_once(stage: Stage) -> None:
    assert await _end_both_upstreams_at_once(stage) == "Queued"
    assert await stage.count_stranded() == 0


async def test_downstream_is_stranded_when_it_is_counted_down_in_one_statement(
    stage: Stage,
) -> None:
    await stage.replace("propagate_ends", _IN_TWO_STATEMENTS, _IN_ONE_STATEMENT)
    assert await _end_both_upstreams_at_once(stage) == "Waiting/Upstream"
    assert await stage.count_stranded() == 1

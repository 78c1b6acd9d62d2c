"""Two generations of one object that arrive at once: the newer one counts."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage
from workron.store.types import RunUpdate


async def _update_at_once(stage: Stage) -> tuple[str, int]:
    """Apply the older generation while the newer one is not committed."""
    run = await stage.submit(plans.job(generation=1))
    newer, older = await stage.actor(), await stage.actor()
    suspended = RunUpdate(3, is_cancelled=False, is_suspended=True, priority=0)
    raised = RunUpdate(2, is_cancelled=False, is_suspended=False, priority=7)
    await newer.begin()
    await newer.update_run(run, suspended)
    late = await stage.start(older, older.update_run(run, raised))
    await newer.commit()
    await late
    [row] = await newer.list_jobs(run)
    return row.state, row.priority


async def test_older_generation_changes_nothing_when_it_comes_late(stage: Stage) -> None:
    assert await _update_at_once(stage) == ("Waiting", 0)


async def test_older_generation_replaces_the_newer_one_when_it_does_not_wait(stage: Stage) -> None:
    await stage.without("update_run")
    assert await _update_at_once(stage) == ("Waiting", 7)

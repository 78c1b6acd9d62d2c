"""A run is deleted while another one that depends on it is submitted."""

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage
from workron.core.ids import JobId
from workron.store.types import DeleteRefusal


async def _delete_during_submission(stage: Stage) -> tuple[JobId, DeleteRefusal | None]:
    """Delete an ended run when a submission has linked to it, and not committed yet."""
    up = await stage.submit(plans.job("up"))
    worker = await stage.worker()
    await worker.end(await worker.claim_one())
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    await one.submit([plans.job("down", outside=[plans.outside("up")])])
    deleting = await stage.start(other, other.delete_run(up))
    await one.commit()
    return up, await deleting


async def test_run_stays_when_a_submission_depends_on_it_at_once(stage: Stage) -> None:
    up, refusal = await _delete_during_submission(stage)
    assert refusal is DeleteRefusal.NEEDED
    assert await stage.states(up) == {"up": "Succeeded"}


async def test_needed_run_is_deleted_when_its_name_is_not_locked(stage: Stage) -> None:
    await stage.without("delete_run")
    up, refusal = await _delete_during_submission(stage)
    assert refusal is None
    assert await stage.watcher.get_run(up) is None

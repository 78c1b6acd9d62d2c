"""A reap and a concurrent call of its worker: claim, heartbeat, complete, register."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint_boot
from tests.store.postgres.stage import Actor, Stage, WorkerActor
from workron.core import errors
from workron.core.ids import JobId
from workron.store.types import ReapResult


async def _reap(by: Actor, worker: WorkerActor) -> ReapResult:
    return await by.reap(worker.session.worker, version=await by.heartbeat_version(worker))


async def _holders(stage: Stage) -> list[str | None]:
    """Return the worker of each claim; None if it has no row."""
    rows = await stage.sql.fetch(
        "SELECT w.name FROM workron.running r LEFT JOIN workron.worker w ON w.id = r.worker"
    )
    return [row["name"] for row in rows]


async def _reap_while_it_claims(stage: Stage) -> JobId:
    run = await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    await worker.begin()
    await worker.claim_one()
    reaping = await stage.start(maintainer, _reap(maintainer, worker))
    await worker.commit()
    assert (await reaping).was_reaped
    return run


async def test_claim_is_requeued_when_its_worker_is_reaped_meanwhile(stage: Stage) -> None:
    run = await _reap_while_it_claims(stage)
    assert await stage.states(run) == {"job": "Queued"}


async def test_claim_outlives_its_worker_when_it_does_not_lock_its_row(stage: Stage) -> None:
    await stage.without("session")
    await _reap_while_it_claims(stage)
    assert await _holders(stage) == [None]


async def _claim_while_it_is_reaped(stage: Stage) -> None:
    await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    await maintainer.begin()
    await _reap(maintainer, worker)
    claiming = await stage.start(worker, worker.claim())
    await maintainer.commit()
    await claiming


async def test_claim_is_refused_when_its_worker_was_reaped_just_before(stage: Stage) -> None:
    with pytest.raises(errors.SessionError):
        await _claim_while_it_is_reaped(stage)
    assert await _holders(stage) == []


async def test_reaped_worker_gets_a_claim_when_its_row_is_not_checked(
    stage: Stage,
) -> None:
    await stage.without("session")
    await _claim_while_it_is_reaped(stage)
    assert await _holders(stage) == [None]


async def _reap_during_a_heartbeat(stage: Stage) -> ReapResult:
    worker, maintainer = await stage.worker(), await stage.actor()
    sign = await maintainer.heartbeat_version(worker)
    await worker.begin()
    await worker.heartbeat()
    reaping = await stage.start(maintainer, maintainer.reap(worker.session.worker, version=sign))
    await worker.commit()
    return await reaping


async def test_worker_is_not_reaped_when_it_sends_a_heartbeat_meanwhile(stage: Stage) -> None:
    assert not (await _reap_during_a_heartbeat(stage)).was_reaped
    assert await stage.watcher.list_heartbeats()


async def test_live_worker_is_reaped_when_its_row_is_not_locked_first(stage: Stage) -> None:
    await stage.without("reap")
    assert (await _reap_during_a_heartbeat(stage)).was_reaped
    assert not await stage.watcher.list_heartbeats()


async def test_heartbeat_is_refused_when_the_worker_was_reaped_just_before(stage: Stage) -> None:
    worker, maintainer = await stage.worker(), await stage.actor()
    await maintainer.begin()
    await _reap(maintainer, worker)
    beating = await stage.start(worker, worker.heartbeat())
    await maintainer.commit()
    with pytest.raises(errors.SessionError):
        await beating


async def test_loss_is_counted_once_when_two_maintainers_reap_at_once(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, one, other = await stage.worker(), await stage.actor(), await stage.actor()
    await worker.claim_one()
    await one.begin()
    assert (await _reap(one, worker)).was_reaped
    reaping = await stage.start(other, _reap(other, worker))
    await one.commit()
    assert not (await reaping).was_reaped
    (row,) = await stage.watcher.list_jobs(run)
    assert (row.state, row.losses) == ("Queued", 1)


async def test_end_counts_when_its_worker_is_reaped_meanwhile(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await worker.begin()
    await worker.end(claimed)
    reaping = await stage.start(maintainer, _reap(maintainer, worker))
    await worker.commit()
    assert (await reaping).requeued == []
    assert await stage.states(run) == {"job": "Succeeded"}


async def test_end_is_refused_when_its_worker_was_reaped_just_before(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    worker, maintainer = await stage.worker(), await stage.actor()
    claimed = await worker.claim_one()
    await maintainer.begin()
    await _reap(maintainer, worker)
    ending = await stage.start(worker, worker.end(claimed))
    await maintainer.commit()
    with pytest.raises(errors.SessionError):
        await ending
    assert await stage.states(run) == {"job": "Queued"}


async def _boot_again(stage: Stage) -> tuple[WorkerActor, WorkerActor]:
    """Return the older and the newer boot of one worker."""
    return await stage.worker("pod"), await stage.worker("pod")


async def test_newer_boot_waits_when_the_older_one_is_claiming(stage: Stage) -> None:
    run = await stage.submit(plans.job())
    older, newer = await _boot_again(stage)
    await older.begin()
    await older.claim_one()
    beating = await stage.start(newer.store, newer.heartbeat())
    await older.commit()
    await beating
    assert await stage.states(run) == {"job": "Queued"}


async def test_older_boot_is_reaped_when_both_send_heartbeats_at_once(stage: Stage) -> None:
    older, newer = await _boot_again(stage)
    await older.begin()
    await older.heartbeat()
    beating = await stage.start(newer.store, newer.heartbeat())
    await older.commit()
    await beating
    assert [one.worker for one in await stage.watcher.list_heartbeats()] == [newer.session.worker]
    with pytest.raises(errors.SessionError):
        await older.heartbeat()


async def test_heartbeat_of_the_older_boot_is_refused_when_it_meets_the_newer_ones(
    stage: Stage,
) -> None:
    older, newer = await _boot_again(stage)
    await newer.begin()
    await newer.heartbeat()
    beating = await stage.start(older.store, older.heartbeat())
    await newer.commit()
    with pytest.raises(errors.SessionError):
        await beating


async def test_worker_is_not_reaped_when_the_server_was_restarted_since(stage: Stage) -> None:
    worker = await stage.worker()
    sign = (await stage.watcher.heartbeat_version(worker))._replace(server="another")
    assert not (await stage.watcher.reap(worker.session.worker, version=sign)).was_reaped


async def test_worker_has_one_session_when_it_registers_twice_at_once(stage: Stage) -> None:
    boot, one, other = mint_boot(), await stage.actor(), await stage.actor()
    await one.begin()
    first = await stage.register(one, "pod", boot=boot)
    registering = await stage.start(other, stage.register(other, "pod", boot=boot))
    await one.commit()
    assert await registering == first

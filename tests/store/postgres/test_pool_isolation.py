"""Isolation of pools: a session of one pool cannot read or change the jobs of another."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres import roles
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core import errors
from workron.core.ids import JobId
from workron.store.types import ClaimedJob, ReportResult

Scene = tuple[JobId, ClaimedJob, WorkerActor]


@pytest.fixture
async def scene(stage: Stage) -> Scene:
    """Return a job that a worker of one pool runs, and a worker of another pool."""
    run = await stage.submit(plans.job())
    claimed = await (await stage.worker()).claim_one()
    return run, claimed, await _worker_of_another_pool(stage)


async def _worker_of_another_pool(stage: Stage) -> WorkerActor:
    token = await stage.watcher.ensure_pool(plans.NAMESPACE, "other")
    actor = await stage.actor()
    return WorkerActor(actor, await stage.register(actor, "other", token=token))


async def test_worker_claims_no_job_of_another_pool(stage: Stage) -> None:
    await stage.submit(plans.job())
    assert await (await _worker_of_another_pool(stage)).claim(MANY) == []


async def test_worker_gets_no_job_when_it_knows_a_claim_of_another_pool(
    scene: Scene,
) -> None:
    _, claimed, other = scene
    key = other.session.key
    assert await other.store.claim(key, [claimed.claim]) == []
    assert (await other.store.complete(key, [], [claimed.claim])).claimed == []


async def test_worker_gets_only_its_own_claims(stage: Stage, scene: Scene) -> None:
    _, claimed, other = scene
    await stage.submit(plans.job("own", pool="other"))
    own = await other.claim_one()
    again = await other.store.claim(other.session.key, [claimed.claim, own.claim])
    assert [one.claim for one in again] == [own.claim]


async def test_worker_ends_no_claim_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, other = scene
    assert await other.end(claimed) is ReportResult.STALE
    assert await stage.states(run) == {"job": "Running"}


async def test_worker_releases_no_claim_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, other = scene
    assert await other.release(claimed) == [ReportResult.STALE]
    assert await stage.states(run) == {"job": "Running"}


async def test_worker_writes_no_output_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, other = scene
    answer = await other.store.append_output(other.session.key, claimed.ref, 0, b"x")
    assert answer is ReportResult.STALE
    assert await stage.watcher.read_output(run) == b""


async def test_heartbeat_returns_no_claim_of_another_pool(scene: Scene) -> None:
    assert (await scene[2].heartbeat()).held == []


async def test_other_pools_keep_their_claims_when_a_worker_deregisters(
    stage: Stage, scene: Scene
) -> None:
    run, _, other = scene
    await other.store.deregister(other.session.key)
    assert await stage.states(run) == {"job": "Running"}


async def test_older_session_of_another_pool_stays_when_its_name_sends_a_heartbeat(
    stage: Stage, scene: Scene
) -> None:
    token = await stage.watcher.ensure_pool(plans.NAMESPACE, "other")
    session = await stage.register(stage.watcher, "worker", token=token)
    await stage.watcher.heartbeat(session.key)
    assert await stage.states(scene[0]) == {"job": "Running"}


async def test_role_cannot_register_when_the_pool_has_another_role(
    stage: Stage, role: Role
) -> None:
    await stage.sql.execute("UPDATE workron.pool SET role = 'another'")
    async with role.open_worker_store() as store:
        with pytest.raises(errors.TokenError):
            await roles.register(store, stage.token)


async def test_role_can_register_in_its_own_pool(stage: Stage, role: Role) -> None:
    await stage.sql.execute("UPDATE workron.pool SET role = $1", role.name)
    async with role.open_worker_store() as store:
        await roles.register(store, stage.token)
    with pytest.raises(errors.TokenError):
        await stage.worker()


async def test_session_role_counts_when_it_has_set_another_role(stage: Stage, role: Role) -> None:
    async with roles.made_in(stage.dsn) as owner:
        await stage.sql.execute("UPDATE workron.pool SET role = $1", owner.name)
        await stage.sql.execute(f"GRANT {owner.name} TO {role.name}")
        connection = await role.connect()
        await connection.execute(f"SET ROLE {owner.name}")
        with pytest.raises(Exception, match="the token is unknown"):
            await connection.fetch(
                "SELECT workron.register($1, 'thief', gen_random_uuid(), 1)", stage.token
            )
        await connection.close()

"""The wall between pools: what a session of one pool cannot do to the jobs of another."""

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres import roles
from tests.store.postgres.roles import Role
from tests.store.postgres.stage import Hand, Stage
from workron.core import errors
from workron.core.ids import JobId
from workron.store.types import ClaimedJob, ReportResult

Scene = tuple[JobId, ClaimedJob, Hand]


@pytest.fixture
async def scene(stage: Stage) -> Scene:
    """A job that a worker of one pool runs, and a worker of another pool."""
    run = await stage.submit(plans.job())
    claimed = await (await stage.worker()).claim_one()
    return run, claimed, await _stranger(stage)


async def _stranger(stage: Stage) -> Hand:
    token = await stage.watcher.ensure_pool(plans.NAMESPACE, "other")
    actor = await stage.actor()
    return Hand(actor, await stage.register(actor, "stranger", token=token))


async def test_stranger_is_given_no_job_of_another_pool(stage: Stage) -> None:
    await stage.submit(plans.job())
    assert await (await _stranger(stage)).claim(MANY) == []


async def test_stranger_is_told_nothing_of_a_claim_that_it_knows(
    scene: Scene,
) -> None:
    _, claimed, stranger = scene
    key = stranger.session.key
    assert await stranger.store.claim(key, [claimed.claim]) == []
    assert (await stranger.store.complete(key, [], [claimed.claim])).claimed == []


async def test_stranger_is_told_of_its_own_claims_alone(stage: Stage, scene: Scene) -> None:
    _, claimed, stranger = scene
    await stage.submit(plans.job("own", pool="other"))
    own = await stranger.claim_one()
    again = await stranger.store.claim(stranger.session.key, [claimed.claim, own.claim])
    assert [one.claim for one in again] == [own.claim]


async def test_stranger_ends_no_claim_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, stranger = scene
    assert await stranger.end(claimed) is ReportResult.STALE
    assert await stage.stands(run) == {"job": "Running"}


async def test_stranger_releases_no_claim_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, stranger = scene
    assert await stranger.release(claimed) == [ReportResult.STALE]
    assert await stage.stands(run) == {"job": "Running"}


async def test_stranger_writes_no_output_of_another_pool(stage: Stage, scene: Scene) -> None:
    run, claimed, stranger = scene
    answer = await stranger.store.append_output(stranger.session.key, claimed.ref, 0, b"x")
    assert answer is ReportResult.STALE
    assert await stage.watcher.read_output(run) == b""


async def test_stranger_hears_of_no_claim_of_another_pool(scene: Scene) -> None:
    assert (await scene[2].heartbeat()).held == []


async def test_stranger_takes_nobody_with_it_when_it_leaves(stage: Stage, scene: Scene) -> None:
    run, _, stranger = scene
    await stranger.store.deregister(stranger.session.key)
    assert await stage.stands(run) == {"job": "Running"}


async def test_older_boot_of_another_pool_lives_when_its_name_beats_here(
    stage: Stage, scene: Scene
) -> None:
    token = await stage.watcher.ensure_pool(plans.NAMESPACE, "other")
    session = await stage.register(stage.watcher, "worker", token=token)
    await stage.watcher.heartbeat(session.key)
    assert await stage.stands(scene[0]) == {"job": "Running"}


async def test_role_enters_no_pool_that_is_another_roles(stage: Stage, role: Role) -> None:
    await stage.sql.execute("UPDATE workron.pool SET role = 'somebody'")
    async with role.door() as door:
        with pytest.raises(errors.TokenError):
            await roles.register(door, stage.token)


async def test_role_enters_the_pool_that_is_its_own(stage: Stage, role: Role) -> None:
    await stage.sql.execute("UPDATE workron.pool SET role = $1", role.name)
    async with role.door() as door:
        await roles.register(door, stage.token)
    with pytest.raises(errors.TokenError):
        await stage.worker()


async def test_role_is_the_one_that_logged_in_when_it_acts_as_another(
    stage: Stage, role: Role
) -> None:
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

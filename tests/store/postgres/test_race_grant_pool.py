"""Two grants of pools at once: both change the same rows of the catalog."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from unittest import mock

import asyncpg
import pytest

from tests.store.behaviour import plans
from tests.store.postgres.stage import Actor, Stage
from workron.core import errors
from workron.store.postgres import roles
from workron.store.types import PoolGrant

_MADE = "SELECT role FROM workron.pool WHERE role IS NOT NULL"


@pytest.fixture
async def pools(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[PoolGrant, PoolGrant]]:
    """Return two pools, and drop their roles: roles belong to the whole server."""
    # A role cannot log in before the transaction that creates it is committed.
    monkeypatch.setattr(roles, "check_login", mock.AsyncMock())
    one, other = (
        PoolGrant(plans.NAMESPACE, name, name, 10.0, secrets.token_hex(16), connections=5)
        for name in ("one", "other")
    )
    yield one, other
    for row in await stage.sql.fetch(_MADE):
        with contextlib.suppress(asyncpg.UndefinedObjectError):
            await stage.sql.execute(f'DROP OWNED BY "{row[0]}" CASCADE; DROP ROLE "{row[0]}"')


async def _grant_at_once(stage: Stage, pools: tuple[PoolGrant, PoolGrant]) -> None:
    first, second = await stage.actor(), await stage.actor()
    await first.begin()
    await first.grant_pool(pools[0])
    following = await stage.start(second, _granted(second, pools[1]))
    await first.commit()
    await following


async def _granted(actor: Actor, admission: PoolGrant) -> None:
    await actor.grant_pool(admission)


async def test_two_pools_get_a_role_each_when_they_are_granted_at_once(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await _grant_at_once(stage, pools)
    assert len(await stage.sql.fetch(_MADE)) == 2


async def test_grants_fail_when_neither_waits(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await stage.without("grant_pool")
    with pytest.raises(errors.StoreError, match="concurrently updated"):
        await _grant_at_once(stage, pools)


async def _revoke_while_one_is_granted(stage: Stage, pools: tuple[PoolGrant, PoolGrant]) -> None:
    first, second = await stage.actor(), await stage.actor()
    await stage.watcher.grant_pool(pools[1])
    await first.begin()
    await first.grant_pool(pools[0])
    following = await stage.start(second, _revoked(second, pools[1]))
    await first.commit()
    await following


async def _revoked(actor: Actor, admission: PoolGrant) -> None:
    assert await actor.revoke_pool(admission.namespace, admission.pool)


async def test_pool_is_revoked_when_another_one_is_granted_at_once(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await _revoke_while_one_is_granted(stage, pools)
    assert await stage.watcher.granted_pools() == {(plans.NAMESPACE, "one")}


async def test_revocation_fails_when_it_does_not_wait_for_a_grant(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await stage.without("revoke_pool")
    with pytest.raises(errors.StoreError, match="concurrently updated"):
        await _revoke_while_one_is_granted(stage, pools)

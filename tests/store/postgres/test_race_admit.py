"""Two pools that are let in at once: both grants change the same rows of the catalogue."""

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
    """Two of them, whose roles are taken away: they are the whole server's."""
    # Nobody can log in as a role that a transaction has made and not committed.
    monkeypatch.setattr(roles, "check_login", mock.AsyncMock())
    one, other = (
        PoolGrant(plans.NAMESPACE, name, name, 10.0, secrets.token_hex(16), connections=5)
        for name in ("one", "other")
    )
    yield one, other
    for row in await stage.sql.fetch(_MADE):
        with contextlib.suppress(asyncpg.UndefinedObjectError):
            await stage.sql.execute(f'DROP OWNED BY "{row[0]}" CASCADE; DROP ROLE "{row[0]}"')


async def _admit_at_once(stage: Stage, pools: tuple[PoolGrant, PoolGrant]) -> None:
    first, second = await stage.actor(), await stage.actor()
    await first.begin()
    await first.grant_pool(pools[0])
    following = await stage.start(second, _admitted(second, pools[1]))
    await first.commit()
    await following


async def _admitted(actor: Actor, admission: PoolGrant) -> None:
    await actor.grant_pool(admission)


async def test_two_pools_that_are_admitted_at_once_have_a_role_each(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await _admit_at_once(stage, pools)
    assert len(await stage.sql.fetch(_MADE)) == 2


async def test_two_pools_fail_each_others_grants_when_neither_waits(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await stage.without("grant_pool")
    with pytest.raises(errors.StoreError, match="concurrently updated"):
        await _admit_at_once(stage, pools)


async def _dismiss_while_one_is_admitted(stage: Stage, pools: tuple[PoolGrant, PoolGrant]) -> None:
    first, second = await stage.actor(), await stage.actor()
    await stage.watcher.grant_pool(pools[1])
    await first.begin()
    await first.grant_pool(pools[0])
    following = await stage.start(second, _dismissed(second, pools[1]))
    await first.commit()
    await following


async def _dismissed(actor: Actor, admission: PoolGrant) -> None:
    assert await actor.revoke_pool(admission.namespace, admission.pool)


async def test_pool_is_dismissed_while_another_is_admitted(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await _dismiss_while_one_is_admitted(stage, pools)
    assert await stage.watcher.granted_pools() == {(plans.NAMESPACE, "one")}


async def test_dismissal_fails_where_it_does_not_wait_for_a_grant(
    stage: Stage, pools: tuple[PoolGrant, PoolGrant]
) -> None:
    await stage.without("revoke_pool")
    with pytest.raises(errors.StoreError, match="concurrently updated"):
        await _dismiss_while_one_is_admitted(stage, pools)

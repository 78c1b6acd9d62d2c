"""A database role with the rights of a worker."""

import contextlib
import dataclasses
import random
import secrets
from collections.abc import AsyncIterator
from unittest import mock
from urllib import parse

import asyncpg

from tests.store.behaviour.worker import MANY, mint_boot
from workron.store import types
from workron.store.postgres.pool import open_pool
from workron.store.postgres.worker import PostgresWorkerStore

# A connection reads its types from the catalogs, which every role may.
_REFUSED = asyncpg.InsufficientPrivilegeError


@dataclasses.dataclass(frozen=True)
class Role:
    """The name and the connection URL of a role."""

    name: str
    dsn: str

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(self.dsn)

    @contextlib.asynccontextmanager
    async def open_worker_store(self) -> AsyncIterator[PostgresWorkerStore]:
        """Open the worker's interface as this role."""
        database = await open_pool(self.dsn, rng=random.Random(), connections=2)
        try:
            store = PostgresWorkerStore(database, database, random.Random())
            store._notifier = mock.Mock()
            yield store
        finally:
            await database.close()


@contextlib.asynccontextmanager
async def made_in(dsn: str) -> AsyncIterator[Role]:
    """Create a role that has only the rights of `grant_worker` in this database."""
    async with _made(dsn) as (role, admin):
        await admin.execute("SELECT workron.grant_worker($1)", role.name)
        yield role


@contextlib.asynccontextmanager
async def unprivileged_role_in(dsn: str) -> AsyncIterator[Role]:
    """Create a role that has only the rights of PUBLIC."""
    async with _made(dsn) as (role, _):
        yield role


@contextlib.asynccontextmanager
async def owner_of(dsn: str) -> AsyncIterator[Role]:
    """Create a role that owns this database and has no other rights."""
    async with _made(dsn) as (role, admin):
        [(database, me)] = await admin.fetch("SELECT current_database(), current_user")
        await admin.execute(f'ALTER DATABASE "{database}" OWNER TO {role.name}')
        yield role
        await admin.execute(f'REASSIGN OWNED BY {role.name} TO "{me}"')


@contextlib.asynccontextmanager
async def _made(dsn: str) -> AsyncIterator[tuple[Role, asyncpg.Connection]]:
    # Roles belong to the whole server, which other test processes may share.
    name, password = f"workron_test_{secrets.token_hex(6)}", secrets.token_hex(16)
    admin = await asyncpg.connect(dsn)
    try:
        await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        yield Role(name, _as(dsn, name, password)), admin
    finally:
        await admin.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")
        await admin.close()


def _as(dsn: str, name: str, password: str) -> str:
    parts = parse.urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{name}:{password}@{host}").geturl()


async def allowed(connection: asyncpg.Connection, statements: list[str]) -> list[str]:
    """List those statements that are not refused for a missing privilege."""
    through = []
    for statement in statements:
        try:
            await connection.execute(statement)
        except _REFUSED:
            continue
        except asyncpg.PostgresError as cause:
            through.append(f"{statement}: {cause}")
        else:
            through.append(statement)
    return through


async def register(store: PostgresWorkerStore, token: str, name: str = "worker") -> types.Session:
    return await store.register(types.Registration(token, name, mint_boot(), slots=MANY))

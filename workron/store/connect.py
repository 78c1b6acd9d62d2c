"""A store from its URL: the one place that knows which dialect stands behind which scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib import parse

from workron.core import errors
from workron.store import postgres, sqlite

if TYPE_CHECKING:
    from workron.core.ports import Clock, Rng
    from workron.store.protocol import Store

_FORMS: Final = (
    "a store is `memory:`, `sqlite:///path/to/file` or `postgresql://user@host:5432/database`"
)
_POSTGRES: Final = frozenset({"postgresql", "postgres"})


async def connect(url: str, *, clock: Clock, rng: Rng) -> Store:
    """Open a store; one in memory or in a file is made when it is not there."""
    scheme = parse.urlsplit(url).scheme
    if scheme == "memory":
        return await sqlite.open_sqlite(None, clock=clock, rng=rng)
    if scheme == "sqlite":
        return await sqlite.open_sqlite(_path(url), clock=clock, rng=rng)
    if scheme in _POSTGRES:
        return await postgres.open_postgres(url, rng=rng)
    raise errors.InputError(f"cannot tell what store {url!r} is: {_FORMS}")


async def migrate(url: str, *, clock: Clock, rng: Rng) -> list[str]:
    """Bring a store to this program's schema, and answer what that took."""
    if parse.urlsplit(url).scheme in _POSTGRES:
        return await postgres.migrate(url)
    store = await connect(url, clock=clock, rng=rng)
    await store.close()
    return []


def _path(url: str) -> str:
    path = url.removeprefix("sqlite://")
    if not path.startswith("/") or path == "/":
        raise errors.InputError(f"{url!r} names no file: {_FORMS}")
    # Three slashes are a path from here, four one from the root, as elsewhere.
    return parse.unquote(path[1:])

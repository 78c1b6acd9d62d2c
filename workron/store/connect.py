"""A store from its URL: the one place that knows which dialect stands behind which scheme."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib import parse

from workron.core import errors

if TYPE_CHECKING:
    from workron.core.ports import Clock, Rng
    from workron.store.protocol import Store

_FORMS: Final = (
    "a store is `memory:`, `sqlite:///path/to/file` or `postgresql://user@host:5432/database`"
)
_POSTGRES: Final = frozenset({"postgresql", "postgres"})


def is_memory(url: str) -> bool:
    """Tell whether a store ends with the process that opened it."""
    return url.partition(":")[0].lower() == "memory"


async def connect(url: str, *, clock: Clock, rng: Rng, may_create: bool = True) -> Store:
    """Open a store; one in a file is made when it is not there, unless it may not be."""
    # Imported on use: each dialect brings a library that the other one never needs.
    from workron.store import sqlite

    scheme = parse.urlsplit(url).scheme
    if is_memory(url):
        return await sqlite.open_sqlite(None, clock=clock, rng=rng)
    if scheme == "sqlite":
        path = _path(url) if may_create else _existing(_path(url))
        return await sqlite.open_sqlite(path, clock=clock, rng=rng)
    if scheme in _POSTGRES:
        from workron.store import postgres

        return await postgres.open_postgres(url, rng=rng)
    raise errors.InputError(f"cannot tell what store {url!r} is: {_FORMS}")


async def migrate(url: str, *, clock: Clock, rng: Rng) -> list[str]:
    """Bring a store to this program's schema, and answer what that took."""
    if parse.urlsplit(url).scheme in _POSTGRES:
        from workron.store import postgres

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


def _existing(path: str) -> str:
    if not Path(path).exists():
        raise errors.InputError(f"{path} is not there; `workron run` or `workron submit` makes it")
    return path

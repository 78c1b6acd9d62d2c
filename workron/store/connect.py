"""Opening a store by its URL, which selects the dialect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib import parse

from workron.core import errors

if TYPE_CHECKING:
    from workron.core.clock import Clock, Rng
    from workron.store.api import Store, WorkerStore


_FORMS: Final = (
    "a store is `memory:`, `sqlite:///path/to/file` or `postgresql://user@host:5432/database`"
)
_POSTGRES: Final = frozenset({"postgresql", "postgres"})


def is_memory(url: str) -> bool:
    """Return whether a store ends with the process that opened it."""
    return url.partition(":")[0].lower() == "memory"


def is_file(url: str) -> bool:
    """Return whether a store is a file of this machine."""
    return url.partition(":")[0].lower() == "sqlite"


async def connect(url: str, *, clock: Clock, rng: Rng, may_create: bool = True) -> Store:
    """Open a store; a missing file is created, or refused if `may_create` is False."""
    scheme = _scheme(url)
    # Imported on use: each dialect imports a library that the other one never needs.
    if scheme in _POSTGRES:
        from workron.store.postgres.store import open_postgres

        return await open_postgres(url, rng=rng)
    from workron.store.sqlite.store import open_sqlite

    path = _path(url, may_create=may_create) if scheme == "sqlite" else None
    return await open_sqlite(path, clock=clock, rng=rng)


async def connect_worker(url: str, *, clock: Clock, rng: Rng) -> WorkerStore:
    """Open a store for a worker. Its role needs to call only the functions of a worker."""
    if _scheme(url) in _POSTGRES:
        from workron.store.postgres.store import open_worker

        return await open_worker(url, rng=rng)
    return await connect(url, clock=clock, rng=rng, may_create=False)


async def migrate(url: str, *, clock: Clock, rng: Rng) -> list[str]:
    """Migrate a store to this program's schema, and return what was done."""
    if _scheme(url) in _POSTGRES:
        from workron.store.postgres import schema

        return await schema.migrate(url)
    store = await connect(url, clock=clock, rng=rng)
    await store.close()
    return []


def _scheme(url: str) -> str:
    """Return the scheme of a store's URL; InputError if it is not the URL of a store."""
    try:
        scheme = parse.urlsplit(url).scheme
    except ValueError as cause:
        raise errors.InputError(f"{redact(url)!r} is not a URL: {cause}: {_FORMS}") from None
    if scheme == "memory" and url != "memory:":
        raise errors.InputError(
            f"{url!r}: a store in memory has no name, so nothing may follow `memory:`; {_FORMS}"
        )
    if scheme not in {"memory", "sqlite", *_POSTGRES}:
        raise errors.InputError(f"{redact(url)!r} is not the URL of a store: {_FORMS}")
    return scheme


def redact(url: str) -> str:
    """Return a URL without its password."""
    from workron.store.postgres import driver_errors

    return driver_errors.redact_url(url)


def _path(url: str, *, may_create: bool) -> str:
    # Three slashes begin a relative path and four an absolute one, as in other tools.
    prefix, _, path = url.partition("///")
    if prefix.lower() != "sqlite:" or not path:
        raise errors.InputError(f"{url!r} does not name a file: {_FORMS}")
    if "?" in path:
        raise errors.InputError(
            f"{url!r}: a SQLite store has no parameters; leave out what follows the `?`, or write"
            " it %3F if it belongs to the file's name"
        )
    path = parse.unquote(path)
    if "\0" in path:
        raise errors.InputError(f"{url!r}: the name of a file cannot hold a NUL; leave it out")
    if not (may_create or Path(path).exists()):
        raise errors.InputError(
            f"{path} does not exist;"
            " `workron run`, `workron submit` or `workron migrate` creates it"
        )
    return path

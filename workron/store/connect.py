"""A store from its URL: the one place that knows which dialect stands behind which scheme."""

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
    """Open a store; one in a file is made when it is not there, unless it may not be."""
    scheme = _scheme(url)
    # Imported on use: each dialect brings a library that the other one never needs.
    if scheme in _POSTGRES:
        from workron.store import postgres

        return await postgres.open_postgres(url, rng=rng)
    from workron.store import sqlite

    path = _path(url) if scheme == "sqlite" else None
    if path is not None and not may_create:
        _refuse_absent(path)
    return await sqlite.open_sqlite(path, clock=clock, rng=rng)


async def connect_worker(url: str, *, clock: Clock, rng: Rng) -> WorkerStore:
    """Open a store for its worker's verbs alone; a role that can call just these will do."""
    if _scheme(url) in _POSTGRES:
        from workron.store import postgres

        return await postgres.open_worker(url, rng=rng)
    return await connect(url, clock=clock, rng=rng, may_create=False)


async def migrate(url: str, *, clock: Clock, rng: Rng) -> list[str]:
    """Bring a store to this program's schema, and answer what that took."""
    if _scheme(url) in _POSTGRES:
        from workron.store import postgres

        return await postgres.migrate(url)
    store = await connect(url, clock=clock, rng=rng)
    await store.close()
    return []


def _scheme(url: str) -> str:
    """Give the scheme of a store's URL; InputError if it is the URL of none."""
    try:
        scheme = parse.urlsplit(url).scheme
    except ValueError as cause:
        raise errors.InputError(f"{_shown(url)!r} is no URL: {cause}: {_FORMS}") from None
    if scheme == "memory" and url != "memory:":
        raise errors.InputError(
            f"{url!r}: a store in memory has no name, so nothing may follow `memory:`; {_FORMS}"
        )
    if scheme not in {"memory", "sqlite", *_POSTGRES}:
        raise errors.InputError(f"{_shown(url)!r} is not the URL of a store: {_FORMS}")
    return scheme


def _shown(url: str) -> str:
    from workron.store.postgres import driver_errors

    return driver_errors.redact_url(url)


def _path(url: str) -> str:
    # Three slashes are a path from here, four one from the run, as elsewhere.
    prefix, _, path = url.partition("///")
    if prefix.lower() != "sqlite:" or not path:
        raise errors.InputError(f"{url!r} names no file: {_FORMS}")
    if "?" in path:
        raise errors.InputError(
            f"{url!r}: a SQLite store has no parameters; leave out what follows the `?`, or write"
            " it %3F if it belongs to the file's name"
        )
    path = parse.unquote(path)
    if "\0" in path:
        raise errors.InputError(f"{url!r}: the name of a file cannot hold a NUL; leave it out")
    return path


def _refuse_absent(path: str) -> None:
    if not Path(path).exists():
        raise errors.InputError(
            f"{path} is not there; `workron run`, `workron submit` or `workron migrate` makes it"
        )

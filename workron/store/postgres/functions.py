"""Installing the SQL functions of `sql/` in a database, and checking which version it has.

A file of `sql/` is either a plain statement (`query`) or a function (`call`). The functions form a
set with a version: `functions.txt` has its number, raised whenever a text changes, its digest, and
the signatures that this program calls, so that it also works with newer sets.
`python -m tests.store.postgres.golden` writes that file.

Planner settings are applied here, not in each file. A plan must not depend on the statistics of
tables that are empty at one moment and large at the next, so every function that the program calls
has a generic plan without sequential scans, hash joins and merge joins; a worker's function
(SECURITY DEFINER) also has no bitmap scans, and a fixed search path. Functions that only other
functions call have none: they run under the settings of their caller.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

import asyncpg

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from asyncpg import Connection

    from workron.store.postgres.pool import ConnectionPool


_FOLDER: Final = resources.files(__package__) / "sql"
_DEFINITION: Final = "CREATE OR REPLACE FUNCTION"
_PLANS: Final = "SET plan_cache_mode = force_generic_plan SET enable_seqscan = off"
_SETTINGS: Final = f"{_PLANS} SET enable_hashjoin = off SET enable_mergejoin = off"
_OWN_SETTINGS: Final = {
    # It joins sets that it has read and materialized before.
    "list_jobs": f"{_PLANS} SET enable_nestloop = off",
    # It reads the claims of a worker, like the functions of workers.
    "reap": f"{_SETTINGS} SET enable_bitmapscan = off",
}
_SEARCH_PATH: Final = "SET search_path = workron, pg_catalog, pg_temp"
_UNCONFIGURED: Final = frozenset({"now", "server_start"})
"""They read no table; with settings they could not be inlined."""


@cache
def _read_all() -> dict[str, str]:
    return {
        file.name.removesuffix(".sql"): file.read_text()
        for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    }


def query(name: str) -> str:
    """Return the text of a plain statement."""
    return _read_all()[name]


@cache
def statement(name: str, arguments: int) -> str:
    """Return a plain statement, or the statement that calls a function."""
    text = query(name)
    return call(name, arguments) if _DEFINITION in text else text


@cache
def call(name: str, arguments: int) -> str:
    """Return the statement that calls a function."""
    parameters = ", ".join(f"${number}" for number in range(1, arguments + 1))
    return f"SELECT * FROM workron.{name}({parameters})"  # noqa: S608 - the name is ours


@cache
def function_sources() -> dict[str, str]:
    """Return the definitions of all functions by name, with their planner settings."""
    texts = {name: text for name, text in _read_all().items() if _DEFINITION in text}
    called = {signature.partition("(")[0] for signature in called_functions()}
    return {name: _configured(name, text, called) for name, text in texts.items()}


def _configured(name: str, text: str, called: AbstractSet[str]) -> str:
    if name not in called or name in _UNCONFIGURED:
        return text
    settings = _OWN_SETTINGS.get(name, _SETTINGS)
    if "SECURITY DEFINER" in text:
        settings = f"{_SEARCH_PATH}\n{settings} SET enable_bitmapscan = off"
    return text.replace("\nAS $$", f"\n{settings}\nAS $$", 1)


def functions_digest() -> str:
    """Return the digest of this program's set of functions."""
    return hashlib.sha256("".join(function_sources().values()).encode()).hexdigest()


SIGNATURES: Final = """
    SELECT format('%s(%s) returns %s', proname, oidvectortypes(proargtypes),
                  pg_get_function_result(oid)) AS signature, proname::text AS name
    FROM pg_proc WHERE pronamespace = 'workron'::regnamespace ORDER BY 1"""
_INSTALLED: Final = "SELECT value FROM workron.meta WHERE key = 'functions'"
_RECORD: Final = (
    "INSERT INTO workron.meta (key, value) VALUES ('functions', $1) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_NAMED: Final = """
    SELECT oid::regprocedure::text AS signature FROM pg_proc
    WHERE pronamespace = 'workron'::regnamespace AND proname = $1"""
_UNKNOWN: Final = """
    SELECT oid::regprocedure::text AS signature FROM pg_proc
    WHERE pronamespace = 'workron'::regnamespace AND proname <> ALL ($1)"""
_GRANTEES: Final = """
    SELECT DISTINCT quote_ident(r.rolname) AS role
    FROM pg_proc p CROSS JOIN aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
    WHERE p.pronamespace = 'workron'::regnamespace AND p.proname = $1 AND a.grantee <> p.proowner"""


@dataclass(frozen=True, slots=True)
class FunctionSetVersion:
    """Number and digest of a set of functions."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number} {self.digest}"


def known_version() -> FunctionSetVersion:
    """Return the version of this program's functions."""
    number, _ = _version_lines()[0].split()
    return FunctionSetVersion(int(number), functions_digest())


def called_functions() -> Sequence[str]:
    """Return the signatures of the functions that this program calls."""
    return _version_lines()[1:]


@cache
def _version_lines() -> list[str]:
    return (resources.files(__package__) / "functions.txt").read_text("utf-8").splitlines()


async def are_current(source: Connection | ConnectionPool) -> bool:
    """Return whether nothing needs installing. SchemaError if a newer set lacks what we call."""
    installed, ours = await _installed_version(source), known_version()
    if installed.number <= ours.number:
        return installed == ours
    missing = await missing_functions(source)
    if missing:
        raise errors.SchemaError(
            f"the database has the functions of a newer workron (version {installed.number}, this"
            f" program has {ours.number}), which lack {'; '.join(missing)}: install a newer workron"
        )
    return True


async def missing_functions(
    source: Connection | ConnectionPool, names: AbstractSet[str] | None = None
) -> Sequence[str]:
    """List signatures that this program calls, all or those of `names`, and the database lacks."""
    found = [row["signature"] for row in await source.fetch(SIGNATURES)]
    called = [one for one in called_functions() if names is None or one.partition("(")[0] in names]
    return [one for one in called if not any(_is_compatible(other, one) for other in found)]


def _is_compatible(signature: str, called: str) -> bool:
    """Return whether a function can be called as another; it may return more columns."""
    return signature == called or signature.startswith(f"{called.removesuffix(')')}, ")


async def _installed_version(source: Connection | ConnectionPool) -> FunctionSetVersion:
    rows = await source.fetch(_INSTALLED)
    number, _, digest = rows[0]["value"].partition(" ") if rows else ("0", "", "")
    return FunctionSetVersion(int(number), digest)


async def install_functions(connection: Connection) -> None:
    """Replace the functions of the schema by this program's; privileges on them stay."""
    await connection.execute("SET LOCAL check_function_bodies = off")
    for name, text in function_sources().items():
        await _install(connection, name, text)
    await _drop(connection, _UNKNOWN, list(function_sources()))
    await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC")
    await connection.execute(_RECORD, str(known_version()))


async def _install(connection: Connection, name: str, text: str) -> None:
    """Replace a function in place, or drop and create it if its signature has changed."""
    with contextlib.suppress(asyncpg.InvalidFunctionDefinitionError):
        async with connection.transaction():
            await connection.execute(text)
        # With other parameters it is an overload, and the old one must not stay callable.
        if len(await connection.fetch(_NAMED, name)) == 1:
            return
    grantees = await connection.fetch(_GRANTEES, name)
    await _drop(connection, _NAMED, name)
    await connection.execute(text)
    for row in grantees:
        await connection.execute(f"GRANT EXECUTE ON FUNCTION workron.{name} TO {row['role']}")


async def _drop(connection: Connection, which: str, about: str | list[str]) -> None:
    for row in await connection.fetch(which, about):
        await connection.execute(f"DROP ROUTINE {row['signature']}")

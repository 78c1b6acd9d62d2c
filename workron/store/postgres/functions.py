"""The functions of a database: whether it has this program's, and installing them.

Each set of functions has a number in `functions.txt`, raised whenever a text changes, so that
older ones can be told from newer; beside it stands what the program calls, so that it can work with
newer ones. `python -m tests.store.postgres.golden` writes that file. Called by `schema`.
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


@cache
def _read_all() -> dict[str, str]:
    return {
        file.name.removesuffix(".sql"): file.read_text()
        for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    }


def query(verb: str) -> str:
    """Give the text of a verb that is a plain statement."""
    return _read_all()[verb]


@cache
def call(verb: str, arguments: int) -> str:
    """Give the statement that calls a verb which is a function."""
    given = ", ".join(f"${number}" for number in range(1, arguments + 1))
    return f"SELECT * FROM workron.{verb}({given})"  # noqa: S608 - the verb is one of ours


def function_sources() -> dict[str, str]:
    """Give the verbs that are functions in the database, by name."""
    return {verb: text for verb, text in _read_all().items() if _DEFINITION in text}


def functions_digest() -> str:
    """Tell one set of functions from another."""
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
_STRANGERS: Final = """
    SELECT oid::regprocedure::text AS signature FROM pg_proc
    WHERE pronamespace = 'workron'::regnamespace AND proname <> ALL ($1)"""
_GRANTEES: Final = """
    SELECT DISTINCT quote_ident(r.rolname) AS role
    FROM pg_proc p CROSS JOIN aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
    WHERE p.pronamespace = 'workron'::regnamespace AND p.proname = $1 AND a.grantee <> p.proowner"""


@dataclass(frozen=True, slots=True)
class FunctionSetVersion:
    """One set of functions."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number} {self.digest}"


def known_version() -> FunctionSetVersion:
    """Give the edition that this program brings."""
    number, _ = _written()[0].split()
    return FunctionSetVersion(int(number), functions_digest())


def called_functions() -> Sequence[str]:
    """Give the signatures of the functions that this program calls."""
    return _written()[1:]


@cache
def _written() -> list[str]:
    return (resources.files(__package__) / "functions.txt").read_text("utf-8").splitlines()


async def are_current(source: Connection | ConnectionPool) -> bool:
    """Tell whether nothing is to be installed. SchemaError when newer ones lack what we call."""
    installed, ours = await _installed(source), known_version()
    if installed.number <= ours.number:
        return installed == ours
    missing = await missing_functions(source)
    if missing:
        raise errors.SchemaError(
            f"the database has the functions of a newer workron (number {installed.number}, this"
            f" program brings {ours.number}), and they lack {'; '.join(missing)}: install a newer"
            " workron"
        )
    return True


async def missing_functions(
    source: Connection | ConnectionPool, names: AbstractSet[str] | None = None
) -> Sequence[str]:
    """List what this program calls, or what it calls of these names, and a database has not."""
    there = [row["signature"] for row in await source.fetch(SIGNATURES)]
    called = [one for one in called_functions() if names is None or one.partition("(")[0] in names]
    return [one for one in called if not any(_serves(other, one) for other in there)]


def _serves(signature: str, called: str) -> bool:
    """Tell whether a function can stand in for another; columns go by name, so more may follow."""
    return signature == called or signature.startswith(f"{called.removesuffix(')')}, ")


async def _installed(source: Connection | ConnectionPool) -> FunctionSetVersion:
    rows = await source.fetch(_INSTALLED)
    number, _, digest = rows[0]["value"].partition(" ") if rows else ("0", "", "")
    # Before there were numbers the digest stood alone.
    return FunctionSetVersion(int(number), digest) if digest else FunctionSetVersion(0, number)


async def install_functions(connection: Connection) -> None:
    """Make the functions of the schema those of this program; whoever could call one still can."""
    await connection.execute("SET LOCAL check_function_bodies = off")
    for name, text in function_sources().items():
        await _install(connection, name, text)
    await _drop(connection, _STRANGERS, list(function_sources()))
    await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC")
    await connection.execute(_RECORD, str(known_version()))


async def _install(connection: Connection, name: str, text: str) -> None:
    """Replace a function in place if its parameters and result are the same, else make it anew."""
    with contextlib.suppress(asyncpg.InvalidFunctionDefinitionError):
        async with connection.transaction():
            await connection.execute(text)
        # With other parameters it stands beside the old one, which must not stay callable.
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

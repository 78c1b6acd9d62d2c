"""Opening a connection with its settings and SQL functions, and loading the files of `sql/`."""

from __future__ import annotations

import functools
import re
import sqlite3
import time
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from workron.core import errors, verdict
from workron.core.states import Reason, State
from workron.core.verdict import Condition, Verdict
from workron.retry import RetryBackoff
from workron.store.sqlite import driver_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


_FOLDER: Final = resources.files(__package__) / "sql"
_NAME: Final = re.compile(r"^-- name: ([\w{}]+)(?: \(([^)]+)\))?\n", re.MULTILINE)
"""The name of a statement, and the tables for which it exists: they replace `{table}` in both."""


@cache
def statement_text(name: str) -> str:
    """Return the text of `file.statement`, or of a file with a single statement."""
    file, _, statement = name.partition(".")
    return statements_in(file)[statement or file]


@cache
def statements_in(file: str) -> Mapping[str, str]:
    """Return all statements of a file by name, in order."""
    head, *parts = _NAME.split((_FOLDER / f"{file}.sql").read_text("utf-8"))
    if not parts:
        return {file: head.strip()}
    return {
        name.replace("{table}", table): text.strip().replace("{table}", table)
        for name, tables, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        for table in re.findall(r"\w+", tables or "_")
    }


def split_statements(script: str) -> Iterator[str]:
    """Split a migration into statements; `executescript` would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


BUSY_SECONDS: Final = 5.0
"""How long to wait while another process writes."""
APPLICATION_ID: Final = 0x574B524E
"""`WKRN` in the file's header: distinguishes the file from those of other programs."""

_OLDEST: Final = (3, 34)
_CACHED_STATEMENTS: Final = 512
_PAUSE_SECONDS: Final = 0.002
_BUSY_BACKOFF: Final = RetryBackoff(
    _PAUSE_SECONDS, _PAUSE_SECONDS, max_calls=1 + int(BUSY_SECONDS / _PAUSE_SECONDS)
)


def open_memory() -> sqlite3.Connection:
    """Open a database that exists as long as its connection."""
    connection = _open(":memory:")
    _claim_file(connection, ":memory:")
    return connection


def open_writer(path: Path) -> sqlite3.Connection:
    """Open a file for writing; a commit returns when it is on disk."""
    connection = _open(str(path))
    try:
        _claim_file(connection, str(path))
        execute_when_free(connection, "PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a file for reading, concurrently with the writer."""
    connection = _open(str(path))
    connection.execute("PRAGMA query_only = ON")
    return connection


def execute_when_free(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement that needs the write lock, and retry while another process holds it.

    SQLite's own busy handler sleeps longer and longer, up to 100 ms, and can miss every gap that
    busy writers leave; it does not retry a change of the journal mode at all.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        for pause in _BUSY_BACKOFF.pauses():
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as busy:
                # One of its extended codes: another process recovers after a killed one.
                if driver_errors.code_of(busy) != sqlite3.SQLITE_BUSY:
                    raise
            else:
                return
            time.sleep(pause)
        connection.execute(statement)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def add_scratch(connection: sqlite3.Connection) -> None:
    """Create the temporary tables."""
    for statement in statements_in("scratch").values():
        connection.execute(statement)


def _open(name: str) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST:
        raise errors.StoreUnreachableError(
            f"{name}: this Python has SQLite {sqlite3.sqlite_version}; it must have"
            f" {'.'.join(map(str, _OLDEST))} or newer"
        )
    connection = sqlite3.connect(
        name, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=_CACHED_STATEMENTS
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    _add_functions(connection)
    return connection


def _claim_file(connection: sqlite3.Connection, name: str) -> None:
    """Set the application id of an empty file; SchemaError if it belongs to another program."""
    # One snapshot: a file that another process is creating must not look foreign.
    connection.execute("BEGIN")
    (signature,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute(statement_text("migrate.count_tables")).fetchone()
    connection.execute("COMMIT")
    if signature == APPLICATION_ID:
        return
    if signature or tables:
        raise errors.SchemaError(
            f"{name}: this SQLite database belongs to another application (its application id is"
            f" {signature:#x}, it has {tables} tables); name another file, or a new one"
        )
    execute_when_free(connection, f"PRAGMA application_id = {APPLICATION_ID}")


def _add_functions(connection: sqlite3.Connection) -> None:
    for name, arguments, function in (
        ("evaluate", 3, _evaluate),
        ("end_state", 1, lambda gravest: verdict.END_STATES[Verdict(gravest)][0]),
        ("end_reason", 1, lambda gravest: verdict.END_STATES[Verdict(gravest)][1]),
    ):
        connection.create_function(name, arguments, function, deterministic=True)


# Called once per edge of an ended job, with few different arguments.
@functools.cache
def _evaluate(condition: str, state: str, reason: str | None) -> int:
    why = None if reason is None else Reason(reason)
    return verdict.evaluate(Condition(condition), State(state), why)

"""Opening a connection: what it is asked to be, and the pure rules that its SQL may call.

Called by `store`, on the thread that will own the connection.
"""

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
from workron.store.sqlite import driver_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


_FOLDER: Final = resources.files(__package__) / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statement_text(name: str) -> str:
    """Give the text of `file.statement`."""
    file, _, statement = name.partition(".")
    return statements_in(file)[statement]


@cache
def statements_in(file: str) -> Mapping[str, str]:
    """Give all statements of a file by name, in order."""
    content = (_FOLDER / f"{file}.sql").read_text("utf-8")
    _, *parts = _NAME.split(content)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def split_statements(script: str) -> Iterator[str]:
    """Part a migration into statements: `executescript` would commit before it began."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


BUSY_SECONDS: Final = 5.0
"""How long to wait while another process writes."""
APPLICATION_ID: Final = 0x574B524E
"""`WKRN`, in the file's header: tells our files from those of other programs."""

_OLDEST: Final = (3, 34)
_CACHED_STATEMENTS: Final = 512
_PAUSE_SECONDS: Final = 0.002


def open_memory() -> sqlite3.Connection:
    """Open a database that lives as long as its connection."""
    connection = _open(":memory:")
    _claim_file(connection, ":memory:")
    return connection


def open_writer(path: Path) -> sqlite3.Connection:
    """Open a file, new or ours, so that a commit is on the disk when it answers."""
    connection = _open(str(path))
    try:
        _claim_file(connection, str(path))
        insist(connection, "PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a file once more, to read beside the writer."""
    connection = _open(str(path))
    connection.execute("PRAGMA query_only = ON")
    return connection


def insist(connection: sqlite3.Connection, statement: str) -> None:
    """Carry out what begins a transaction, or is one, waiting while another process writes.

    SQLite's own wait sleeps ever longer, up to 100 ms, and can miss every short gap that busy
    writers leave; asking often gets everybody in. A change of the journal it refuses at once.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _insist(connection, statement, tries_left=int(BUSY_SECONDS / _PAUSE_SECONDS))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def _insist(connection: sqlite3.Connection, statement: str, tries_left: int) -> None:
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as busy:
            # One of its kinds: another process recovers what a killed one left.
            if driver_errors.code_of(busy) != sqlite3.SQLITE_BUSY or not tries_left:
                raise
            tries_left -= 1
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def add_scratch(connection: sqlite3.Connection) -> None:
    """Make the sets that live between the statements of one verb."""
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
    _add_rules(connection)
    return connection


def _claim_file(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a file of another program; sign an empty one."""
    # One view of both: a file that another process is making must not look like a stranger's.
    connection.execute("BEGIN")
    (signature,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute(statement_text("migrate.tables")).fetchone()
    connection.execute("COMMIT")
    if signature == APPLICATION_ID:
        return
    if signature or tables:
        raise errors.SchemaError(
            f"{name}: this SQLite database belongs to another application (its application id is"
            f" {signature:#x}, it has {tables} tables); name another file, or a new one"
        )
    insist(connection, f"PRAGMA application_id = {APPLICATION_ID}")


def _add_rules(connection: sqlite3.Connection) -> None:
    connection.create_function("weigh", 3, _weigh, deterministic=True)
    connection.create_function("outcome_state", 1, _outcome_state, deterministic=True)
    connection.create_function("outcome_reason", 1, _outcome_reason, deterministic=True)


# Asked once for every edge that is told of an end, with few different arguments.
@functools.cache
def _weigh(condition: str, state: str, reason: str | None) -> int:
    why = None if reason is None else Reason(reason)
    return verdict.evaluate(Condition(condition), State(state), why)


def _outcome_state(gravest: int) -> str:
    return verdict.END_STATES[Verdict(gravest)][0]


def _outcome_reason(gravest: int) -> str | None:
    return verdict.END_STATES[Verdict(gravest)][1]

"""Beginning a transaction, or opening a new file, while another process has it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from workron.store.sqlite import connection


class _Taken(sqlite3.Connection):
    """A connection whose file is another process's for a while; real ones cannot be made to be."""

    refusals = 2
    code = sqlite3.SQLITE_BUSY

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith("BEGIN") and self.refusals:
            self.refusals -= 1
            refusal = sqlite3.OperationalError("database is locked")
            refusal.sqlite_errorcode = self.code
            raise refusal
        return super().execute(statement, *values)


@pytest.mark.parametrize(
    "code",
    [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT],
)
def test_transaction_waits_for_every_kind_of_business(code: int) -> None:
    taken = sqlite3.connect(":memory:", factory=_Taken, isolation_level=None)
    taken.code = code
    connection.execute_when_free(taken, "BEGIN IMMEDIATE")
    assert taken.in_transaction
    taken.close()


def test_transaction_does_not_wait_for_what_will_not_pass() -> None:
    taken = sqlite3.connect(":memory:", factory=_Taken, isolation_level=None)
    taken.code = sqlite3.SQLITE_READONLY
    with pytest.raises(sqlite3.OperationalError):
        connection.execute_when_free(taken, "BEGIN IMMEDIATE")
    assert taken.refusals == 1
    taken.close()


@pytest.mark.parametrize("signature", [0, connection.APPLICATION_ID])
def test_opening_waits_for_who_reads_a_new_file(
    signature: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"PRAGMA application_id = {signature}")
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM sqlite_master")
    monkeypatch.setattr("time.sleep", lambda _seconds: other.rollback())
    opened = connection.open_writer(path)
    assert opened.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    opened.close()
    other.close()

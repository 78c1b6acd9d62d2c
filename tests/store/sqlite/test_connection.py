"""Beginning a transaction or opening a new file while another process has the lock."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from workron.store.sqlite import connection


class _LockedConnection(sqlite3.Connection):
    """A connection whose file another process has locked for a while."""

    rejections = 2
    code = sqlite3.SQLITE_BUSY

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith("BEGIN") and self.rejections:
            self.rejections -= 1
            rejection = sqlite3.OperationalError("database is locked")
            rejection.sqlite_errorcode = self.code
            raise rejection
        return super().execute(statement, *values)


@pytest.mark.parametrize(
    "code",
    [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT],
)
def test_transaction_waits_for_every_busy_code(code: int) -> None:
    locked = sqlite3.connect(":memory:", factory=_LockedConnection, isolation_level=None)
    locked.code = code
    connection.execute_when_free(locked, "BEGIN IMMEDIATE")
    assert locked.in_transaction
    locked.close()


def test_transaction_does_not_wait_when_the_error_is_permanent() -> None:
    locked = sqlite3.connect(":memory:", factory=_LockedConnection, isolation_level=None)
    locked.code = sqlite3.SQLITE_READONLY
    with pytest.raises(sqlite3.OperationalError):
        connection.execute_when_free(locked, "BEGIN IMMEDIATE")
    assert locked.rejections == 1
    locked.close()


@pytest.mark.parametrize("signature", [0, connection.APPLICATION_ID])
def test_open_waits_while_another_process_reads_a_new_file(
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

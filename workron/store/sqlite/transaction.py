"""What a verb is given to work with: named statements, inside the transaction of its batch.

Made by `lane` for each request, on the thread that owns the connection; called by the verbs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workron.store.sqlite import statements

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence


class Transaction:
    """Statements by name. Each has `:now`, one time for the whole verb."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self.now = now

    def run(self, statement: str, /, **values: Any) -> int:
        """Run a statement and count the rows that it changed."""
        return self._execute(statement, values).rowcount

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Read all rows."""
        return self._execute(statement, values).fetchall()

    def row(self, statement: str, /, **values: Any) -> Any:
        """Read the first row, or None."""
        return self._execute(statement, values).fetchone()

    def fill(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.executemany(statements.text(statement), rows)

    def clear(self) -> None:
        """Empty the scratch sets."""
        for statement in statements.of_file("clear").values():
            self._connection.execute(statement)

    def _execute(self, statement: str, values: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(statements.text(statement), values | {"now": self.now})


def listed(values: Iterable[Any]) -> str:
    """Word a list for `json_each`; UUIDs become text."""
    return json.dumps(list(values), default=str)

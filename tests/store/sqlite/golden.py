"""The whole schema for review: `python -m tests.store.sqlite.golden` writes it."""

import sqlite3
from pathlib import Path

from tests.store.sqlite import opening


def dump(connection: sqlite3.Connection) -> str:
    """Return every table, index and view, in order of kind and name."""
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        " ORDER BY type DESC, name"
    )
    return "".join(f"{row[0]};\n\n" for row in rows)


if __name__ == "__main__":
    Path(__file__).with_name("schema.sql").write_text(dump(opening.open_bare()))

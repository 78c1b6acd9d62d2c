"""The store on SQLite, in a file or in memory, over the standard library.

Belongs here: the one writer thread, migrations, and one SQL file per verb under `sql/`, with the
names that the PostgreSQL store uses.
Does not belong here: SQL text inside Python, rules that `workron.core` already states, anything
that PostgreSQL would need as well.
Called by: `workron.store.connect`, for `sqlite:///path` and `memory:`.
"""

from workron.store.sqlite.store import open_sqlite

__all__ = ["open_sqlite"]

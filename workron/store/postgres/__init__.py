"""The store on PostgreSQL 15 and newer, over asyncpg.

Belongs here: connections, migrations, and one SQL file per verb under `sql/`, named as the verb.
Does not belong here: SQL text inside Python, rules that `workron.core` already states, anything
that SQLite would need as well.
Called by: `workron.store.connect`, for a `postgresql://` URL.
"""

from workron.store.postgres.schema import migrate
from workron.store.postgres.store import open_postgres, open_worker

__all__ = ["migrate", "open_postgres", "open_worker"]

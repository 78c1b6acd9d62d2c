"""The store on PostgreSQL 15 and newer, over asyncpg.

`sql/` has one file per method of the store. Most are functions in the database, which `functions`
installs; tables are created by `migrations/`.
"""

from workron.store.postgres.schema import migrate
from workron.store.postgres.store import open_postgres, open_worker

__all__ = ["migrate", "open_postgres", "open_worker"]

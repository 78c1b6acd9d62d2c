"""What a restored database leaves open: rights of everybody, which no dump of a database has in it.

A new database lets everybody make temporary tables, and every function be called by all. `migrate`
asks each time, as it is what runs before anybody works with a database; called by `schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncpg import Connection

_ARE_PUBLIC: Final = """
    SELECT EXISTS (
        SELECT 1 FROM pg_proc p
        CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.pronamespace = 'workron'::regnamespace AND a.grantee = 0)"""
_WORKERS: Final = """
    SELECT DISTINCT r.rolname::text AS name FROM pg_proc p CROSS JOIN aclexplode(p.proacl) a
    JOIN pg_roles r ON r.oid = a.grantee
    WHERE p.pronamespace = 'workron'::regnamespace AND p.proname = 'register'
    AND a.grantee <> p.proowner AND EXISTS (SELECT 1 FROM workron.open_doors(r.rolname))
    ORDER BY 1"""
_CLOSE: Final = "SELECT * FROM workron.close_doors($1) AS statement"


async def close(connection: Connection) -> list[str]:
    """Close what workers need not have open; say what was done, and what is not ours to do."""
    told = []
    if await connection.fetchval(_ARE_PUBLIC):
        await connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC")
        told.append("rights: its functions are closed to everybody but workers")
    for row in await connection.fetch(_WORKERS):
        left = [one["statement"] for one in await connection.fetch(_CLOSE, row["name"])]
        told.append(f"rights: role {row['name']} can {_done(left)}")
    return told


def _done(left: list[str]) -> str:
    if not left:
        return "run jobs, and nothing else again"
    return f"still do more than run jobs; let a superuser run `{'; '.join(left)}`"

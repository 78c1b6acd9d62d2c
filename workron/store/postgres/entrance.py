"""Whether a role that was just made can log in by the way that workers come. For `operator`.

A server that lets its owner in may know other roles from elsewhere (`pg_hba.conf`), and a pooler
knows those alone that it was told of. Workers that cannot log in would say so in their logs only.
"""

from __future__ import annotations

from typing import Final

import asyncpg

from workron.core import errors
from workron.store.postgres import faults

_SECONDS: Final = 10.0
_REFUSALS: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    # What PgBouncer says to a role that it does not know.
    asyncpg.ProtocolViolationError,
)


async def check(url: str) -> None:
    """Log in once; StoreRightsError if that is refused, and nothing if there is no answer now."""
    try:
        connection = await asyncpg.connect(url, timeout=_SECONDS, statement_cache_size=0)
    except _REFUSALS as refused:
        raise errors.StoreRightsError(
            f"{faults.shown(url)}: workers cannot log in as the role that was made for them:"
            f" {refused}; let pg_hba.conf admit it by its password (scram-sha-256), and a PgBouncer"
            " in front ask the server for it (auth_query)"
        ) from refused
    except faults.DRIVER:
        # Too busy for now, or gone: who comes later finds out.
        return
    await connection.close(timeout=_SECONDS)

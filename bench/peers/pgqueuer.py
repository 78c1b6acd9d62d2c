"""PgQueuer: Python over asyncpg, like Workron.

It deletes a finished job and keeps its outcome in a log; the bench counts the log. The tables are
the durable ones that it creates by default.
"""

from __future__ import annotations

from typing import Final

from bench.peers import environment
from bench.peers.peer import Peer

PEER: Final = Peer(
    "pgqueuer",
    environment.put("pgqueuer[asyncpg]"),
    environment.queue(
        "PgQueuer",
        "on_pgqueuer.py",
        "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
    ),
)

"""PgQueuer: Python over asyncpg, as ours.

It deletes a job that has ended, and keeps what became of it in a log, which is what is counted. Its
tables are the durable ones that it makes unless told otherwise.
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

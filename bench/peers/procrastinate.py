"""Procrastinate: Python over psycopg, a job a fetch. It keeps jobs that have ended where they were.

With the compiled psycopg, which its authors advise for speed.
"""

from __future__ import annotations

from typing import Final

from bench.peers import environment
from bench.peers.peer import Peer

PEER: Final = Peer(
    "procrastinate",
    environment.put("procrastinate", "psycopg[binary]"),
    environment.queue(
        "Procrastinate",
        "on_procrastinate.py",
        "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
    ),
    # It drains some hundreds a second: all the jobs of a round would take it minutes.
    divisor=30,
)

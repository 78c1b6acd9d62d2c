"""Procrastinate: Python over psycopg, one job for each fetch. It keeps finished jobs.

The bench uses the compiled psycopg, as its authors advise for speed.
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
    # It drains hundreds a second: all jobs of a round would take minutes.
    divisor=30,
)

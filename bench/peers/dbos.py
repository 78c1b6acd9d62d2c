"""DBOS: durable workflows in Python. A job is a workflow without steps; DBOS keeps all of them."""

from __future__ import annotations

from typing import Final

from bench.peers import environment
from bench.peers.peer import Peer

PEER: Final = Peer(
    "dbos",
    environment.put("dbos"),
    environment.queue(
        "DBOS, workflows without steps",
        "on_dbos.py",
        "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'",
    ),
    # It drains about a thousand a second, and inserts them one by one as slowly.
    divisor=15,
)

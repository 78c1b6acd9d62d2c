"""Lists all peers, and which of them are installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.config import Config
from bench.peers import awa, dbos, debian, graphile, pgqueuer, procrastinate, river
from bench.peers.peer import Kit, Peer

EVERY: Final[Sequence[Peer]] = (
    river.PEER,
    pgqueuer.PEER,
    awa.PEER,
    procrastinate.PEER,
    graphile.PEER,
    dbos.PEER,
)
OTHERS: Final[Sequence[Kit]] = (
    river.SQLITE,
    debian.NINJA,
    debian.PARALLEL,
)
"""Systems for comparisons other than a queue on PostgreSQL."""


def installed(config: Config) -> list[Peer]:
    """Return the installed peers."""
    return [one for one in EVERY if one.is_installed(config.peers[one.name])]


def missing(config: Config) -> list[str]:
    """Return the names of systems that are not installed and so not compared."""
    kits = [*EVERY, *OTHERS]
    return [one.name for one in kits if not one.is_installed(config.peers[one.name])]

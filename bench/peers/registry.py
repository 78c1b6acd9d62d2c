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
"""What ours is held against elsewhere than in a queue over PostgreSQL."""


def installed(config: Config) -> list[Peer]:
    """Give those that are here."""
    return [one for one in EVERY if one.is_installed(config.peers[one.name])]


def missing(config: Config) -> list[str]:
    """Name what is not here, and is left out of every figure."""
    kits = [*EVERY, *OTHERS]
    return [one.name for one in kits if not one.is_installed(config.peers[one.name])]

"""All peers, and which of them are here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from bench.config import Config
from bench.peers import awa, dbos, pgqueuer, procrastinate
from bench.peers.peer import Peer

EVERY: Final[Sequence[Peer]] = (
    pgqueuer.PEER,
    awa.PEER,
    procrastinate.PEER,
    dbos.PEER,
)


def installed(config: Config) -> list[Peer]:
    """Give those that are here, and say which are not."""
    here = [one for one in EVERY if one.is_installed(config.peers[one.name])]
    if missing := [one.name for one in EVERY if one not in here]:
        print(f"not installed, and left out: {', '.join(missing)}", file=sys.stderr)
    return here

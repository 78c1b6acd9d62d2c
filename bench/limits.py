"""What this machine can do: taken before everything else, and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.config import Config
from bench.figure import Side
from bench.limit import processes


class Taken(NamedTuple):
    """A limit, and the unit that it is told in."""

    side: Side
    unit: str


def every(config: Config, dsn: str) -> Iterator[Taken]:
    """Name all."""
    del dsn
    shell = config.jobs["shell"]
    yield Taken(processes.spawning(shell, at_once=1, argv=processes.SHELL), "processes/s")
    yield Taken(processes.spawning(shell, at_once=2, argv=processes.SHELL), "processes/s")

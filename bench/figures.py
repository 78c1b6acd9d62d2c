"""Lists every figure in the order in which it is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.config import Config
from bench.figure import Against, Figure, Goal, Side
from bench.limit import command_tools, pgbench, rounds
from bench.ours import (
    dags,
    dead,
    depth,
    held,
    idle,
    noop,
    objects,
    pickup,
    program,
    restart,
    sqlite,
    submission,
    worker,
)
from bench.peers import against, graphile, river
from bench.peers.peer import Kit


def every(config: Config, dsn: str) -> Iterator[Figure]:
    """Yield all figures, measured on this server."""
    jobs = config.jobs
    yield from worker.figures(dsn, jobs, _tools(config))
    yield from noop.figures(config, dsn, *_noop(config, dsn))
    hop = rounds.hopping(dsn, jobs["commits"])
    yield from dags.figures(config, dsn, [Against(hop, Goal(0.7))])
    yield from pickup.figures(dsn, jobs["pickup"], _pickup(config, dsn))
    yield from submission.figures(dsn, jobs["submit"])
    yield from sqlite.figures(jobs["noop"], _sqlite(config))
    yield from program.figures(jobs["shell"])
    yield from depth.figures(dsn, config.long)
    yield from held.figures(dsn, config.long)
    yield from dead.figures(dsn, config.long)
    yield from idle.figures(dsn, config.long)
    yield from restart.figures(config)
    yield from objects.figures(dsn, config.long)


def _noop(config: Config, dsn: str) -> tuple[Sequence[Against], Sequence[Against]]:
    """Return the comparisons for one process and for two."""
    limit = pgbench.draining(dsn, config.jobs["noop"], batch=100)
    one = [Against(limit, Goal(0.25)), *against.noop(config, dsn)]
    return one, [Against(limit, Goal(0.4))]


def _tools(config: Config) -> Sequence[Against]:
    """Return tools that start commands and store nothing; Workron should be faster than one."""
    flat = command_tools.flat(config.jobs["tools"], at_once=2)
    return [Against(one, Goal(1) if "parallel" in one.title else None) for one in flat]


def _pickup(config: Config, dsn: str) -> Sequence[Against]:
    if not _is_here(config, graphile.PEER):
        return []
    side = graphile.pickup(dsn, config.jobs["pickup"])
    return [Against(side, Goal(1, is_most=True))]


def _sqlite(config: Config) -> Sequence[Against]:
    if not _is_here(config, river.SQLITE):
        return []
    side: Side = river.sqlite(config.jobs["noop"] // 10)
    return [Against(side, Goal(1.5))]


def _is_here(config: Config, kit: Kit) -> bool:
    return kit.is_installed(config.peers[kit.name])

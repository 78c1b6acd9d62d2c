"""Measures the limits of this machine before and after all figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench import server
from bench.config import Config
from bench.figure import Side
from bench.limit import (
    api_server,
    copying,
    disk,
    pgbench,
    processes,
    rounds,
    sqlite_jobs,
    sqlite_rows,
)


class MachineLimit(NamedTuple):
    """A limit and its unit."""

    side: Side
    unit: str


def every(config: Config, dsn: str) -> Iterator[MachineLimit]:
    """Yield all limits."""
    jobs = config.jobs
    for at_once in (1, 2):
        side = processes.spawning(jobs["shell"], at_once=at_once, argv=processes.SHELL)
        yield MachineLimit(side, "processes/s")
    yield MachineLimit(disk.syncing(server.data(dsn), jobs["commits"]), "writes/s")
    yield MachineLimit(pgbench.draining(dsn, jobs["commits"], batch=1), "jobs/s")
    yield MachineLimit(pgbench.draining(dsn, jobs["noop"], batch=100), "jobs/s")
    yield MachineLimit(rounds.hopping(dsn, jobs["commits"]), "hops/s")
    yield MachineLimit(sqlite_rows.committing(jobs["noop"], batch=100), "rows/s")
    yield MachineLimit(sqlite_jobs.draining(jobs["noop"], batch=100), "jobs/s")
    if api_server.is_named():
        yield MachineLimit(api_server.writing(jobs["objects"]), "objects/s")
    copied = jobs["copied"]
    yield MachineLimit(copying.flat(dsn, copied), "jobs/s")
    yield MachineLimit(copying.with_edges(dsn, copied, 1), "jobs/s")
    yield MachineLimit(copying.with_edges(dsn, copied, 2), "jobs/s")

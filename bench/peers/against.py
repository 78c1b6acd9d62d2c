"""Compares figures of Workron with the installed peers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bench import draining
from bench.config import Config
from bench.figure import Against, Goal
from bench.peers import registry

GOALS: Final[Mapping[str, Goal]] = {
    "river": Goal(1),
    "pgqueuer": Goal(1.5),
    "awa-pg": Goal(3),
    "procrastinate": Goal(20),
    # It keeps no history of jobs that have ended.
    "graphile-worker": Goal(0.4),
}
"""The required ratio of our rate of no-op jobs to theirs. Others are only reported."""


def noop(config: Config, dsn: str) -> list[Against]:
    """Measure how each installed peer drains no-op jobs on this server."""
    jobs = config.jobs["noop"]
    return [
        Against(
            draining.side(one.queue(one.folder), dsn, one.share(jobs)),
            GOALS.get(one.name),
        )
        for one in registry.installed(config)
    ]

"""Every figure that there is, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Iterator

from bench.config import Config
from bench.figure import Against, Figure
from bench.ours import dags, noop, pickup, program, sqlite, worker


def every(config: Config, dsn: str) -> Iterator[Figure]:
    """Name all, with the server that they are measured on."""
    jobs = config.jobs
    yield from worker.figures(dsn, jobs)
    yield from noop.figures(config, dsn, [Against(noop.drained(config, dsn, workers=2))], [])
    yield from dags.figures(config, dsn, [Against(noop.drained(config, dsn, workers=1))])
    yield from pickup.figures(dsn, jobs["pickup"])
    yield from sqlite.figures(jobs["noop"])
    yield from program.figures(jobs["shell"])

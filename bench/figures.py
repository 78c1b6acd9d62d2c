"""Every figure that there is, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Iterator

from bench.config import Config
from bench.figure import Figure
from bench.ours import pickup, program, sqlite, submission, worker


def every(config: Config, dsn: str) -> Iterator[Figure]:
    """Name all, with the server that they are measured on."""
    jobs = config.jobs
    yield from worker.figures(dsn, jobs)
    yield from pickup.figures(dsn, jobs["pickup"])
    yield from submission.figures(dsn, jobs["submit"])
    yield from sqlite.figures(jobs["noop"])
    yield from program.figures(jobs["shell"])

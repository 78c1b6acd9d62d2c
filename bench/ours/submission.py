"""Measures how fast workflows are submitted, from validated models to the commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from bench import server
from bench.figure import Against, Figure, Goal, Side
from bench.limit import copying
from bench.ours import workflows
from bench.ours.workflows import Shape


def figures(dsn: str, jobs: int) -> Iterator[Figure]:
    """Submit jobs without dependencies, and jobs with one or two upstreams each."""
    array, flat = copying.array(dsn, jobs), copying.flat(dsn, jobs)
    ours = _submitting(dsn, jobs, workflows.ARRAY)
    yield Figure("submit-array", "jobs/s", ours, [Against(array, Goal(0.5))])
    ours = _submitting(dsn, jobs, workflows.FLAT)
    yield Figure("submit", "jobs/s", ours, [Against(flat, Goal(0.5))])
    for edges, shape in workflows.EDGES.items():
        limit = copying.with_edges(dsn, jobs, edges)
        ours = _submitting(dsn, jobs, shape)
        yield Figure(f"submit-edges-{edges}", "jobs/s", ours, [Against(limit, Goal(0.25))])


def _submitting(dsn: str, jobs: int, shape: Shape) -> Side:
    title = f"submission of models, {shape.title}"
    return Side(title, lambda: asyncio.run(_submit(dsn, jobs, shape)))


async def _submit(dsn: str, jobs: int, shape: Shape) -> float:
    manifests = shape.read_in(jobs)
    async with server.database(dsn) as url, workflows.opened(url) as store:
        began = time.perf_counter()
        await workflows.submitted(store, manifests)
        return jobs / (time.perf_counter() - began)

"""Measures claims and completions in a SQLite file through the store, without running commands."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from bench.figure import Against, Figure, Goal, Side
from bench.limit import sqlite_jobs, sqlite_rows
from bench.ours import plans
from workron.core import ids
from workron.store import api, connect, types

_BATCH: Final = 100


def figures(jobs: int, others: Sequence[Against]) -> Iterator[Figure]:
    """Claim and complete jobs in batches."""
    ours = Side(
        f"SQLite file, claim and complete, {_BATCH} a call",
        lambda: asyncio.run(_drain(jobs)),
    )
    limit = Against(sqlite_jobs.draining(jobs, batch=_BATCH), Goal(0.25))
    rows = Against(sqlite_rows.committing(jobs, batch=_BATCH))
    yield Figure("sqlite", "jobs/s", ours, [limit, rows, *others])


async def _drain(jobs: int) -> float:
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
        url = f"sqlite:///{pathlib.Path(folder) / 'drain.db'}"
        store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
        try:
            return jobs / await _seconds(store, jobs)
        finally:
            await store.close()


async def _seconds(store: api.Store, jobs: int) -> float:
    await store.submit([plans.many(jobs, {"command": "true"})])
    token = await store.ensure_pool("default", "default")
    session = await store.register(types.Registration(token, "bench", uuid.uuid4(), _BATCH))
    began = time.perf_counter()
    claimed = await store.claim(session.key, _claims())
    while claimed:
        ends = [types.AttemptReport(one.job, *one.ref, types.Outcome.SUCCEEDED) for one in claimed]
        claimed = (await store.complete(session.key, ends, _claims())).claimed
    return time.perf_counter() - began


def _claims() -> list[ids.ClaimId]:
    return ids.mint_claims(plans.Clock().now(), plans.RNG, _BATCH)

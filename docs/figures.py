"""Print `explanation/figures.md`: rates of the stores, sizes of the suites, states searched.

The rates are those of one loop over the store interface, without commands. They show how the rules
and the SQL scale and cannot be compared with other systems.
"""

import argparse
import asyncio
import contextlib
import os
import platform
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT))

from tests import postgres_server  # noqa: E402
from workron.core import graph, ids  # noqa: E402
from workron.core.plan import Edge, Identity, Kind, Plan, PlannedJob, SchedulingTerms, plain_specs  # noqa: E402
from workron.core.verdict import Condition  # noqa: E402
from workron.store import api, connect, types  # noqa: E402

_BATCH = 100
_RNG = random.Random(1)  # noqa: S311


@dataclass(frozen=True)
class _Shape:
    title: str
    upstreams: Sequence[Sequence[int]]


class _SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def _flat(jobs: int) -> _Shape:
    return _Shape(f"{jobs:,} jobs, no edges", [[] for _ in range(jobs)])


def _layered(jobs: int, edges: int) -> _Shape:
    """Return a DAG in which each job depends on some of the thousand before it."""
    each = edges // jobs
    upstreams = [_RNG.sample(range(max(0, job - 1000), job), min(each, job)) for job in range(jobs)]
    return _Shape(f"{jobs:,} jobs, {sum(map(len, upstreams)):,} edges", upstreams)


def _plan(shape: _Shape) -> Plan:
    members = [
        PlannedJob(Kind.JOB, f"t{job}", 1, None, None, 0, Condition.TASK, len(ups), bool(ups))
        for job, ups in enumerate(shape.upstreams)
    ]
    whole = PlannedJob(Kind.WORKFLOW, "flow", 0, upstreams=len(members))
    edges = [Edge(up + 1, job + 1) for job, ups in enumerate(shape.upstreams) for up in ups]
    identity = Identity("default", Kind.WORKFLOW, "flow", uuid.uuid4())
    specs = plain_specs([{}, {"command": "true"}])
    return Plan(
        identity,
        lambda: "digest",
        [whole, *members],
        [SchedulingTerms(), SchedulingTerms()],
        specs,
        edges,
    )


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[api.Store]:
    clock = _SystemClock()
    await connect.migrate(url, clock=clock, rng=_RNG)
    store = await connect.connect(url, clock=clock, rng=_RNG)
    try:
        yield store
    finally:
        await store.close()


async def _measure(url: str, shape: _Shape) -> tuple[float, float]:
    """Return jobs per second, submitted and drained."""
    plan = _plan(shape)
    async with _opened(url) as store:
        token = await store.ensure_pool("default", "default")
        session = await store.register(
            types.Registration(token, "figures", ids.mint_uuid(_RNG), _BATCH)
        )
        started = time.perf_counter()
        [submitted] = await store.submit([plan])
        between = time.perf_counter()
        await _drain(store, session, submitted.run)
        ended = time.perf_counter()
    jobs = len(shape.upstreams)
    return jobs / (between - started), jobs / (ended - between)


async def _drain(store: api.Store, session: types.Session, run: ids.JobId) -> None:
    claimed = await store.claim(session.key, _claim_ids())
    while claimed:
        ends = [
            types.AttemptReport(one.job, one.claim, one.fence, types.Outcome.SUCCEEDED)
            for one in claimed
        ]
        claimed = (await store.complete(session.key, ends, _claim_ids())).claimed
        if not claimed:
            await _propagate(store)
            claimed = await store.claim(session.key, _claim_ids())
    await _propagate(store)
    [row, *_] = await store.list_jobs(run)
    if row.state != "Succeeded":
        raise RuntimeError(f"the workflow ended {row.state}")


async def _propagate(store: api.Store) -> None:
    while await store.propagate(1000):
        pass


def _claim_ids() -> list[ids.ClaimId]:
    return ids.mint_claims(datetime.now(UTC), _RNG, _BATCH)


@contextlib.contextmanager
def _urls() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder, postgres_server.running() as dsn:
        yield {
            "memory": "memory:",
            "SQLite file": f"sqlite:///{folder}/{{}}.db",
            "PostgreSQL": dsn,
        }


def _rates(shapes: Sequence[_Shape]) -> Iterator[str]:
    yield "| store | DAG | submitted, jobs a second | drained, jobs a second |"
    yield "|---|---|---:|---:|"
    with _urls() as urls:
        for name, url in urls.items():
            for number, shape in enumerate(shapes):
                submitted, drained = asyncio.run(_measure(url.format(number), shape))
                yield f"| {name} | {shape.title} | {submitted:,.0f} | {drained:,.0f} |"


def _checked(shape: _Shape) -> str:
    names = [f"t{job}" for job in range(len(shape.upstreams))]
    upstreams = [[names[up] for up in ups] for ups in shape.upstreams]
    started = time.perf_counter()
    graph.check(names, upstreams)
    return f"Checking the graph of {shape.title}: {time.perf_counter() - started:.1f} s"


def _suite_counts() -> Iterator[str]:
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/store"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    yield "| store | tests of the behaviour suite |"
    yield "|---|---:|"
    for store in ("memory", "sqlite", "postgresql"):
        count = len(re.findall(rf"^tests/store/behaviour.*\[.*\b{store}\b", listing, re.MULTILINE))
        yield f"| {store} | {count} |"


_HEAD = """# Figures

Printed by `make docs` (`docs/figures.py`) on {machine}.
The rates are those of one process that claims and completes {batch} jobs a call over the store
interface, without commands. The embedded PostgreSQL of the tests runs without fsync. The rates show
how the parts scale on one machine and cannot be compared with other systems.
"""


def _machine() -> str:
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return f"{os.cpu_count()} cores, {versions}"


def _searched() -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.protocol"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _page(scale: int) -> Iterator[str]:
    shapes = [_flat(100_000 // scale), _layered(100_000 // scale, 500_000 // scale)]
    yield _HEAD.format(machine=_machine(), batch=_BATCH)
    yield "## Rates\n"
    yield from _rates(shapes)
    yield f"\n{_checked(shapes[1])}.\n"
    yield "## Suites\n"
    yield from _suite_counts()
    if scale == 1:
        yield f"\n## The model of leases and fences\n\n```text\n{_searched()}```"


def main() -> None:
    """Print the page; `--small` is a quick look that the rates can still be taken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    for line in _page(100 if parser.parse_args().small else 1):
        print(line, flush=True)


if __name__ == "__main__":
    main()

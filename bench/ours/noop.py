"""Measures no-op jobs that complete workers run over PostgreSQL: the rate, and the cost of a job.

The worker is real except for its runner, which starts no process. So this measures what the agent
and the database do for a job.
"""

from __future__ import annotations

import asyncio
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from bench import draining
from bench.config import Config
from bench.draining import Program, Queue
from bench.figure import Against, Figure, Goal, Side
from bench.ours import plans
from workron.core.plan import Plan
from workron.store import connect

_ROOT: Final = pathlib.Path(__file__).parents[2]
_SLOTS: Final = 1000
"""The maximum of the command. From 400 on a job costs agent and server the same, but with larger
exchanges the agent waits less often without a job to start."""
_ENDED: Final = "SELECT count(*) FROM workron.attempt"
_WAL: Final = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 / 1024"
_COMMITS: Final = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
_MOST_COMMITS: Final = 0.05


def figures(
    config: Config, dsn: str, one: Sequence[Against], two: Sequence[Against]
) -> Iterator[Figure]:
    """Drain jobs without dependencies; `one` and `two` are compared with one and two processes."""
    single, double = (drained(config, dsn, workers=count) for count in (1, 2))
    yield Figure("noop", "jobs/s", single, one)
    yield Figure("noop-2", "jobs/s", double, [*two, Against(single)])
    yield from _costs(dsn, config.jobs["noop"])


def drained(config: Config, dsn: str, *, workers: int) -> Side:
    """Drain jobs without dependencies with this many processes."""
    return draining.side(_flat(workers), dsn, config.jobs["noop"])


def queue(title: str, plan: Callable[[int], Plan], workers: int = 1) -> Queue:
    """Drain a plan of jobs with this many workers."""
    return Queue(title, partial(_load, plan), partial(programs, workers), _ENDED)


def _flat(workers: int) -> Queue:
    program = "`workron worker`" if workers == 1 else f"{workers} `workron worker` processes"
    return queue(f"{program}, PostgreSQL, {_SLOTS} slots, no-op", _plan, workers)


def _plan(jobs: int) -> Plan:
    return plans.many(jobs, {"command": "true"})


def _costs(dsn: str, jobs: int) -> Iterator[Figure]:
    """Measure what the server writes and commits from the last submission to the last end."""
    at_most = Goal(1, is_most=True)
    wal = draining.cost("a no-op job: WAL", _flat(1), dsn, jobs, _WAL)
    yield Figure("wal", "KiB", wal, [Against(Side("1 KiB", lambda: 1.0), at_most)])
    commits = draining.cost("a no-op job: commits", _flat(1), dsn, jobs, _COMMITS)
    most = Side(f"{_MOST_COMMITS:g} commits", lambda: _MOST_COMMITS)
    yield Figure("commits", "commits", commits, [Against(most, at_most)])


def _load(plan: Callable[[int], Plan], url: str, jobs: int) -> None:
    asyncio.run(_submit(plan(jobs), url))


async def _submit(plan: Plan, url: str) -> None:
    await connect.migrate(url, clock=plans.Clock(), rng=plans.RNG)
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    await store.submit([plan])
    await store.close()


def programs(count: int, url: str) -> Sequence[Program]:
    """Return this many workers that run no commands."""
    options = ["--store", url, "--slots", str(_SLOTS)]
    command = [sys.executable, "-m", "bench.ours.null_worker", "worker", *options]
    return [Program(command, folder=_ROOT)] * count

"""Measures DAGs of no-op jobs, compared with the rate of jobs without dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from bench import draining
from bench.config import Config
from bench.figure import Against, Figure, Goal, Side
from bench.ours import noop, plans
from workron.core.plan import Plan

Shape = Callable[[int], Sequence[Sequence[int]]]
"""Returns the upstreams of each of a number of jobs."""

_LAYERS: Final = 5
_NOOP: Final = {"command": "true"}


def figures(config: Config, dsn: str, hop: Sequence[Against]) -> Iterator[Figure]:
    """Drain DAGs; a chain is compared with `hop`, in hops a second."""
    jobs = config.jobs["dag"]
    yield Figure("chain", "jobs/s", _side("a chain", _chain, dsn, config.jobs["chain"]), hop)
    flat = [Against(_side("no edges", _flat, dsn, jobs), Goal(0.7))]
    for name, title, shape in (
        ("fan-out", f"one upstream of {jobs - 1:,}", _fan_out),
        ("fan-in", f"one downstream of {jobs - 1:,}", _fan_in),
        ("layered", "random layers, one edge per job", partial(_layered, 1)),
    ):
        yield Figure(name, "jobs/s", _side(title, shape, dsn, jobs), flat)
    dense = _side("random layers, two edges per job", partial(_layered, 2), dsn, jobs)
    flat = [Against(one.side, Goal(0.4)) for one in flat]
    yield Figure("layered-2", "jobs/s", dense, flat)


def _side(title: str, shape: Shape, dsn: str, jobs: int) -> Side:
    def plan(count: int) -> Plan:
        return plans.shaped(shape(count), _NOOP)

    return draining.side(noop.queue(f"no-op jobs, {title}", plan), dsn, jobs)


def _flat(jobs: int) -> Sequence[Sequence[int]]:
    return [()] * jobs


def _chain(jobs: int) -> Sequence[Sequence[int]]:
    return [(), *((job,) for job in range(jobs - 1))]


def _fan_out(jobs: int) -> Sequence[Sequence[int]]:
    return [(), *[(0,)] * (jobs - 1)]


def _fan_in(jobs: int) -> Sequence[Sequence[int]]:
    return [*[()] * (jobs - 1), range(jobs - 1)]


def _layered(edges: int, jobs: int) -> Sequence[Sequence[int]]:
    """Give each job upstreams in the previous layer; the first layer has none.

    Layers are twice as wide as a worker has slots, so that the DAG does not keep it idle.
    """
    width = max(edges, jobs // _LAYERS)
    return [_above(job, width, edges) for job in range(jobs)]


def _above(job: int, width: int, edges: int) -> Sequence[int]:
    first = (job // width - 1) * width
    return () if first < 0 else plans.RNG.sample(range(first, first + width), edges)

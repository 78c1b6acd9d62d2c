"""`make bench`: what this machine can do, and how much of it Workron reaches, in one run.

Each figure of ours is measured in turns with the limit it is held against, and only their ratio is
told of both: absolute figures change with the machine and with what else it does.
"""

import argparse
import pathlib
import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bench import limits, ours, pickup, server, working

_ROUNDS: Final = 5
_SAMPLES: Final = 40
_SILENT_JOBS: Final = 200


class Pair(NamedTuple):
    """A figure of ours, the limit that it is held against, and what their ratio is to be."""

    title: str
    ours: Callable[[], float]
    limit_title: str
    limit: Callable[[], float]
    goal: str = ""


def main() -> None:
    """Measure and print a table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000, help="how many jobs a round has")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how often each is measured")
    asked = parser.parse_args()
    print("| ours | | the limit | | ratio | lowest to highest | goal |")
    print("|---|---:|---|---:|---:|---|---|")
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder, server.running() as dsn:
        for pair in _pairs(pathlib.Path(folder), dsn, asked.jobs):
            both = zip(*[(pair.ours(), pair.limit()) for _ in range(asked.rounds)], strict=True)
            _tell(pair, *both)
        _tell_pickup(dsn, asked.rounds)


def _pairs(folder: pathlib.Path, dsn: str, jobs: int) -> Iterator[Pair]:
    for slots in (2, 8):
        spawn = f"posix_spawn and wait, {slots} at once"
        for store in ("memory:", f"sqlite:///{folder}/run-{{}}.db"):
            title = f"`workron run`, {store.partition(':')[0]}, {slots} slots, `true`, jobs/s"
            run = ours.running(store, jobs=jobs, slots=slots)
            yield Pair(title, run, spawn, limits.spawning(jobs, at_once=slots))
    for slots in (8, 16, 32):
        title = f"`workron worker`, PostgreSQL, {slots} slots, `sh -c true`, jobs/s"
        run = working.running(dsn, jobs=jobs, slots=slots)
        spawn = "posix_spawn of it and wait, one after the other"
        limit = limits.spawning(jobs, at_once=1, argv=limits.SHELL)
        yield Pair(title, run, spawn, limit, "0.7 or more")
    commits = limits.committing(folder, jobs=10 * jobs, batch=100)
    drain = ours.draining(f"sqlite:///{folder}/drain-{{}}.db", jobs=10 * jobs, batch=100)
    yield Pair("SQLite file, claim and complete, 100 a call, jobs/s", drain, "rows/s", commits)
    bare = "Python with one connection, MB"
    yield Pair("an idle agent, MB", working.idle(dsn), bare, working.bare(dsn), "1.5 or less")
    silent = working.job(dsn, jobs=min(jobs, _SILENT_JOBS))
    yield Pair("a running silent job, KB", silent, "20 KB", lambda: 20.0, "1 or less")


def _tell(pair: Pair, mine: tuple[float, ...], limit: tuple[float, ...]) -> None:
    ratios = [one / other for one, other in zip(mine, limit, strict=True)]
    ours_, limit_ = statistics.median(mine), statistics.median(limit)
    print(
        f"| {pair.title} | {ours_:,.0f} | {pair.limit_title} | {limit_:,.0f}"
        f" | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
        f" | {pair.goal} |",
        flush=True,
    )


def _tell_pickup(dsn: str, rounds: int) -> None:
    mine, limit = pickup.measured(dsn, samples=_SAMPLES * rounds)
    middle, bare = statistics.median(mine), statistics.median(limit)
    worst = statistics.quantiles(mine, n=100)[98]
    print(_told("p50", middle, "commit, notify and claim, p50, ms", bare, "2 or less"))
    print(_told("p99", worst, "its own p50, ms", middle, "5 or less"))


def _told(which: str, one: float, limit_title: str, limit: float, goal: str) -> str:
    title = f"a job is picked up, {which}, ms"
    return f"| {title} | {one:.2f} | {limit_title} | {limit:.2f} | {one / limit:.2f} | | {goal} |"


main()

"""`make bench`: what this machine can do, and how much of it Workron reaches, in one run.

Each figure of ours is measured in turns with the limit it is held against, and only their ratio is
told of both: absolute rates change with the machine and with what else it does.
"""

import argparse
import pathlib
import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bench import limits, ours

_ROUNDS: Final = 5


class Pair(NamedTuple):
    """A figure of ours and the limit that it is held against, both in jobs a second."""

    title: str
    ours: Callable[[], float]
    limit_title: str
    limit: Callable[[], float]


def main() -> None:
    """Measure and print a table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000, help="how many jobs a round has")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how often each is measured")
    asked = parser.parse_args()
    print("| ours | jobs/s | the limit | /s | ratio | lowest to highest |")
    print("|---|---:|---|---:|---:|---|")
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
        for pair in _pairs(pathlib.Path(folder), asked.jobs):
            print(_row(pair, asked.rounds), flush=True)


def _pairs(folder: pathlib.Path, jobs: int) -> Iterator[Pair]:
    for slots in (2, 8):
        spawn = f"posix_spawn and wait, {slots} at once"
        for store in ("memory:", f"sqlite:///{folder}/run-{{}}.db"):
            title = f"`workron run`, {store.partition(':')[0]}, {slots} slots, `true`"
            run = ours.running(store, jobs=jobs, slots=slots)
            yield Pair(title, run, spawn, limits.spawning(jobs, at_once=slots))
    commits = limits.committing(folder, jobs=10 * jobs, batch=100)
    drain = ours.draining(f"sqlite:///{folder}/drain-{{}}.db", jobs=10 * jobs, batch=100)
    yield Pair("SQLite file, claim and complete, 100 a call", drain, "100 rows a commit", commits)


def _row(pair: Pair, rounds: int) -> str:
    measured = [(pair.ours(), pair.limit()) for _ in range(rounds)]
    ratios = [ours / limit for ours, limit in measured]
    ours, limit = (statistics.median(side) for side in zip(*measured, strict=True))
    return (
        f"| {pair.title} | {ours:,.0f} | {pair.limit_title} | {limit:,.0f}"
        f" | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"
    )


main()

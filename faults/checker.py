"""Compares the execution log with the store: what was lost, run twice, or overlapped.

- lost: a job that was acknowledged and has no accepted end;
- doubled: a job with two accepted ends, an accepted end whose execution is not in the log, or a
  claim that was executed twice;
- overlapping: two executions of one job alive at once, which is excused only while the worker of
  the older one is frozen, and for a second after it goes on (design: the promise of a lease);
- early: an execution that began before the end of one that it depends on;
- backward: a later attempt with a fence that is no higher.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from faults.execution_log import Execution

RETURN_SECONDS = 1.0
"""No command outlives its worker's return from a freeze by more."""
_FINAL = frozenset({"Succeeded", "Failed", "Cancelled"})
_TOLD = _FINAL | {"Retried"}


@dataclass(frozen=True)
class Freeze:
    """A worker, or its runner, that was stopped for a while."""

    worker: str
    since: float
    until: float


@dataclass(frozen=True)
class Overlap:
    """Two executions of one job, and how long both were seen alive."""

    older: Execution
    newer: Execution

    @property
    def seconds(self) -> float:
        """How long."""
        return self.older.last - self.newer.began


@dataclass
class Books:
    """What the store says."""

    jobs: dict[int, tuple[str, str, int | None]] = field(default_factory=dict)
    """Root, name and index of each job."""
    done: dict[int, tuple[str, int]] = field(default_factory=dict)
    """State and number of attempts of each job that has ended."""
    attempts: Sequence[tuple[int, int, str]] = ()
    """Job, number and outcome of each attempt that is over."""
    edges: Sequence[tuple[int, int]] = ()
    """Upstream and downstream of each edge between two jobs."""


@dataclass
class Findings:
    """What is wrong, and what is to be told all the same."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    unexcused: list[Overlap] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    backward: list[str] = field(default_factory=list)

    @property
    def wrongs(self) -> list[str]:
        """All that must not be."""
        beside = [f"job {one.older.job} ran beside itself: {one}" for one in self.unexcused]
        return [*self.lost, *self.doubled, *beside, *self.early, *self.backward]

    def __str__(self) -> str:
        longest = max((one.seconds for one in self.overlaps), default=0.0)
        return (
            f"lost {len(self.lost)}, doubled {len(self.doubled)}, overlapping {len(self.overlaps)}"
            f" (longest {longest:.2f} s, unexcused {len(self.unexcused)}),"
            f" early {len(self.early)}, backward {len(self.backward)}"
        )


def check(
    acknowledged: Iterable[tuple[str, str, int | None]],
    executions: Sequence[Execution],
    books: Books,
    freezes: Sequence[Freeze] = (),
) -> Findings:
    """Judge a store that has come to rest."""
    by_job: dict[int, list[Execution]] = {}
    for one in sorted(executions, key=lambda one: (one.job, one.fence)):
        by_job.setdefault(one.job, []).append(one)
    overlaps = [pair for mine in by_job.values() for pair in _overlaps(mine)]
    return Findings(
        lost=_lost(acknowledged, books),
        doubled=_doubled(executions, books),
        overlaps=overlaps,
        unexcused=[one for one in overlaps if not any(_excuses(f, one) for f in freezes)],
        early=_early(by_job, books),
        backward=_backward(by_job),
    )


def _lost(acknowledged: Iterable[tuple[str, str, int | None]], books: Books) -> list[str]:
    ended = {name for job, name in books.jobs.items() if job in books.done}
    return [f"{name} was acknowledged and has no end" for name in acknowledged if name not in ended]


def _doubled(executions: Sequence[Execution], books: Books) -> list[str]:
    twice = [
        f"attempt {one.attempt} of job {one.job} was executed {one.begins} times"
        for one in executions
        if one.begins > 1
    ]
    return [*twice, *_accepted_twice(books), *_accepted_of_nothing(executions, books)]


def _accepted_twice(books: Books) -> Iterator[str]:
    finals: dict[int, list[int]] = {}
    for job, attempt, outcome in books.attempts:
        if outcome in _FINAL:
            finals.setdefault(job, []).append(attempt)
    for job, accepted in finals.items():
        if len(accepted) > 1:
            yield f"job {job} has ended in attempts {accepted}"
        elif job in books.done and books.done[job][1] != accepted[0]:
            yield f"job {job} is done by attempt {books.done[job][1]}, and ended in {accepted[0]}"


def _accepted_of_nothing(executions: Sequence[Execution], books: Books) -> Iterator[str]:
    found = {(one.job, one.attempt): one for one in executions}
    for job, attempt, outcome in books.attempts:
        seen = found.get((job, attempt))
        if outcome in _TOLD and seen is None:
            yield f"attempt {attempt} of job {job} is {outcome}, and was never executed"
        elif outcome == "Succeeded" and seen and not seen.has_ended:
            yield f"attempt {attempt} of job {job} has succeeded, and did not come to that"


def _overlaps(mine: Sequence[Execution]) -> list[Overlap]:
    return [
        Overlap(older, newer)
        for older, newer in itertools.combinations(mine, 2)
        if older.last > newer.began
    ]


def _excuses(freeze: Freeze, overlap: Overlap) -> bool:
    older, began = overlap.older, overlap.newer.began
    is_frozen = freeze.since <= began <= freeze.until + RETURN_SECONDS
    in_time = older.last <= freeze.until + RETURN_SECONDS
    return older.worker == freeze.worker and is_frozen and in_time


def _early(by_job: dict[int, list[Execution]], books: Books) -> list[str]:
    ends = {(one.job, one.attempt): one.last for mine in by_job.values() for one in mine}
    wrongs = []
    for upstream, downstream in books.edges:
        _, attempt = books.done.get(upstream, ("", 0))
        end = ends.get((upstream, attempt))
        if end is not None and any(one.began < end for one in by_job.get(downstream, [])):
            wrongs.append(f"job {downstream} began before job {upstream} ended")
    return wrongs


def _backward(by_job: dict[int, list[Execution]]) -> list[str]:
    return [
        f"job {job}: attempt {later.attempt} has fence {later.fence}, below an earlier one's"
        for job, mine in by_job.items()
        for later, before in zip(mine[1:], mine, strict=False)
        if later.attempt <= before.attempt or later.fence <= before.fence
    ]

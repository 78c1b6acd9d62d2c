"""Compares the execution log with the store: lost, doubled and overlapping executions.

- lost: an acknowledged job without an accepted end;
- doubled: a job with two accepted ends, an accepted end whose execution is not in the log, or a
  claim that was executed twice;
- overlapping: two executions of one job alive at once, which is allowed only while the worker of
  the older one is frozen, and for a second after it continues;
- early: an execution that began before the end of one that it depends on;
- backward: a later attempt whose fence is not higher.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from faults.execution_log import Execution

RETURN_SECONDS = 1.0
"""The maximum time that a command outlives the end of its worker's freeze."""
_FINAL = frozenset({"Succeeded", "Failed", "Cancelled"})
_REPORTED = _FINAL | {"Retried"}


@dataclass(frozen=True)
class Freeze:
    """A period in which a worker or its runner was stopped."""

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
        """The duration of the overlap."""
        return self.older.last - self.newer.began


@dataclass
class StoreState:
    """The jobs, attempts and edges that the store contains."""

    jobs: dict[int, tuple[str, str, int | None]] = field(default_factory=dict)
    """Run, name and index of each job."""
    done: dict[int, tuple[str, int]] = field(default_factory=dict)
    """State and number of attempts of each job that has ended."""
    attempts: Sequence[tuple[int, int, str]] = ()
    """Job, number and outcome of each attempt that is over."""
    edges: Sequence[tuple[int, int]] = ()
    """Upstream and downstream of each edge between two jobs."""


@dataclass
class Findings:
    """Everything that the check found."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    unexcused: list[Overlap] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    backward: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """The findings that are errors; allowed overlaps are not."""
        overlapping = [
            f"job {one.older.job} has overlapping executions: {one}" for one in self.unexcused
        ]
        return [*self.lost, *self.doubled, *overlapping, *self.early, *self.backward]

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
    state: StoreState,
    freezes: Sequence[Freeze] = (),
) -> Findings:
    """Check a store in which all jobs have ended."""
    by_job: dict[int, list[Execution]] = {}
    for one in sorted(executions, key=lambda one: (one.job, one.fence)):
        by_job.setdefault(one.job, []).append(one)
    overlaps = [pair for mine in by_job.values() for pair in _overlaps(mine)]
    return Findings(
        lost=_lost(acknowledged, state),
        doubled=_doubled(executions, state),
        overlaps=overlaps,
        unexcused=[one for one in overlaps if not any(_excuses(f, one) for f in freezes)],
        early=_early(by_job, state),
        backward=_backward(by_job),
    )


def _lost(acknowledged: Iterable[tuple[str, str, int | None]], state: StoreState) -> list[str]:
    ended = {name for job, name in state.jobs.items() if job in state.done}
    return [f"{name} was acknowledged and has no end" for name in acknowledged if name not in ended]


def _doubled(executions: Sequence[Execution], state: StoreState) -> list[str]:
    twice = [
        f"attempt {one.attempt} of job {one.job} was executed {one.begins} times"
        for one in executions
        if one.begins > 1
    ]
    return [*twice, *_accepted_twice(state), *_accepted_without_execution(executions, state)]


def _accepted_twice(state: StoreState) -> Iterator[str]:
    finals: dict[int, list[int]] = {}
    for job, attempt, outcome in state.attempts:
        if outcome in _FINAL:
            finals.setdefault(job, []).append(attempt)
    for job, accepted in finals.items():
        if len(accepted) > 1:
            yield f"job {job} has ended in attempts {accepted}"
        elif job in state.done and state.done[job][1] != accepted[0]:
            yield f"job {job} is done by attempt {state.done[job][1]}, and ended in {accepted[0]}"


def _accepted_without_execution(
    executions: Sequence[Execution], state: StoreState
) -> Iterator[str]:
    found = {(one.job, one.attempt): one for one in executions}
    for job, attempt, outcome in state.attempts:
        seen = found.get((job, attempt))
        if outcome in _REPORTED and seen is None:
            yield f"attempt {attempt} of job {job} is {outcome} but was never executed"
        elif outcome == "Succeeded" and seen and not seen.has_ended:
            yield f"attempt {attempt} of job {job} has succeeded but its command did not end"


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


def _early(by_job: dict[int, list[Execution]], state: StoreState) -> list[str]:
    ends = {(one.job, one.attempt): one.last for mine in by_job.values() for one in mine}
    errors = []
    for upstream, downstream in state.edges:
        _, attempt = state.done.get(upstream, ("", 0))
        end = ends.get((upstream, attempt))
        if end is not None and any(one.began < end for one in by_job.get(downstream, [])):
            errors.append(f"job {downstream} began before job {upstream} ended")
    return errors


def _backward(by_job: dict[int, list[Execution]]) -> list[str]:
    return [
        f"job {job}: attempt {later.attempt} has fence {later.fence}, below an earlier one's"
        for job, mine in by_job.items()
        for later, before in zip(mine[1:], mine, strict=False)
        if later.attempt <= before.attempt or later.fence <= before.fence
    ]

"""A job of the oracle, and the rule by which its upstreams determine its end."""

from dataclasses import dataclass, field
from datetime import datetime

from workron.core.ids import ClaimId, JobId
from workron.core.plan import Kind, Plan, PlannedJob, SchedulingTerms
from workron.core.states import Reason, State
from workron.core.verdict import Condition
from workron.store.types import Signal

SKIP_REASONS = [None, Reason.NOT_NEEDED, Reason.UPSTREAM_CANCELLED, Reason.UPSTREAM_FAILED]
"""Reasons to skip, from the weakest to the strongest."""


@dataclass(eq=False)
class Run:
    """A submitted run."""

    plan: Plan
    id: JobId
    is_cancelled: bool = False
    is_forced: bool = False
    is_expired: bool = False


@dataclass(eq=False)
class Job:
    """A command or a group, and its history."""

    id: JobId
    run: Run
    node: PlannedJob
    terms: SchedulingTerms
    deadline: datetime | None
    upstreams: list[tuple["Job", Condition]] = field(default_factory=list)
    missing: list[tuple[Kind, str, Condition]] = field(default_factory=list)
    state: State = State.WAITING
    reason: Reason | None = Reason.UPSTREAM
    due: datetime | None = None
    is_alone: bool = False
    is_suspended: bool = False
    lost_by: "OracleWorker | None" = None
    attempts: int = 0
    failures: int = 0
    losses: int = 0
    fence: int = 0
    claim: ClaimId | None = None
    claims: list[ClaimId] = field(default_factory=list)
    """All that it ever had."""
    worker: "OracleWorker | None" = None
    signal: Signal | None = None

    @property
    def is_over(self) -> bool:
        return self.state in {State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED}

    @property
    def is_last(self) -> bool:
        """Whether it belongs to `finally`."""
        first = self.run.plan.finally_from
        return first is not None and self.id - self.run.id >= first

    @property
    def is_cancelled(self) -> bool:
        """Whether the cancellation of its run includes it."""
        return self.run.is_cancelled and (self.run.is_forced or not self.is_last)

    def verdict(self) -> tuple[State, Reason | None]:
        """Return its end, now that all upstreams have ended; SUCCEEDED: a command may start."""
        if self.is_cancelled and self.node.kind is Kind.JOB:
            return State.CANCELLED, None
        if self.run.is_expired and self.node.kind in {Kind.WORKFLOW, Kind.TASKS}:
            return State.FAILED, Reason.DEADLINE_EXCEEDED
        upstreams = self._not_allowed()
        bad = [(up.state, when) for up, when in upstreams if up.state is not State.SKIPPED]
        if any(end == (State.FAILED, w) for end in bad for w in (Condition.MEMBER, Condition.TASK)):
            return State.FAILED, Reason.MEMBER_FAILED
        if self.node.kind is not Kind.JOB and any(state is State.CANCELLED for state, _ in bad):
            return State.CANCELLED, None
        if self.is_cancelled:
            return State.CANCELLED, None
        strongest = max((_skip(up, when) for up, when in upstreams), default=0)
        return (State.SKIPPED, SKIP_REASONS[strongest]) if strongest else (State.SUCCEEDED, None)

    def _not_allowed(self) -> list[tuple["Job", Condition]]:
        """List its upstreams, without the failed elements of an array if it allows so many."""
        if self.node.kind is not Kind.ARRAY or self.terms.max_failures is None:
            return self.upstreams
        others = [one for one in self.upstreams if not one[0].has_failed]
        is_allowed = len(self.upstreams) - len(others) <= self.terms.max_failures
        return others if is_allowed else self.upstreams

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or was skipped for the failure of an upstream."""
        return self.state is State.FAILED or self.reason is Reason.UPSTREAM_FAILED

    def end(self, state: State, reason: Reason | None = None) -> None:
        self.state, self.reason, self.due = state, reason, None
        self.claim = self.worker = self.signal = self.lost_by = None
        self.is_suspended = False


@dataclass(eq=False)
class OracleWorker:
    """A worker's process."""

    pool: str
    name: str
    is_draining: bool = False


def _skip(up: Job, when: Condition) -> int:
    """Return how strongly one end prevents a start, by the table of `when`."""
    if when in {Condition.FINISHED, Condition.TASK, Condition.ALLOWED_TASK}:
        return 0
    if up.state is State.SKIPPED:
        return SKIP_REASONS.index(up.reason)
    if when is Condition.FAILED:
        return 0 if up.state is State.FAILED else 1
    return {State.SUCCEEDED: 0, State.CANCELLED: 2, State.FAILED: 3}[up.state]

"""The rules of one exploration: its size, its faults, and the guards of the protocol.

A guard is a rule of the protocol; a mutant is the same protocol `without` one. The modules of
actions call `Rules.keeps` where the guard applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Faults and outside events; an exploration has a number of each."""

    OUTAGE = "the database goes away"
    LAG = "a standby falls behind"
    CLOCK_BACK = "the database's clock goes back"
    CLOCK_FORWARD = "the database's clock jumps forward"
    CUT = "a worker is disconnected"
    FREEZE = "a worker freezes"
    STUCK = "an agent freezes, its runner does not"
    AGENT_DEATH = "an agent dies, its runner does not"
    DEATH = "a worker dies"
    LOST_ANSWER = "an answer is lost"
    LATE_COPY = "a copy of a request stays in the network"
    DRAIN = "a worker drains"
    CANCEL = "a user cancels the job"


class Guard(StrEnum):
    CLAIM_ID = "complete checks the claim's id"
    CLAIM_ID_AT_RELEASE = "release checks the claim's id"
    FENCE_WITH_ID = "complete and release check the fence, too"
    FENCE_BY_CLOCK = "the fence is at least the database's clock"
    LIVE_ROW = "a claim needs a live row of its worker"
    WORKER_LOCK = "a claim holds its worker's row against the reap"
    JOB_LOCK = "a claim holds the job's row against other claims"
    SAME_ANSWER = "a repeated claim call returns the claim of the first one"
    ALREADY = "a repeated complete is recognized"
    END_IS_FINAL = "an ended job never changes"
    CANCEL_AT_COMPLETE = "complete applies the cancel signal"
    CANCEL_AT_RELEASE = "release applies the cancel signal"
    CANCEL_AT_REAP = "reap applies the cancel signal"
    BOUNDED_FAILURES = "the failures of a job are bounded"
    BOUNDED_LOSSES = "the losses of a job are bounded"
    COUNTER_IN_REAP = "reap checks the counter that was observed"
    WHOLE_REAP = "reap requeues the claims when it removes their worker"
    WHOLE_LEASE = "a worker is reaped after a whole lease without a heartbeat"
    OBSERVATION_GAP = "a long gap between observations restarts the lease"
    QUARTER = "observations are at most a quarter of a lease apart"
    SERVER_START = "a restart of the database restarts the lease"
    FAILED_OBSERVATION = "a failed observation does not count"
    OWN_CLOCK = "the maintainer uses its own clock"
    PROOF = "only the end of its processes proves a worker's death"
    FIRST_HEARTBEAT = "a newer boot proves the older one dead by its first heartbeat"
    AWAIT_PROOF = "overlap: Forbid waits for proof of death"
    AGENT_DEADLINE = "the agent kills at its deadline"
    RUNNER_DEADLINE = "the runner kills at the deadline"
    RUNNER_FOLLOWS = "the runner kills when its agent has died"
    MARGIN = "the deadline is before the end of the lease"
    SEND_TIME = "the deadline counts from the sending of the heartbeat"
    SUSPENSION = "the deadline's clock counts suspension"
    CHECK_ON_RETURN = "the first act after a freeze is a check of the deadline"
    CHECK_AT_START = "no command starts past the deadline"
    KILL_FIRST = "a claim is released after its command is dead"
    LIST_KILLS = "the agent kills what the answer to its heartbeat does not list"
    LIST_RELEASES = "the agent releases claims that it does not run"
    OPEN_CALL = "a claim is not released while its claim call is open"
    CANCEL_BY_HEARTBEAT = "the agent applies cancels in the answer to its heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One exploration. Durations are in ticks; a worker sends one heartbeat per tick."""

    name: str
    faults: Mapping[Fault, int]
    at_most: int
    """Limit on faults of all kinds together in one run."""
    workers: int = 2
    jobs: int = 1
    lease: int = 4
    margin: int = 1
    max_failures: int = 1
    max_losses: int = 1
    forbids_overlap: bool = False
    outlives_lease: bool = False
    """`onLeaseLost: continue`."""
    clock_may_fail_with_standby: bool = False
    without: frozenset[Guard] = frozenset()

    @property
    def observation_gap(self) -> int:
        """The longest gap between two observations that prove an unchanged counter."""
        return self.lease // (4 if self.keeps(Guard.QUARTER) else 2)

    @property
    def deadline(self) -> int:
        """The age of the last acknowledged heartbeat at which commands must be dead."""
        return self.lease - self.margin if self.keeps(Guard.MARGIN) else self.lease

    def keeps(self, guard: Guard) -> bool:
        return guard not in self.without

    def spend(self, used: tuple[Fault, ...], fault: Fault) -> tuple[Fault, ...] | None:
        """Use one more fault, or return None if none of its kind is left."""
        if len(used) >= self.at_most or used.count(fault) >= self.faults.get(fault, 0):
            return None
        return tuple(sorted((*used, fault)))

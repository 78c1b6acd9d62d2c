"""What one exploration is allowed: its size, its faults, and the guards of the protocol.

A guard is a rule that the protocol stands on; a mutant is the same protocol `without` one. Every
module of actions asks `Rules.keeps` at the place where the guard stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """What may go wrong, or come from outside; an exploration has so many of each."""

    OUTAGE = "the database goes away"
    LAG = "a standby falls behind"
    CLOCK_BACK = "the database's clock goes back"
    CLOCK_FORWARD = "the database's clock leaps ahead"
    CUT = "a worker is cut off"
    FREEZE = "a worker freezes"
    STUCK = "an agent freezes, its runner does not"
    AGENT_DEATH = "an agent dies, its runner does not"
    DEATH = "a worker dies"
    LOST_ANSWER = "an answer is lost"
    LATE_COPY = "a copy of a request stays in the network"
    DRAIN = "a worker is told to drain"
    CANCEL = "somebody cancels the job"


class Guard(StrEnum):
    CLAIM_ID = "complete asks for the claim's id"
    CLAIM_ID_AT_RELEASE = "release asks for the claim's id"
    FENCE_WITH_ID = "complete and release ask for the fence, too"
    FENCE_BY_CLOCK = "the fence is no less than the database's clock"
    LIVE_ROW = "a claim needs a live row of its worker"
    WORKER_LOCK = "a claim holds its worker's row against the reap"
    JOB_LOCK = "a claim holds the job's row against other claims"
    SAME_ANSWER = "a repeated claim gets what the first one took"
    ALREADY = "a repeated complete is recognised"
    END_IS_FINAL = "what has ended never changes"
    CANCEL_AT_COMPLETE = "complete obeys the cancel mark"
    CANCEL_AT_RELEASE = "release obeys the cancel mark"
    CANCEL_AT_REAP = "reap obeys the cancel mark"
    BOUNDED_FAILURES = "a job fails so many times at most"
    BOUNDED_LOSSES = "a job loses so many workers at most"
    COUNTER_IN_REAP = "reap asks for the counter that was seen"
    WHOLE_REAP = "reap moves the claims where it forgets their worker"
    WHOLE_LEASE = "a worker is reaped after a whole lease of standing still"
    LOOK_GAP = "looks that are far apart start the lease anew"
    QUARTER = "looks are at most a quarter of a lease apart"
    NEW_RUN = "a look at another run of the database starts the lease anew"
    FAILED_LOOK = "a look that failed is no look"
    OWN_CLOCK = "the maintainer measures on its own clock"
    PROOF = "only the end of its processes proves a worker's death"
    FIRST_BEAT = "a newer boot proves the older one dead by its first beat"
    AWAIT_PROOF = "overlap: Forbid waits for proof of death"
    AGENT_DEADLINE = "the agent kills at its deadline"
    RUNNER_DEADLINE = "the runner kills at the deadline"
    RUNNER_FOLLOWS = "the runner kills when its agent is gone"
    MARGIN = "the deadline is before the end of the lease"
    SEND_TIME = "the deadline counts from when the beat was sent"
    SUSPENSION = "the deadline's clock counts suspension"
    CHECK_ON_RETURN = "the first act after a freeze is to look at the deadline"
    CHECK_AT_START = "no command starts past the deadline"
    KILL_FIRST = "a claim is released after its command is dead"
    LIST_KILLS = "the agent kills what the answer to its beat lacks"
    LIST_RELEASES = "the agent releases what it does not run"
    OPEN_CALL = "no claim is released whose claim call is open"
    CANCEL_BY_BEAT = "the agent obeys cancels in the answer to its beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One exploration. Durations are in ticks; one tick is how often a worker beats."""

    name: str
    faults: Mapping[Fault, int]
    at_most: int
    """Faults of all kinds together in one run."""
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
    def look_gap(self) -> int:
        """How far apart two looks may be that prove standing still between them."""
        return self.lease // (4 if self.keeps(Guard.QUARTER) else 2)

    @property
    def deadline(self) -> int:
        """The age of the last acknowledged beat at which commands must be dead."""
        return self.lease - self.margin if self.keeps(Guard.MARGIN) else self.lease

    def keeps(self, guard: Guard) -> bool:
        return guard not in self.without

    def spend(self, used: tuple[Fault, ...], fault: Fault) -> tuple[Fault, ...] | None:
        """Use one more fault up, or answer None: there is none of it left."""
        if len(used) >= self.at_most or used.count(fault) >= self.faults.get(fault, 0):
            return None
        return tuple(sorted((*used, fault)))

"""The protocol without one of its guards: the model has to find what breaks.

A mutant runs in a configuration that is sound with all guards, with fewer of its faults. So only
the missing guard can be the cause of a broken invariant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tests.protocol import configurations
from tests.protocol.invariants import Invariant
from tests.protocol.rules import Fault, Guard, Rules


@dataclass(frozen=True, slots=True)
class Mutant:
    """A protocol without `guards`, and the invariant that it breaks first."""

    guards: tuple[Guard, ...]
    breaks: Invariant
    configuration: Rules
    faults: tuple[Fault, ...] = ()

    @property
    def rules(self) -> Rules:
        allowed = {fault: self.configuration.faults[fault] for fault in self.faults}
        return replace(self.configuration, faults=allowed, without=frozenset(self.guards))

    @property
    def name(self) -> str:
        return "; ".join(self.guards) or self.configuration.name


def _one(
    guard: Guard, breaks: Invariant, *faults: Fault, configuration: Rules = configurations.ANY_FAULT
) -> Mutant:
    return Mutant((guard,), breaks, configuration, faults)


MUTANTS: Final = (
    _one(Guard.CLAIM_ID, Invariant.CURRENT, Fault.LATE_COPY, configuration=configurations.RETRIES),
    _one(
        Guard.CLAIM_ID_AT_RELEASE,
        Invariant.CURRENT,
        Fault.LATE_COPY,
        Fault.DRAIN,
        configuration=configurations.CALLS,
    ),
    _one(
        Guard.FENCE_WITH_ID,
        Invariant.CURRENT,
        Fault.LATE_COPY,
        configuration=configurations.RETRIES,
    ),
    _one(Guard.FENCE_BY_CLOCK, Invariant.RISING, Fault.LAG),
    _one(
        Guard.LIVE_ROW,
        Invariant.SINGLE,
        Fault.LATE_COPY,
        Fault.DEATH,
        configuration=configurations.CALLS,
    ),
    _one(Guard.WORKER_LOCK, Invariant.SINGLE, Fault.CUT),
    _one(Guard.JOB_LOCK, Invariant.SINGLE),
    _one(
        Guard.SAME_ANSWER,
        Invariant.SINGLE,
        Fault.LOST_ANSWER,
        configuration=configurations.TWO_JOBS,
    ),
    _one(Guard.ALREADY, Invariant.ANSWER_KEPT, Fault.LOST_ANSWER),
    _one(Guard.END_IS_FINAL, Invariant.FINAL, Fault.CANCEL),
    _one(Guard.CANCEL_AT_COMPLETE, Invariant.CANCELLED, Fault.CANCEL),
    _one(
        Guard.CANCEL_AT_RELEASE,
        Invariant.CANCELLED,
        Fault.CANCEL,
        Fault.DRAIN,
        configuration=configurations.CALLS,
    ),
    _one(
        Guard.CANCEL_AT_REAP,
        Invariant.CANCELLED,
        Fault.CANCEL,
        Fault.DEATH,
        configuration=configurations.CALLS,
    ),
    _one(Guard.BOUNDED_FAILURES, Invariant.BOUNDED),
    _one(Guard.BOUNDED_LOSSES, Invariant.BOUNDED, Fault.DEATH, configuration=configurations.CALLS),
    _one(Guard.COUNTER_IN_REAP, Invariant.LIVE_WORKER_KEPT, Fault.CUT),
    _one(Guard.WHOLE_REAP, Invariant.LOST, Fault.DEATH),
    _one(Guard.WHOLE_LEASE, Invariant.LIVE_WORKER_KEPT),
    _one(Guard.OBSERVATION_GAP, Invariant.LIVE_WORKER_KEPT, Fault.OUTAGE),
    _one(
        Guard.QUARTER,
        Invariant.LIVE_WORKER_KEPT,
        Fault.OUTAGE,
        configuration=configurations.OUTAGES,
    ),
    _one(Guard.FAILED_OBSERVATION, Invariant.LIVE_WORKER_KEPT, Fault.OUTAGE),
    _one(
        Guard.SERVER_START,
        Invariant.LIVE_WORKER_KEPT,
        Fault.LAG,
        Fault.CUT,
        configuration=configurations.FAILOVER,
    ),
    _one(Guard.OWN_CLOCK, Invariant.LIVE_WORKER_KEPT, Fault.CLOCK_FORWARD),
    _one(Guard.PROOF, Invariant.APART, Fault.CUT),
    _one(
        Guard.FIRST_HEARTBEAT,
        Invariant.LIVE_WORKER_KEPT,
        Fault.LATE_COPY,
        Fault.DEATH,
        configuration=configurations.BOOTS,
    ),
    _one(Guard.AWAIT_PROOF, Invariant.APART, Fault.FREEZE, configuration=configurations.FORBID),
    _one(Guard.RUNNER_DEADLINE, Invariant.APART, Fault.STUCK),
    _one(Guard.MARGIN, Invariant.APART, Fault.CUT),
    _one(Guard.SEND_TIME, Invariant.APART, Fault.CUT),
    _one(Guard.SUSPENSION, Invariant.APART, Fault.FREEZE),
    _one(Guard.CHECK_ON_RETURN, Invariant.APART, Fault.FREEZE),
    _one(Guard.CHECK_AT_START, Invariant.APART, Fault.CUT),
    _one(Guard.KILL_FIRST, Invariant.APART, Fault.DRAIN),
    _one(Guard.LIST_KILLS, Invariant.APART, Fault.LAG),
    _one(
        Guard.LIST_RELEASES,
        Invariant.PROGRESS,
        Fault.LATE_COPY,
        configuration=configurations.RETRIES,
    ),
    _one(Guard.OPEN_CALL, Invariant.APART),
    _one(Guard.CANCEL_BY_HEARTBEAT, Invariant.CANCEL_STOPS, Fault.CANCEL),
    Mutant(
        (Guard.AGENT_DEADLINE, Guard.RUNNER_DEADLINE),
        Invariant.APART,
        configurations.ANY_FAULT,
        (Fault.CUT,),
    ),
    Mutant(
        (Guard.RUNNER_FOLLOWS, Guard.RUNNER_DEADLINE),
        Invariant.APART,
        configurations.ANY_FAULT,
        (Fault.AGENT_DEATH,),
    ),
)

BACKED_GUARDS: Final = (
    Mutant((Guard.AGENT_DEADLINE,), Invariant.APART, configurations.ANY_FAULT, (Fault.CUT,)),
    Mutant(
        (Guard.RUNNER_FOLLOWS,), Invariant.APART, configurations.ANY_FAULT, (Fault.AGENT_DEATH,)
    ),
)
"""Guards that another one backs: without one of these alone nothing breaks."""

LIMITS: Final = (
    Mutant(
        (),
        Invariant.RISING,
        Rules(
            name="the database's clock goes back across a failover",
            faults={Fault.LAG: 1, Fault.CLOCK_BACK: 1},
            at_most=2,
            workers=1,
            clock_may_fail_with_standby=True,
        ),
        (Fault.LAG, Fault.CLOCK_BACK),
    ),
    Mutant(
        (),
        Invariant.LIVE_WORKER_KEPT,
        Rules(
            name="the database is up only while the maintainer observes",
            faults={Fault.OUTAGE: 4},
            at_most=4,
            workers=1,
        ),
        (Fault.OUTAGE,),
    ),
)
"""The limits of the promise: all guards are present, and an invariant breaks."""

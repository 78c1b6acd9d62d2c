"""The protocol without one of its guards: the model is worth something because it sees each one.

A mutant runs within a configuration that is sound with all guards in place, with fewer of its
faults, so that what it breaks is the missing guard's fault and no other's.
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
    _one(Guard.ALREADY, Invariant.HONEST, Fault.LOST_ANSWER),
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
    _one(Guard.COUNTER_IN_REAP, Invariant.SPARED, Fault.CUT),
    _one(Guard.WHOLE_REAP, Invariant.LOST, Fault.DEATH),
    _one(Guard.WHOLE_LEASE, Invariant.SPARED),
    _one(Guard.LOOK_GAP, Invariant.SPARED, Fault.OUTAGE),
    _one(Guard.QUARTER, Invariant.SPARED, Fault.OUTAGE, configuration=configurations.OUTAGES),
    _one(Guard.FAILED_LOOK, Invariant.SPARED, Fault.OUTAGE),
    _one(
        Guard.NEW_RUN, Invariant.SPARED, Fault.LAG, Fault.CUT, configuration=configurations.FAILOVER
    ),
    _one(Guard.OWN_CLOCK, Invariant.SPARED, Fault.CLOCK_FORWARD),
    _one(Guard.PROOF, Invariant.APART, Fault.CUT),
    _one(
        Guard.FIRST_BEAT,
        Invariant.SPARED,
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
    _one(Guard.CANCEL_BY_BEAT, Invariant.OBEDIENT, Fault.CANCEL),
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

SECOND_LINES: Final = (
    Mutant((Guard.AGENT_DEADLINE,), Invariant.APART, configurations.ANY_FAULT, (Fault.CUT,)),
    Mutant(
        (Guard.RUNNER_FOLLOWS,), Invariant.APART, configurations.ANY_FAULT, (Fault.AGENT_DEATH,)
    ),
)
"""Guards that another one stands behind: without one of these alone nothing breaks."""

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
        Invariant.SPARED,
        Rules(
            name="the database is there only when the maintainer looks",
            faults={Fault.OUTAGE: 4},
            at_most=4,
            workers=1,
        ),
        (Fault.OUTAGE,),
    ),
)
"""Where the promise ends: no guard is missing, and yet an invariant breaks."""

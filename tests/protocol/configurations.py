"""The configurations to explore: small ones in every test run, large ones by the command."""

from __future__ import annotations

from typing import Final

from tests.protocol.rules import Fault, Rules

_ANY: Final = dict.fromkeys(Fault, 1)

ANY_FAULT: Final = Rules(name="2 workers, any fault", faults=_ANY, at_most=1)
CALLS: Final = Rules(
    name="1 worker, two faults of calls and ends",
    faults={
        Fault.LATE_COPY: 1,
        Fault.LOST_ANSWER: 1,
        Fault.DRAIN: 1,
        Fault.CANCEL: 1,
        Fault.DEATH: 2,
    },
    at_most=2,
    workers=1,
)
RETRIES: Final = Rules(
    name="1 worker, retries, two late copies",
    faults={Fault.LATE_COPY: 2},
    at_most=2,
    workers=1,
    max_failures=2,
)
FAILOVER: Final = Rules(
    name="1 worker, a failover and a cut",
    faults={Fault.LAG: 1, Fault.CUT: 1},
    at_most=2,
    workers=1,
)
BOOTS: Final = Rules(
    name="1 worker, two deaths and a late copy",
    faults={Fault.LATE_COPY: 1, Fault.DEATH: 2},
    at_most=3,
    workers=1,
)
OUTAGES: Final = Rules(name="1 worker, two outages", faults={Fault.OUTAGE: 2}, at_most=2, workers=1)
TWO_JOBS: Final = Rules(
    name="1 worker, 2 jobs, a fault of calls",
    faults={Fault.LATE_COPY: 1, Fault.LOST_ANSWER: 1},
    at_most=1,
    workers=1,
    jobs=2,
)
FORBID: Final = Rules(
    name="2 workers, overlap: Forbid, a freeze",
    faults={Fault.FREEZE: 1},
    at_most=1,
    forbids_overlap=True,
)
CONTINUE: Final = Rules(
    name="2 workers, onLeaseLost: continue, a cut",
    faults={Fault.CUT: 1},
    at_most=1,
    outlives_lease=True,
)

SMALL: Final = (ANY_FAULT, CALLS, RETRIES, FAILOVER, BOOTS, OUTAGES, TWO_JOBS, FORBID, CONTINUE)

LARGE: Final = (
    Rules(name="3 workers, any fault", faults=_ANY, at_most=1, workers=3),
    Rules(
        name="2 workers, a failover and more",
        faults={Fault.LAG: 1, Fault.DEATH: 1, Fault.LATE_COPY: 1},
        at_most=2,
    ),
    Rules(
        name="2 workers, two of them lost",
        faults={Fault.CUT: 1, Fault.FREEZE: 1, Fault.DEATH: 1},
        at_most=2,
    ),
    Rules(
        name="2 workers, 2 jobs, a fault of calls",
        faults={Fault.LATE_COPY: 1, Fault.LOST_ANSWER: 1, Fault.CANCEL: 1},
        at_most=1,
        jobs=2,
    ),
)

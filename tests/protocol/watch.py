"""What the maintainer knows of one worker: how long it has seen the counter stand still.

The model forgets that duration as soon as it no longer matters, because the next look starts the
lease anew anyhow; so snapshots that differ only in it are one.
"""

from __future__ import annotations

from tests.protocol.rules import Guard, Rules
from tests.protocol.state import Worker


def looked(worker: Worker, rules: Rules) -> Worker:
    """One look, soon enough after the last: the counter has risen, or stood still that long."""
    if worker.row.has_risen:
        return started_anew(worker, rules)
    enough = rules.lease if rules.keeps(Guard.WHOLE_LEASE) else 1
    if not worker.row.is_live or worker.still < enough:
        return worker
    return worker._replace(still=rules.lease, is_ripe=True)


def started_anew(worker: Worker, _rules: Rules) -> Worker:
    """The lease begins with this look, whatever was seen before."""
    if not worker.row.is_live:
        return worker
    standby = worker.standby
    if standby is not None and worker.row.has_risen:
        standby = standby._replace(has_risen=True)
    row = worker.row._replace(has_risen=False)
    return worker._replace(row=row, standby=standby, still=0, is_ripe=False)


def ticked(worker: Worker, rules: Rules) -> Worker:
    """The maintainer's own clock went on."""
    return moved(worker._replace(still=min(worker.still + 1, rules.lease)), rules)


def unwatched(worker: Worker, rules: Rules) -> Worker:
    """The last look is too long ago for the next one to prove anything."""
    if worker.is_ripe or not rules.keeps(Guard.LOOK_GAP):
        return worker
    return worker._replace(still=0)


def moved(worker: Worker, rules: Rules) -> Worker:
    """Forget how long a counter stood that has risen, unless a failover could bring it back."""
    may_return = worker.standby is not None and not rules.keeps(Guard.NEW_RUN)
    if worker.row.is_live and (worker.is_ripe or not worker.row.has_risen or may_return):
        return worker
    return worker._replace(still=0)


def forgotten(worker: Worker) -> Worker:
    """The maintainer watches it no more: what comes back under this name is new to it."""
    return worker._replace(still=0, is_ripe=False)

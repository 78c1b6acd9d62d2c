"""The maintainer's observation of one worker: for how long its counter was unchanged.

The model resets that duration when it no longer matters, because the next observation restarts the
lease; so snapshots that differ only in it are one.
"""

from __future__ import annotations

from tests.protocol.rules import Guard, Rules
from tests.protocol.state import Worker


def observed(worker: Worker, rules: Rules) -> Worker:
    """An observation soon after the last one: the counter has risen, or is unchanged."""
    if worker.row.has_risen:
        return lease_restarted(worker, rules)
    enough = rules.lease if rules.keeps(Guard.WHOLE_LEASE) else 1
    if not worker.row.is_live or worker.unchanged < enough:
        return worker
    return worker._replace(unchanged=rules.lease, is_expired=True)


def lease_restarted(worker: Worker, _rules: Rules) -> Worker:
    """The lease begins with this observation."""
    if not worker.row.is_live:
        return worker
    standby = worker.standby
    if standby is not None and worker.row.has_risen:
        standby = standby._replace(has_risen=True)
    row = worker.row._replace(has_risen=False)
    return worker._replace(row=row, standby=standby, unchanged=0, is_expired=False)


def ticked(worker: Worker, rules: Rules) -> Worker:
    """The maintainer's own clock has advanced."""
    return moved(worker._replace(unchanged=min(worker.unchanged + 1, rules.lease)), rules)


def unwatched(worker: Worker, rules: Rules) -> Worker:
    """The last observation is too long ago for the next one to prove anything."""
    if worker.is_expired or not rules.keeps(Guard.OBSERVATION_GAP):
        return worker
    return worker._replace(unchanged=0)


def moved(worker: Worker, rules: Rules) -> Worker:
    """Reset the duration if the counter has risen, unless a failover could revert it."""
    may_return = worker.standby is not None and not rules.keeps(Guard.SERVER_START)
    if worker.row.is_live and (worker.is_expired or not worker.row.has_risen or may_return):
        return worker
    return worker._replace(unchanged=0)


def not_observed(worker: Worker) -> Worker:
    """The maintainer no longer observes it: a later worker of this name is new to it."""
    return worker._replace(unchanged=0, is_expired=False)

"""Compares the rows of the store with the oracle after each step."""

from typing import Any

from tests.store.machine.job import Job
from tests.store.machine.oracle import Oracle
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.types import JobRow


def compare(oracle: Oracle, rows: list[JobRow], *, is_propagated: bool) -> None:
    """Compare one run. Jobs may still wait for ends that were not propagated."""
    for row in rows:
        job = oracle.jobs[row.job]
        if row.kind is Kind.JOB:
            _compare_command(job, row, is_propagated=is_propagated)
        else:
            _compare_group(oracle, job, row, is_propagated=is_propagated)


def _compare_command(job: Job, row: JobRow, *, is_propagated: bool) -> None:
    shown, expected = _shown(row), _expected(job)
    if shown == expected:
        return
    is_behind = row.state is State.WAITING and row.reason is Reason.UPSTREAM and job.claim is None
    assert is_behind, f"{row.name}: {shown} is not {expected}"
    assert not is_propagated, f"{row.name}: {shown} is not {expected}"
    assert (row.attempts, row.failures, row.losses) == (job.attempts, job.failures, job.losses)


def _compare_group(oracle: Oracle, job: Job, row: JobRow, *, is_propagated: bool) -> None:
    if job.is_over and (is_propagated or row.finished_at is not None):
        assert (row.state, row.reason) == (job.state, job.reason), f"{row.name}: {row}"
        return
    assert row.state in {State.WAITING, State.RUNNING}, f"{row.name} is {row.state}"
    members = [one for one in oracle.jobs.values() if _is_in(one, job)]
    if any(one.state is State.RUNNING for one in members):
        assert row.state is State.RUNNING
    if all(one.state is State.QUEUED and not one.attempts for one in members):
        assert row.state is State.WAITING


def _is_in(job: Job, group: Job) -> bool:
    if job.run is not group.run or job.node.kind is not Kind.JOB:
        return False
    return group.node.kind is Kind.WORKFLOW or job.node.group_id == group.id - group.run.id


def _expected(job: Job) -> dict[str, Any]:
    reason = job.reason
    if job.state is State.WAITING and not job.due:
        reason = Reason.AWAITING_PROOF if job.lost_by else Reason.UPSTREAM
        reason = Reason.SUSPENDED if job.is_suspended else reason
    return {
        "state": job.state,
        "reason": reason,
        "due": job.due,
        "attempts": job.attempts,
        "failures": job.failures,
        "losses": job.losses,
        "worker": job.worker.name if job.worker else None,
        "pool": job.terms.pool,
        "priority": job.run.plan.priority,
    }


def _shown(row: JobRow) -> dict[str, Any]:
    return {
        "state": row.state,
        "reason": row.reason,
        "due": row.due,
        "attempts": row.attempts,
        "failures": row.failures,
        "losses": row.losses,
        "worker": row.worker if row.state is State.RUNNING else None,
        "pool": row.pool,
        "priority": row.priority,
    }

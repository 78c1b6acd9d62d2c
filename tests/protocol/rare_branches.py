"""Rare branches: each must occur in the exploration of all configurations.

An invariant that holds because nothing happened proves nothing.
"""

from __future__ import annotations

from enum import StrEnum


class RareBranch(StrEnum):
    LATE_HEARTBEAT_REVIVED = "a late heartbeat revived a worker that was about to be reaped"
    LATE_HEARTBEAT_REJECTED = "a heartbeat arrived after the reap and was rejected"
    LATE_CLAIM_REJECTED = "a claim arrived after its worker's reap and was rejected"
    LATE_REGISTER = "a registration of an older boot arrived late and had no effect"
    REPEATED_CLAIM = "a claim whose answer was lost was repeated and answered the same"
    REPEATED_COMPLETE = "a complete whose answer was lost was repeated and answered 'already'"
    REUSED_ID = "a late copy of a claim claimed the job again under an old id"
    STALE_COMPLETE = "a stale complete was rejected"
    STALE_RELEASE = "a stale release was rejected"
    REAP_CAME_TOO_LATE = "a reap found that its worker had sent a heartbeat"
    REAPED_A_RUNNING = "a reap requeued a claim that was still running"
    LEASE_RESTARTED = "the maintainer restarted a lease after a gap"
    PROVEN = "a proven death needed no lease"
    SELF_KILL = "an agent killed at its deadline"
    RUNNER_KILL = "a runner killed at the deadline of a frozen agent"
    RUNNER_FOLLOWED = "a runner killed because its agent had died"
    KILLED_ON_RETURN = "a worker resumed past its deadline and killed first"
    BACK_IN_TIME = "a worker resumed before its deadline and continued"
    NOT_STARTED = "a grant arrived past the deadline and was not started"
    KILLED_BY_LIST = "an agent killed what the answer to its heartbeat did not list"
    RELEASED_BY_LIST = "an agent released a claim that it did not know"
    OLD_LIST = "an answer older than a claim did not kill it"
    SESSION_LOST = "a worker learned that it was reaped, and registered again"
    CANCEL_MET_COMMAND = "a cancel reached a running command by a heartbeat"
    CANCEL_AT_COMPLETE = "a complete applied the cancel signal"
    CANCEL_AT_RELEASE = "a release applied the cancel signal"
    CANCEL_AT_REAP = "a reap applied the cancel signal"
    CANCEL_TOO_LATE = "a cancel of an ended job changed nothing"
    FAILED_OUT = "a job failed for the last time"
    LOST_OUT = "a job had one loss too many"
    COMMITS_LOST = "a failover lost commits"
    FENCE_LEAPT = "a fence rose above one that a failover had lost"
    AWAITED_PROOF = "a job waited for proof of death and got it"
    OVERLAP = "two executions of one job overlapped"
    OVERLAP_AFTER_LOSS = "two executions overlapped because a failover lost a claim"

"""The rare branches: an exploration of all configurations that misses one proves too little.

An invariant that holds because nothing ever happened is worth nothing. Each of these must occur.
"""

from __future__ import annotations

from enum import StrEnum


class Sometimes(StrEnum):
    LATE_BEAT_REVIVED = "a late beat revived a worker that was about to be reaped"
    LATE_BEAT_REFUSED = "a beat came after the reap and was refused"
    LATE_CLAIM_REFUSED = "a claim came after its worker's reap and was refused"
    LATE_REGISTER = "a registration of an older boot came late and harmed nobody"
    REPEATED_CLAIM = "a claim whose answer was lost was repeated and got the same"
    REPEATED_COMPLETE = "a complete whose answer was lost was repeated and answered 'already'"
    REUSED_ID = "a late copy of a claim took the job anew under an old id"
    STALE_COMPLETE = "a stale complete was refused"
    STALE_RELEASE = "a stale release was refused"
    REAP_CAME_TOO_LATE = "a reap found that its worker had beaten"
    REAPED_A_RUNNING = "a reap took back a claim that was still being run"
    AMNESTY = "the maintainer started a lease anew after a gap"
    PROVEN = "a proven death needed no lease"
    SELF_KILL = "an agent killed at its deadline"
    RUNNER_KILL = "a runner killed at the deadline of an agent that stood still"
    RUNNER_FOLLOWED = "a runner killed because its agent was gone"
    KILLED_ON_RETURN = "a worker came back past its deadline and killed first"
    BACK_IN_TIME = "a worker came back before its deadline and went on"
    NOT_STARTED = "a grant came past the deadline and was not started"
    KILLED_BY_LIST = "an agent killed what the answer to its beat lacked"
    RELEASED_BY_LIST = "an agent released a claim that it did not know"
    OLD_LIST = "an answer older than a claim did not kill it"
    SESSION_LOST = "a worker learned that it was reaped, and registered anew"
    CANCEL_MET_COMMAND = "a cancel reached a running command by a beat"
    CANCEL_AT_COMPLETE = "a complete met the cancel mark"
    CANCEL_AT_RELEASE = "a release met the cancel mark"
    CANCEL_AT_REAP = "a reap met the cancel mark"
    CANCEL_TOO_LATE = "a cancel met an ended job and changed nothing"
    FAILED_OUT = "a job failed for the last time"
    LOST_OUT = "a job lost one worker too many"
    COMMITS_LOST = "a failover lost commits"
    FENCE_LEAPT = "a fence rose over one that a failover had lost"
    AWAITED_PROOF = "a job waited for proof of death and got it"
    OVERLAP = "two executions of one job overlapped"
    OVERLAP_AFTER_LOSS = "two executions overlapped because a failover lost a claim"

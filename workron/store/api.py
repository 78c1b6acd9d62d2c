"""What every store does, said once: a small protocol for each kind of caller, and their rows.

Each method is one verb, with an SQL file of its name in each dialect (a submission has parts), and
one transaction; what touches a whole run goes in bounded steps, each a transaction. A verb may
be repeated when its answer was lost: the second call finds what the first did. Times are the
store's own. Raised errors are those under `errors.StoreError`, and of a submission those under
`errors.InputError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from workron.core.ids import ClaimId, JobId, SessionKey, WorkerId
    from workron.core.plan import Kind, Plan
    from workron.store.types import (
        AttemptReport,
        AttemptRow,
        AuditResult,
        Blocker,
        ClaimedJob,
        ClaimRef,
        CompleteReply,
        HeartbeatReply,
        HeartbeatVersion,
        JobFailure,
        JobRow,
        LossKind,
        OutputChunk,
        OwnedRun,
        PoolDemand,
        PoolGrant,
        PoolLogin,
        ReapResult,
        Registration,
        ReportResult,
        RunRow,
        RunSummary,
        RunUpdate,
        Session,
        Signal,
        StateCounts,
        SubmittedRun,
        WorkerHeartbeat,
        WorkerRow,
    )


class WorkerVerbs(Protocol):
    """All that a worker can do."""

    async def register(self, registration: Registration) -> Session:
        """Enter a worker under its pool's token, and tell which pool that is."""

    async def heartbeat(self, key: SessionKey) -> HeartbeatReply:
        """Prove life, and learn what is still held. SessionError when the worker was reaped.

        The first beat proves older boots of the same name dead: they are reaped. A registration
        alone may be a late copy of a dead boot's, and would bury the living.
        """

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        """Take at most one ready job for each claim id, by priority, then by age.

        A repeated call returns what the first one took. A job that went down together with
        others is given alone, and only to a worker that holds nothing else.
        """

    async def complete(
        self, key: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId] = ()
    ) -> CompleteReply:
        """Report ends and claim anew in one round trip; downstreams are decremented with it.

        One bad end never fails the others: it ends Failed, and the rest is accepted. So does one
        with a result over 64 KiB or an output over 1 MiB; of a message, 4,096 characters are kept.
        """

    async def release(
        self, key: SessionKey, rights: Sequence[ClaimRef], lost: LossKind | None = None
    ) -> Sequence[ReportResult]:
        """Hand claims back. No counter moves, unless they were lost with what ran them.

        What is told again changes nothing: a release is ALREADY known, a loss STALE.
        """

    async def append_output(
        self, key: SessionKey, right: ClaimRef, chunk: int, data: bytes
    ) -> ReportResult:
        """Store a piece of a running job's output. The same chunk again is ALREADY.

        Chunks are counted from 0 and have at most 1 MiB; of one attempt there are at most 16,384,
        and 64 MiB of them together.
        """

    async def deregister(self, key: SessionKey) -> None:
        """Forget a worker; what it still holds is released."""


class SubmitStore(Protocol):
    """What people and the operator ask for."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        """Store all plans, or none.

        A uid that is known already, or an unfinished run of the same name and digest, is
        acknowledged as it is. An unfinished one with another digest is a NameTakenError, unless
        `supersedes`: then the name passes to the newer run and the older one goes on unnamed.
        A cycle over runs is a CycleError that prints it, and names who of these is in one.
        """

    async def cancel(self, run: JobId) -> bool:
        """End all of a run that is not running, mark what runs; False if it had ended before.

        After the answer nothing of it starts any more.
        """

    async def suspend(self, run: JobId) -> bool:
        """Suspend all of a run that is not running, and what comes back from running."""

    async def resume(self, run: JobId) -> bool:
        """Undo `hold`, or a submission as suspended."""

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Make the pool if it is new, and answer a token that admits workers to it.

        `lease_seconds` is for workers that register from now on; None leaves what there is.
        """


class OperatorStore(Protocol):
    """What only the operator asks: about runs made from objects of its cluster, and pools."""

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, OwnedRun]:
        """Find what was made from these objects; what is not there is left out."""

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[OwnedRun]:
        """List so many of those that have not ended, in order of their ids, behind this one.

        It costs what there is of these, however many have ended.
        """

    async def update_run(self, run: JobId, wish: RunUpdate) -> bool:
        """Have all of a run be as its object says now; False if that changes nothing.

        Nothing undoes a cancel, and nothing is asked of a run that has ended. Of a generation
        that is not newer than the one that was heard last nothing is taken.
        """

    async def list_workers(self) -> Sequence[WorkerRow]:
        """List every worker and what it holds; the dead are among them until they are reaped."""

    async def pool_demand(self) -> Mapping[tuple[str, str], PoolDemand]:
        """Tell what waits for workers, by namespace and pool; where nothing does is left out."""

    async def grant_pool(self, admission: PoolGrant) -> PoolLogin:
        """Let workers into a pool by this token, for a year from now; made if it is new.

        With a password they come as a database role that is made for this pool, or renewed; it
        can do nothing but a worker's verbs, and enter no other pool. Who may make no such role
        gets a StoreRightsError with what would allow it, and so does who made one that cannot log
        in by the same way, as behind a pooler that does not know it. SQLite has no roles: there the
        token is all.
        """

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that `admit` was called for and not `dismiss`, by namespace and name."""

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Take back what `admit` gave, for a pool that is no more; False while it has workers.

        The token opens nothing any more, and the role is dropped; where that cannot be, it can log
        in no more, and a StoreRightsError says what is left to do, once. Jobs of the pool wait on.
        """


class MaintainerStore(Protocol):
    """What the one elected maintainer does; two at once are harmless.

    Verbs with a `limit` do one bounded step and answer how many rows they moved; the caller
    repeats while that is not 0.
    """

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer; False while another one's lease runs."""

    async def resign(self, holder: UUID) -> None:
        """Give the lease up at once."""

    async def list_heartbeats(self) -> Sequence[WorkerHeartbeat]:
        """See every worker and its sign of life."""

    async def reap(
        self, worker: WorkerId, *, sign: HeartbeatVersion | None, is_blaming: bool = True
    ) -> ReapResult:
        """Take a worker's claims back and forget it, if its sign still is what was seen.

        `sign=None`: its death is proven; nothing guards, and `overlap: Forbid` need not wait.
        A claim that fell alone costs a loss; several that fell together cost none, but each is
        tried alone next. `is_blaming=False`: its jobs had no part in its death, and are charged
        nothing; for a worker that a person ended.
        """

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker end what it has and claim no more; False if it is not there."""

    async def reap_orphans(self, limit: int) -> int:
        """Take back claims whose worker's row is missing."""

    async def promote(self, limit: int) -> int:
        """Queue deferred jobs that are due."""

    async def propagate(self, limit: int) -> int:
        """Pass ends on that are not passed on yet: arrivals of groups, skips, cancelled rests."""

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed; mark those that run."""

    async def audit(self, limit: int, *, after: int = 0) -> AuditResult:
        """Look at so many waiting jobs behind an id: none may wait for what has ended."""


class ReadStore(Protocol):
    """What can be asked; nothing here changes anything or waits for a lock."""

    async def find_run(self, namespace: str, kind: Kind, name: str) -> RunRow | None:
        """Find the newest run of a name."""

    async def list_runs(self, namespace: str | None = None) -> Sequence[RunRow]:
        """List runs, newest first."""

    async def list_run_summaries(self, namespace: str | None = None) -> Sequence[RunSummary]:
        """List runs, newest first, each with its own row alone."""

    async def list_jobs(self, run: JobId) -> Sequence[JobRow]:
        """List a run and all its members in order of id."""

    async def find_job(self, run: JobId, name: str, index: int | None = None) -> JobId | None:
        """Find a job of a run by its name, an element of an array by its index as well."""

    async def get_jobs(self, jobs: Sequence[JobId]) -> Sequence[JobRow]:
        """Give these jobs' rows in this order; what is not there is left out."""

    async def filter_ended(self, jobs: Sequence[JobId]) -> AbstractSet[JobId]:
        """Tell which of these jobs have ended."""

    async def get_spec(self, job: JobId) -> Mapping[str, Any] | None:
        """Give a job's spec; None if there is no such job."""

    async def list_specs(self, run: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Give each job's spec; jobs of one array share one object."""

    async def edges(self, run: JobId) -> Sequence[tuple[JobId, JobId, str]]:
        """List edges into jobs of this run: upstream, downstream, condition."""

    async def list_blockers(self, job: JobId) -> Sequence[Blocker]:
        """Say what a job waits for, unfinished upstreams first."""

    async def list_attempts(self, job: JobId) -> Sequence[AttemptRow]:
        """List the ended attempts of a job, first to last."""

    async def read_output(self, job: JobId, *, last: int | None = None) -> bytes:
        """Give the stored output of the newest attempt that has any, or its last bytes.

        It is the attempt's pieces in order, and then what came with its end.
        """

    async def read_output_chunks(
        self, job: JobId, attempt: int, chunk: int = 0
    ) -> Sequence[OutputChunk]:
        """Give some of what an attempt wrote, from this chunk on; none: it has no more for now."""

    async def read_result(self, job: JobId) -> Any:
        """Give a job's result, or None."""

    async def count_states(self, run: JobId) -> StateCounts:
        """Count a run's commands by state."""

    async def queue(self) -> Mapping[tuple[str, str], int]:
        """Count ready jobs by namespace and pool."""

    async def count_workers(self) -> Mapping[tuple[str, str], int]:
        """Count workers by namespace and pool; the dead are among them until they are reaped."""

    async def has_maintainer(self) -> bool:
        """Tell whether a maintainer is elected, and its lease runs."""

    async def list_failures(self, run: JobId, limit: int) -> Sequence[JobFailure]:
        """List the commands of a run that failed first, at most so many."""

    async def list_signals(self, run: JobId) -> Mapping[JobId, Signal]:
        """Tell what was asked of running jobs of a run and is not in effect yet."""


class WorkerStore(WorkerVerbs, Protocol):
    """A database as a worker opens it, maybe with a role that can call nothing but its verbs."""

    url: str

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return soon after something became ready or ended, or after the timeout.

        A hint, not a proof: callers look for themselves. Who waits for a worker is not woken by the
        ends that it reports: it asks for what these free in the same call.
        """

    async def close(self) -> None:
        """Give all connections back."""


class Store(WorkerStore, SubmitStore, OperatorStore, MaintainerStore, ReadStore, Protocol):
    """All doors of one database. The worker's room is handed only the first."""

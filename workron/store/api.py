"""The interfaces of a store: one protocol per kind of caller.

Each method is one transaction, or a series of bounded transactions if it changes a whole run, and
has an SQL file of its name in each dialect. A method can be repeated when its answer was lost: the
second call finds what the first one did. Times come from the store's own clock. Methods raise
`errors.StoreError`; a submission also raises `errors.InputError`.

Methods that only run an SQL file and convert its rows are implemented here, once for both dialects;
the dialects implement the others, and the statements of `Database`.
"""

from __future__ import annotations

import json
from dataclasses import fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import UUID

from workron.core import ids, payloads
from workron.core.lease import HeartbeatVersion, WorkerHeartbeat
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.types import (
    AttemptRow,
    AuditResult,
    Blocker,
    JobFailure,
    JobRow,
    OutputChunk,
    OwnedRun,
    PoolDemand,
    RunRow,
    RunSummary,
    Signal,
    WorkerRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from workron.core.ids import ClaimId, JobId, SessionKey, WorkerId
    from workron.core.plan import Plan
    from workron.store.types import (
        AttemptReport,
        ClaimedJob,
        ClaimRef,
        CompleteReply,
        DeleteRefusal,
        HeartbeatReply,
        LossKind,
        PoolGrant,
        PoolLogin,
        ReapResult,
        Registration,
        ReportResult,
        RunUpdate,
        Session,
        SubmittedRun,
    )


_T = TypeVar("_T")

DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "kind": Kind,
    "state": State,
    "reason": Reason,
    "metadata": json.loads,
}
"""How to convert the values of columns, by name; nulls stay."""


class Database(Protocol):
    """How each dialect runs statements: by the name of the file.

    Their values are keyword arguments, in the order of the statement's parameters.
    """

    url: str
    decoders: Mapping[str, Callable[[Any], Any]] = DECODERS

    async def _rows(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> list[_T]:
        """Run a query and convert its rows."""

    async def _change(self, statement: str, /, **values: Any) -> int:
        """Run a statement, and return the number of rows that it returns or has changed."""

    async def _step(self, operation: str, limit: int) -> int:
        """Do a bounded step of the maintainer, and wake workers if it moved rows."""

    async def _bulk_update(self, operation: str, run: JobId, **values: Any) -> bool:
        """Change a run in bounded transactions; False if the operation does not apply to it."""

    async def _list(self, statement: str, kind: type[_T], /, **values: Any) -> list[_T]:
        return await self._rows(statement, self._converter(kind), **values)

    async def _first(
        self, statement: str, convert: Callable[[Any], _T], /, **values: Any
    ) -> _T | None:
        rows = await self._rows(statement, convert, **values)
        return rows[0] if rows else None

    def _converter(self, kind: type[_T]) -> Callable[[Any], _T]:
        """Return a function that makes a value from a row with a column for each of its fields."""
        columns = [(one.name, self.decoders.get(one.name)) for one in fields(kind)]  # type: ignore[arg-type]

        def convert(row: Any) -> _T:
            return kind(
                *(
                    value if (value := row[name]) is None or decode is None else decode(value)
                    for name, decode in columns
                )
            )

        return convert


class WorkerStore(Database, Protocol):
    """The store for a worker. In PostgreSQL a role that can call only these functions is enough."""

    async def register(self, registration: Registration) -> Session:
        """Register a worker in the pool of its token."""

    async def heartbeat(self, key: SessionKey) -> HeartbeatReply:
        """Prove life and return the claims held. SessionError if the worker was reaped.

        The first heartbeat proves that older sessions of the same worker name are dead, and reaps
        them. A registration does not: it may be a delayed copy from a dead process.
        """

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        """Claim up to one ready job per claim id, by priority, then by age.

        A repeated call returns what the first one claimed. A job that was lost together with
        others is claimed alone, and only by a worker that holds nothing else.
        """

    async def complete(
        self, key: SessionKey, reports: Sequence[AttemptReport], claims: Sequence[ClaimId] = ()
    ) -> CompleteReply:
        """Report ended attempts, propagate their ends, and claim new jobs in one round trip.

        A report that cannot be stored ends its job as Failed and does not affect the others. That
        includes a result over 64 KiB and an output over 1 MiB. Messages are cut at 4,096
        characters.
        """

    async def release(
        self, key: SessionKey, claims: Sequence[ClaimRef], lost: LossKind | None = None
    ) -> Sequence[ReportResult]:
        """Return claims to the queue. No counter changes, unless `lost` says how they were lost.

        A repetition changes nothing: it is answered with ALREADY, or STALE for a loss.
        """

    async def append_output(
        self, key: SessionKey, claim: ClaimRef, chunk: int, data: bytes
    ) -> ReportResult:
        """Store a chunk of a running job's output. Sending a chunk again is answered with ALREADY.

        Chunks are numbered from 0 and have at most 1 MiB. An attempt has at most 16,384 of them,
        and 64 MiB in total.
        """

    async def deregister(self, key: SessionKey) -> None:
        """Remove a worker and release the claims that it holds."""

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        """Return soon after a job became ready or ended, or after the timeout.

        It is a hint: the caller has to look. A wait on behalf of `worker` does not return for
        ends that this worker reported, since the same call claimed what they made ready.
        """

    async def close(self) -> None:
        """Close all connections."""


class SubmitStore(Database, Protocol):
    """The store for those who submit and change runs: users and the controller."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        """Store all plans, or none.

        A known uid, and an unfinished run with the same name and digest, is acknowledged as it is.
        An unfinished run with another digest is a NameTakenError; with `supersedes` the name
        passes to the new run and the old one continues without a name. A cycle across runs is a
        CycleError, which shows the cycle and lists the submitted uids that are part of one.
        """

    async def cancel(self, run: JobId, *, force: bool = False) -> bool:
        """Cancel a run's queued jobs and signal its running ones; False if the run has ended.

        Nothing of the run starts after this returns but jobs of `finally`; `force` cancels these,
        too, also if the run was cancelled before.
        """
        return await self._bulk_update("cancel", run, force=force)

    async def suspend(self, run: JobId) -> bool:
        """Keep a run's jobs from starting; running ones are suspended when their attempt ends."""
        return await self._bulk_update("suspend", run)

    async def resume(self, run: JobId) -> bool:
        """Undo `suspend`, or a submission as suspended."""
        return await self._bulk_update("resume", run)

    async def delete_run(self, run: JobId) -> DeleteRefusal | None:
        """Delete an ended run with all its rows; or return why it must stay.

        A repeated call continues a deletion that was interrupted; until then the run is found by
        id only. A deleted name is unknown, as if it had never been submitted.
        """

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Create the pool if needed, and return a new token for its workers.

        `lease_seconds` applies to workers that register from now on; None keeps the current value.
        """


class OperatorStore(Database, Protocol):
    """The store for the controller: runs made from cluster objects, and pools."""

    async def find_by_uid(self, uids: Sequence[UUID]) -> Mapping[UUID, OwnedRun]:
        """Find the runs made from these objects. Unknown uids are left out."""
        owned = await self._list("find_by_uid", OwnedRun, uids=list(uids))
        return {one.uid: one for one in owned}

    async def list_owned(self, limit: int, *, after: int = 0) -> Sequence[OwnedRun]:
        """List unfinished runs made from objects, in order of id, after the given id.

        The cost depends on the number of unfinished runs, not on the number of ended ones.
        """
        return await self._list("list_owned", OwnedRun, limit=limit, after=after)

    async def update_run(self, run: JobId, update: RunUpdate) -> bool:
        """Apply an object's mutable fields to its run; False if nothing changes.

        A cancel cannot be undone, an ended run does not change, and a generation that is not newer
        than the last one is ignored.
        """

    async def list_workers(self) -> Sequence[WorkerRow]:
        """List all workers, including lost ones that were not reaped yet."""
        return await self._list("list_workers", WorkerRow)

    async def pool_demand(self) -> Mapping[tuple[str, str], PoolDemand]:
        """Count ready jobs by namespace and pool. Pools without any are left out."""
        return {
            (namespace, pool): PoolDemand(ready, ids.minted_at(oldest))
            for namespace, pool, ready, oldest in await self._rows("pool_demand", tuple)
        }

    async def grant_pool(self, grant: PoolGrant) -> PoolLogin:
        """Allow workers to register in a pool with a token for one year; create the pool if needed.

        With a password, the workers connect as a database role of this pool, which is created or
        updated; it can call only the functions of a worker, and register only in this pool.
        PermissionDeniedError if the caller may not create such a role, or if the role cannot log
        in the same way as the caller, for example through a pooler that does not know it. SQLite
        has no roles and ignores the password.
        """

    async def granted_pools(self) -> Collection[tuple[str, str]]:
        """List the pools that were granted and not revoked, by namespace and name."""
        return set(await self._rows("granted_pools", tuple))

    async def revoke_pool(self, namespace: str, pool: str) -> bool:
        """Undo `grant_pool` for a pool that was deleted; False while the pool has workers.

        The token becomes invalid and the role is dropped. A role that cannot be dropped loses its
        login, and a PermissionDeniedError says once what is left to do. Jobs of the pool stay.
        """


class MaintainerStore(Database, Protocol):
    """The store for the elected maintainer. Two maintainers at once do no harm.

    A method with a `limit` does one bounded step and returns the number of rows it moved; the
    caller repeats it until that is 0.
    """

    async def elect(self, holder: UUID, lease_seconds: float) -> bool:
        """Become or stay the maintainer; False while another holder's lease is valid."""
        return bool(await self._change("elect", holder=str(holder), lease_seconds=lease_seconds))

    async def resign(self, holder: UUID) -> None:
        """Give up the maintainer's lease."""
        await self._change("resign", holder=str(holder))

    async def list_heartbeats(self) -> Sequence[WorkerHeartbeat]:
        """List all workers with their heartbeat counters."""
        return [
            WorkerHeartbeat(
                worker, HeartbeatVersion(server, heartbeats), lease_seconds, name, UUID(str(boot))
            )
            for worker, server, heartbeats, lease_seconds, name, boot in await self._rows(
                "list_heartbeats", tuple
            )
        ]

    async def reap(
        self, worker: WorkerId, *, version: HeartbeatVersion | None, charge_losses: bool = True
    ) -> ReapResult:
        """Requeue a worker's claims and remove it, if its heartbeat counter is still `version`.

        `version=None`: its death is proven. It is reaped in any case, and jobs with
        `overlap: Forbid` do not wait for proof. A job that was lost alone is charged a loss; jobs
        that were lost together are charged nothing, and each runs alone next.
        `charge_losses=False`: the jobs did not cause the death, for example because a person
        deleted the worker; they are charged nothing.
        """

    async def drain(self, worker: WorkerId) -> bool:
        """Let a worker finish what it runs and claim no more; False if it is unknown."""
        return bool(await self._change("drain", worker=worker))

    async def reap_orphans(self, limit: int) -> int:
        """Requeue claims whose worker has no row."""
        return await self._step("reap_orphans", limit)

    async def refresh_scan_starts(self) -> None:
        """Move the positions at which claims begin to read; a bounded number of them."""

    async def promote(self, limit: int) -> int:
        """Move deferred jobs that are due to ready."""
        return await self._step("promote", limit)

    async def propagate(self, limit: int) -> int:
        """Propagate ends that were left over: skips, ends of groups, interrupted bulk updates."""
        return await self._step("propagate", limit)

    async def expire(self, limit: int) -> int:
        """End jobs whose deadline has passed, and signal those that run."""
        return await self._step("expire", limit)

    async def audit(self, limit: int, *, after: int = 0) -> AuditResult:
        """Check waiting jobs after an id: none may wait for something that has ended."""
        [row] = await self._list("audit", AuditResult, limit=limit, after=after)
        return row


class ReadStore(Database, Protocol):
    """Queries. They change nothing and wait for no lock."""

    async def find_run(self, namespace: str, kind: Kind, name: str) -> RunRow | None:
        """Find the newest run of a name."""
        return await self._first(
            "find_run", self._converter(RunRow), namespace=namespace, kind=kind, name=name
        )

    async def get_run(self, job: JobId) -> RunRow | None:
        """Get the run that a job belongs to, or that it is; None if the job is unknown."""
        return await self._first("get_run", self._converter(RunRow), job=job)

    async def list_runs(self, namespace: str | None = None) -> Sequence[RunRow]:
        """List runs, newest first."""
        return await self._list("list_runs", RunRow, namespace=namespace)

    async def list_run_summaries(self, namespace: str | None = None) -> Sequence[RunSummary]:
        """List runs with their own state and progress, newest first."""
        run, job = self._converter(RunRow), self._converter(JobRow)
        return await self._rows(
            "list_run_summaries",
            lambda row: RunSummary(run(row), job(row), row["commands"], row["ended"]),
            namespace=namespace,
        )

    async def list_jobs(self, run: JobId) -> Sequence[JobRow]:
        """List all jobs of a run in order of id; the run itself is the first.

        The group of the tasks of a workflow that has `finally` is left out.
        """
        return await self._list("list_jobs", JobRow, run=run)

    async def find_job(self, run: JobId, name: str, index: int | None = None) -> JobId | None:
        """Find a job of a run by name, and an element of an array also by index."""
        return await self._first("find_job", itemgetter(0), run=run, name=name, index=index)

    async def get_jobs(self, jobs: Sequence[JobId]) -> Sequence[JobRow]:
        """Get these jobs in this order. Unknown ids are left out."""
        return await self._list("get_jobs", JobRow, jobs=list(jobs))

    async def filter_ended(self, jobs: Sequence[JobId]) -> AbstractSet[JobId]:
        """Return those of these jobs that have ended."""
        return set(await self._rows("filter_ended", itemgetter(0), jobs=list(jobs)))

    async def get_spec(self, job: JobId) -> Mapping[str, Any] | None:
        """Get a job's spec; None if the job is unknown."""
        return await self._first("get_spec", _body, job=job)

    async def list_specs(self, run: JobId) -> Mapping[JobId, Mapping[str, Any]]:
        """Get the specs of a run's jobs. Elements of one array share one object."""
        rows = await self._rows("list_specs", dict, run=run)
        # The text comes with the first job that has it.
        bodies = {row["spec"]: json.loads(row["body"]) for row in rows if row["body"] is not None}
        return {row["job"]: bodies[row["spec"]] for row in rows}

    async def list_blockers(self, job: JobId) -> Sequence[Blocker]:
        """List what a job waits for, unfinished upstreams first."""
        return await self._list("list_blockers", Blocker, job=job)

    async def list_attempts(self, job: JobId) -> Sequence[AttemptRow]:
        """List the ended attempts of a job, oldest first."""
        return await self._list("list_attempts", AttemptRow, job=job)

    async def read_output(self, job: JobId, *, last: int | None = None) -> bytes:
        """Read the output of the newest attempt that has any, or its last bytes.

        It is the attempt's chunks in order, followed by what came with its end.
        """
        parts = await self._rows("read_output", itemgetter("data"), job=job, last=last)
        return payloads.join_output(parts, last)

    async def read_output_chunks(
        self, job: JobId, attempt: int, chunk: int = 0
    ) -> Sequence[OutputChunk]:
        """Read some chunks of an attempt's output, starting at `chunk`. Empty: no more for now."""
        return await self._rows(
            "read_output_chunks",
            OutputChunk._make,
            job=job,
            attempt=attempt,
            chunk=chunk,
            limit=payloads.CHUNKS_PER_READ,
        )

    async def read_result(self, job: JobId) -> Any:
        """Read a job's result, or None."""
        return await self._first("read_result", _body, job=job)

    async def count_states(self, run: JobId) -> Mapping[State, int]:
        """Count a run's jobs by state, without groups."""
        rows = await self._rows("count_states", dict, run=run)
        return {State(row["state"]): row["count"] for row in rows}

    async def count_workers(self) -> Mapping[tuple[str, str], int]:
        """Count workers by namespace and pool, including lost ones that were not reaped yet."""
        rows = await self._rows("count_workers", tuple)
        return {(namespace, pool): count for namespace, pool, count in rows}

    async def has_maintainer(self) -> bool:
        """Return whether a maintainer is elected and its lease is valid."""
        return bool(await self._first("has_maintainer", itemgetter(0)))

    async def list_failures(self, run: JobId, limit: int) -> Sequence[JobFailure]:
        """List the jobs of a run that failed first, without groups."""
        return await self._list("list_failures", JobFailure, run=run, limit=limit)

    async def list_signals(self, run: JobId) -> Mapping[JobId, Signal]:
        """List signals to running jobs of a run that have not taken effect yet."""
        rows = await self._rows("list_signals", tuple, run=run)
        return {job: Signal(signal) for job, signal in rows}


def _body(row: Any) -> Any:
    return json.loads(row["body"])


class Store(WorkerStore, SubmitStore, OperatorStore, MaintainerStore, ReadStore, Protocol):
    """All interfaces of one database."""

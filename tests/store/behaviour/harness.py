"""A store with a clock that the test advances, and the queries that many tests need.

The fixture `harness` gives one to every test of this folder, and checks afterwards what must hold
after any scenario.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.store.behaviour import plans
from tests.store.behaviour.databases import DatabaseUnderTest
from tests.store.behaviour.worker import MANY, Worker, mint_boot
from workron.core.ids import JobId
from workron.core.lease import HeartbeatVersion
from workron.core.plan import TASKS_OFFSET, Kind, Plan
from workron.core.states import REASONS, TERMINAL_STATES, State
from workron.store import api, types
from workron.store.types import JobRow


def label(row: JobRow) -> str:
    """Return the label of a job: `name`, or `name[index]`."""
    return row.name if row.index is None else f"{row.name}[{row.index}]"


def state_of(row: JobRow) -> str:
    """Return state and reason as one word."""
    return row.state if row.reason is None else f"{row.state}/{row.reason}"


class Harness:
    """One store under test, and others on the same database."""

    def __init__(self, database: DatabaseUnderTest, store: api.Store) -> None:
        self.database = database
        self.store = store
        self._opened = [store]
        self._tokens: dict[tuple[str, str], str] = {}
        self._ended: dict[JobId, JobRow] = {}

    async def advance(self, by: timedelta) -> None:
        await self.database.advance(by)

    async def open_another(self) -> api.Store:
        """Open another store on the same database, or return this one if it is in memory."""
        if not self.database.is_persistent:
            return self.store
        self._opened.append(await self.database.open())
        return self._opened[-1]

    async def reopen(self) -> None:
        """Close all stores and open a new one."""
        await self.close()
        self.store = await self.database.open()
        self._opened = [self.store]

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

    async def submit(self, *wanted: Plan, **options: Any) -> JobId:
        """Submit later than all runs before; return the first run."""
        await self.advance(timedelta(milliseconds=1))
        return (await self.store.submit(wanted, **options))[0].run

    async def worker(
        self,
        name: str = "worker",
        *,
        pool: str = "default",
        namespace: str = plans.NAMESPACE,
        boot: UUID | None = None,
        store: api.Store | None = None,
    ) -> Worker:
        store = store or self.store
        registration = types.Registration(
            await self.token(pool, namespace), name, boot or mint_boot(), slots=MANY
        )
        return Worker(store, await store.register(registration))

    async def token(self, pool: str = "default", namespace: str = plans.NAMESPACE) -> str:
        key = namespace, pool
        if key not in self._tokens:
            self._tokens[key] = await self.store.ensure_pool(namespace, pool)
        return self._tokens[key]

    async def propagate_all(self) -> None:
        while await self.store.propagate(MANY):
            pass

    async def promote(self) -> None:
        while await self.store.promote(MANY):
            pass

    async def expire(self) -> None:
        while await self.store.expire(MANY):
            pass

    async def heartbeat_version(self, worker: Worker) -> HeartbeatVersion:
        versions = {one.worker: one.version for one in await self.store.list_heartbeats()}
        return versions[worker.session.worker]

    async def reap(self, worker: Worker) -> types.ReapResult:
        """Requeue the claims of a worker that has sent no heartbeat meanwhile."""
        return await self.store.reap(
            worker.session.worker, version=await self.heartbeat_version(worker)
        )

    async def rows(self, run: JobId) -> dict[str, JobRow]:
        rows = await self.store.list_jobs(run)
        self._check_ends_are_final(rows)
        return {label(row): row for row in rows}

    async def row(self, run: JobId, name: str | None = None) -> JobRow:
        """Return the row of a job by name, or of the run itself."""
        rows = await self.rows(run)
        return next(iter(rows.values())) if name is None else rows[name]

    async def states(self, run: JobId) -> dict[str, str]:
        """Return the state of each job by name, such as `Skipped/NotNeeded`."""
        return {name: state_of(row) for name, row in (await self.rows(run)).items()}

    async def state(self, run: JobId, name: str | None = None) -> str:
        return state_of(await self.row(run, name))

    async def counts(self, run: JobId) -> Counter[str]:
        """Count a run's commands by state."""
        rows = await self.rows(run)
        return Counter(state_of(row) for row in rows.values() if row.kind is Kind.JOB)

    async def check(self) -> None:
        """Check what must be true after any scenario, once all ends are propagated."""
        await self.propagate_all()
        audited = await self.store.audit(100 * MANY)
        assert audited == types.AuditResult(0, 0), "a job waits though its upstreams have ended"
        queued: Counter[tuple[str, str]] = Counter()
        runs, summaries = await self.store.list_runs(), await self.store.list_run_summaries()
        assert [one.run for one in summaries] == runs
        for run, summary in zip(runs, summaries, strict=True):
            rows = await self.store.list_jobs(run.run)
            self._check_ends_are_final(rows)
            _check_rows(run, rows)
            _check_summary(summary, rows)
            await self.check_lookups(rows)
            await self._check_progress(run.run, rows)
            queued.update(
                (run.namespace, row.pool)
                for row in rows
                if row.state is State.QUEUED and row.kind is Kind.JOB
            )
        demand = await self.store.pool_demand()
        assert {pool: waiting.ready for pool, waiting in demand.items()} == queued

    async def check_lookups(self, rows: Sequence[JobRow]) -> None:
        """Compare what is returned for single jobs with what is returned for their whole run."""
        jobs = [row.job for row in rows]
        assert await self.store.get_jobs(jobs) == rows
        assert await self.store.filter_ended(jobs) == {
            row.job for row in rows if row.state in TERMINAL_STATES
        }

    async def _check_progress(self, run: JobId, rows: Sequence[JobRow]) -> None:
        progress = await self.store.count_states(run)
        shown = {state: count for state, count in progress.items() if count}
        assert shown == Counter(row.state for row in rows if row.kind is Kind.JOB)

    def _check_ends_are_final(self, rows: Sequence[JobRow]) -> None:
        for row in rows:
            if row.state in TERMINAL_STATES:
                assert self._ended.setdefault(row.job, row) == row, "an end has changed"
            else:
                assert row.job not in self._ended, "an ended job is not ended any more"


def _check_rows(run: types.RunRow, rows: Sequence[JobRow]) -> None:
    jobs = list(range(run.run, run.last_job + 1))
    # The group of the tasks, if there are tasks of `finally`, is not listed.
    assert [row.job for row in rows] in (jobs, jobs[:TASKS_OFFSET] + jobs[TASKS_OFFSET + 1 :])
    for row in rows:
        assert row.run == run.run
        assert (row.state in TERMINAL_STATES) == (row.finished_at is not None)
        if row.state in REASONS:
            assert row.reason in REASONS[row.state] | {None}
            assert row.reason is not None or row.kind is not Kind.JOB
        else:
            assert row.reason is None
        if row.state is State.RUNNING and row.kind is Kind.JOB:
            assert row.started_at is not None
            assert row.worker is not None


def _check_summary(summary: types.RunSummary, rows: Sequence[JobRow]) -> None:
    commands = [row for row in rows if row.kind is Kind.JOB]
    assert summary.job == rows[0]
    assert summary.commands == len(commands)
    assert summary.ended == sum(row.state in TERMINAL_STATES for row in commands)

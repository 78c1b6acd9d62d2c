"""A store with a hand on its clock, and the questions that tests ask of it again and again.

Given to every test of the behaviour suite by the fixture `harness`, which also has it checked for
what must hold after any scenario.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.store.behaviour import plans
from tests.store.behaviour.grounds import Ground
from tests.store.behaviour.worker import MANY, Worker, mint_boot
from workron.core.ids import JobId
from workron.core.lease import HeartbeatVersion
from workron.core.plan import Kind, Plan
from workron.core.states import REASONS, TERMINAL_STATES, State
from workron.store import api, types
from workron.store.types import JobRow


def label(row: JobRow) -> str:
    """Name a job for people: `name`, or `name[index]`."""
    return row.name if row.index is None else f"{row.name}[{row.index}]"


def stand(row: JobRow) -> str:
    """Put state and reason into one word."""
    return row.state if row.reason is None else f"{row.state}/{row.reason}"


class Harness:
    """One store under test, and others on the same database."""

    def __init__(self, ground: Ground, store: api.Store) -> None:
        self.ground = ground
        self.store = store
        self._opened = [store]
        self._tokens: dict[tuple[str, str], str] = {}
        self._ended: dict[JobId, JobRow] = {}

    async def advance(self, by: timedelta) -> None:
        await self.ground.turn(by)

    async def another(self) -> api.Store:
        """Open another store on the same database; where there can be none, give the same."""
        if not self.ground.is_lasting:
            return self.store
        self._opened.append(await self.ground.open())
        return self._opened[-1]

    async def reopen(self) -> None:
        """Close all stores and go on with a new one."""
        await self.close()
        self.store = await self.ground.open()
        self._opened = [self.store]

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

    async def submit(self, *wanted: Plan, **options: Any) -> JobId:
        """Submit, later than all before; answer the first run."""
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

    async def settle(self) -> None:
        while await self.store.propagate(MANY):
            pass

    async def promote(self) -> None:
        while await self.store.promote(MANY):
            pass

    async def expire(self) -> None:
        while await self.store.expire(MANY):
            pass

    async def sign_of(self, worker: Worker) -> HeartbeatVersion:
        signs = {
            sighting.worker: sighting.version for sighting in await self.store.list_heartbeats()
        }
        return signs[worker.session.worker]

    async def reap(self, worker: Worker) -> types.ReapResult:
        """Take back the claims of a worker that stands still."""
        return await self.store.reap(worker.session.worker, version=await self.sign_of(worker))

    async def rows(self, run: JobId) -> dict[str, JobRow]:
        rows = await self.store.list_jobs(run)
        self._hold_ends_against_earlier_ones(rows)
        return {label(row): row for row in rows}

    async def row(self, run: JobId, name: str | None = None) -> JobRow:
        """Give the row of a name; by default the run's own."""
        rows = await self.rows(run)
        return next(iter(rows.values())) if name is None else rows[name]

    async def stands(self, run: JobId) -> dict[str, str]:
        """Say of each job how it stands, such as `Skipped/NotNeeded`."""
        return {name: stand(row) for name, row in (await self.rows(run)).items()}

    async def stand(self, run: JobId, name: str | None = None) -> str:
        return stand(await self.row(run, name))

    async def counts(self, run: JobId) -> Counter[str]:
        """Count a large run's commands by how they stand."""
        rows = await self.rows(run)
        return Counter(stand(row) for row in rows.values() if row.kind is Kind.JOB)

    async def check(self) -> None:
        """Hold what must be true after any scenario, once ends are passed on."""
        await self.settle()
        audited = await self.store.audit(100 * MANY)
        assert audited == types.AuditResult(0, 0), "a job waits though its upstreams have ended"
        queued: Counter[tuple[str, str]] = Counter()
        runs, heads = await self.store.list_runs(), await self.store.list_run_summaries()
        assert [head.run for head in heads] == runs
        for run, head in zip(runs, heads, strict=True):
            rows = await self.store.list_jobs(run.run)
            self._hold_ends_against_earlier_ones(rows)
            _check_rows(run, rows)
            _check_head(head, rows)
            await self.check_standing(rows)
            await self._check_progress(run.run, rows)
            queued.update(
                (run.namespace, row.pool)
                for row in rows
                if row.state is State.QUEUED and row.kind is Kind.JOB
            )
        demand = await self.store.pool_demand()
        assert {pool: waiting.ready for pool, waiting in demand.items()} == queued

    async def check_standing(self, rows: Sequence[JobRow]) -> None:
        """Hold what is told of single jobs against what is told of their whole run."""
        jobs = [row.job for row in rows]
        assert await self.store.get_jobs(jobs) == rows
        assert await self.store.filter_ended(jobs) == {
            row.job for row in rows if row.state in TERMINAL_STATES
        }

    async def _check_progress(self, run: JobId, rows: Sequence[JobRow]) -> None:
        progress = await self.store.count_states(run)
        shown = {state: count for state, count in progress.items() if count}
        assert shown == Counter(row.state for row in rows if row.kind is Kind.JOB)

    def _hold_ends_against_earlier_ones(self, rows: Sequence[JobRow]) -> None:
        for row in rows:
            if row.state in TERMINAL_STATES:
                assert self._ended.setdefault(row.job, row) == row, "an end has changed"
            else:
                assert row.job not in self._ended, "an end was taken back"


def _check_rows(run: types.RunRow, rows: Sequence[JobRow]) -> None:
    assert [row.job for row in rows] == list(range(run.run, run.last_job + 1))
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


def _check_head(head: types.RunSummary, rows: Sequence[JobRow]) -> None:
    commands = [row for row in rows if row.kind is Kind.JOB]
    assert head.job == rows[0]
    assert head.commands == len(commands)
    assert head.ended == sum(row.state in TERMINAL_STATES for row in commands)

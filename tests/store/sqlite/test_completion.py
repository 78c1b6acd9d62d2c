"""Ends, losses and signals that meet in one job are counted once."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, mint, mint_boot, report_on
from workron.core.ids import JobId
from workron.core.lease import HeartbeatVersion
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.store.sqlite.store import SqliteStore
from workron.store.types import ClaimedJob, Registration, Session, Signal


async def _register(store: SqliteStore, name: str = "worker") -> Session:
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    return await store.register(Registration(token, name, mint_boot(), slots=1))


@pytest.fixture
async def session(store: SqliteStore) -> Session:
    return await _register(store)


async def _claim(store: SqliteStore, session: Session) -> ClaimedJob:
    (claimed,) = await store.claim(session.key, mint())
    return claimed


async def _stand(store: SqliteStore, run: JobId) -> tuple[State, Reason | None]:
    row = (await store.list_jobs(run))[0]
    return row.state, row.reason


async def test_unpropagated_upstream_is_counted_once(store: SqliteStore, session: Session) -> None:
    await store.submit([plans.dag("flow", a=task())])
    await store.complete(session.key, [report_on(await _claim(store, session))])
    outside = [plans.outside("flow", kind=Kind.WORKFLOW), plans.outside("later")]
    (down,) = await store.submit([plans.job("down", outside=outside)])
    await store.propagate(MANY)
    assert await _stand(store, down.run) == (State.WAITING, Reason.UPSTREAM)
    await store.submit([plans.job("later")])
    await store.complete(session.key, [report_on(await _claim(store, session))])
    assert await _stand(store, down.run) == (State.QUEUED, None)


async def test_job_lost_while_suspended_waits_for_resume_and_proof(
    store: SqliteStore, session: Session
) -> None:
    (job,) = await store.submit([plans.job(needs_proof=True)])
    await _claim(store, session)
    await store.suspend(job.run)
    await store.reap(session.worker, version=HeartbeatVersion("file", 0))
    await store.resume(job.run)
    assert await _stand(store, job.run) == (State.WAITING, Reason.AWAITING_PROOF)
    newer = await _register(store)
    await store.heartbeat(newer.key)
    assert await _stand(store, job.run) == (State.QUEUED, None)


async def test_reap_affects_one_worker(store: SqliteStore, session: Session) -> None:
    other = await _register(store, "other")
    submitted = await store.submit([plans.job("one"), plans.job("two")])
    for key in (session.key, other.key):
        await store.claim(key, mint())
    reaped = [
        await store.reap(one.worker, version=HeartbeatVersion("file", 0))
        for one in (session, other)
    ]
    requeued = [list(one.requeued) for one in reaped]
    assert sorted(requeued) == sorted([one.run] for one in submitted)


async def test_worker_sees_a_suspend_signal_until_the_resume(
    store: SqliteStore, session: Session
) -> None:
    (job,) = await store.submit([plans.job()])
    await _claim(store, session)
    seen = []
    for verb in (store.suspend, store.resume):
        await verb(job.run)
        seen += [held.signal for held in (await store.heartbeat(session.key)).held]
    assert seen == [Signal.SUSPEND, None]


async def test_id_of_a_removed_worker_is_not_reused(store: SqliteStore, session: Session) -> None:
    await store.deregister(session.key)
    assert (await _register(store, "other")).worker != session.worker


async def test_maintainer_continues_an_interrupted_cancel(
    store: SqliteStore,
) -> None:
    (run,) = await store.submit([plans.dag(a=task(count=3), b=task("a"))])
    await store._write(lambda tx: tx.run("cancel.update_run", run=run.run, force=False))
    await store._write(
        lambda tx: tx.run("bulk_update.request", run=run.run, operation="cancel", priority=None)
    )
    while await store.propagate(MANY):
        pass
    assert {row.state for row in await store.list_jobs(run.run)} == {State.CANCELLED}


@pytest.mark.parametrize(
    "table", ["deadline", "external_dependency", "awaiting_proof", "bulk_update"]
)
async def test_ended_job_leaves_no_other_rows(
    store: SqliteStore, session: Session, path: Path, table: str
) -> None:
    outside = [plans.outside("never")]
    terms: dict[str, Any] = {"needs_proof": True, "deadline_seconds": 60}
    (lost,) = await store.submit([plans.job("lost", **terms)])
    await _claim(store, session)
    await store.reap(session.worker, version=HeartbeatVersion("file", 0))
    (waiting,) = await store.submit([plans.job("waiting", outside=outside, **terms)])
    await store.cancel(lost.run)
    await store.cancel(waiting.run)
    with contextlib.closing(sqlite3.connect(path)) as opened:
        count = "SELECT count(*) FROM "
        assert opened.execute(count + table).fetchone() == (0,)

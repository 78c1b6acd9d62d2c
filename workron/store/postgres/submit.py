"""The interface for submissions and for changes of a whole run.

A submission is one transaction of three steps: `submit_lock_names` locks the names and finds
existing runs, COPY stores the rows of the new ones (`copy`), and `submit_link_runs` links them to
other runs and queues what waits for nothing.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Final, TypeAlias

import asyncpg

from workron.core import errors, ids
from workron.core.ids import JobId
from workron.core.plan import Plan, repeats
from workron.retry import RetryBackoff, retry
from workron.store import api
from workron.store.postgres import copy, functions
from workron.store.postgres.database import PostgresDatabase
from workron.store.postgres.notify import NOTIFY
from workron.store.types import DeleteRefusal, SubmittedRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from asyncpg import Record
    from asyncpg.pool import PoolConnectionProxy


_DELETE_STEP: Final = 5_000
"""Jobs whose rows one transaction deletes."""
_AT_ONCE: Final = RetryBackoff(0, 0, max_calls=8)
# Sent as text: in each new session the driver would look up what an array of numbers is, which
# takes four times as long as the linking.
_LINK_RUNS: Final = "SELECT workron.submit_link_runs($1::text::bigint[], $2::text::bigint[])"
_LINK_RUNS_AND_NOTIFY: Final = f"{_LINK_RUNS}, {NOTIFY}"

_Existing: TypeAlias = SubmittedRun | Plan
"""A stored run, or an earlier plan of the same submission."""


class PostgresSubmitStore(PostgresDatabase, api.SubmitStore):
    """`api.SubmitStore`."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[SubmittedRun]:
        notifies = self._notifier.is_idle
        link = _LINK_RUNS_AND_NOTIFY if notifies else _LINK_RUNS

        async def work(connection: PoolConnectionProxy) -> list[SubmittedRun]:
            async with connection.transaction():
                return await self._submit(connection, plans, link, supersedes=supersedes)

        submitted = await retry(
            lambda: self._database.run(work),
            errors=errors.StoreDataError,
            backoff=_AT_ONCE,
            on_retry=_raise_unless_duplicate,
        )
        (self._notifier.after_notify if notifies else self._notifier.notify)()
        return submitted

    async def _submit(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan], link: str, *, supersedes: bool
    ) -> list[SubmittedRun]:
        names = [_name(plan) | {"uid": str(plan.identity.uid)} for plan in plans]
        external = [
            {"namespace": plan.identity.namespace, "kind": one.kind, "name": one.name}
            for plan in plans
            for one in plan.external
        ]
        locked = await connection.fetch(
            functions.call("submit_lock_names", 2), json.dumps(names), json.dumps(external)
        )
        existing = list(_find_existing(plans, locked, supersedes=supersedes))
        new = [plan for plan, found in zip(plans, existing, strict=True) if found is None]
        runs = await self._store(connection, new, locked, link)
        return [
            found
            if isinstance(found, SubmittedRun)
            else SubmittedRun(
                runs[(found or plan).identity.uid],
                is_new=found is None,
                is_suspended=(found or plan).is_suspended,
            )
            for plan, found in zip(plans, existing, strict=True)
        ]

    async def _store(
        self,
        connection: PoolConnectionProxy,
        plans: Sequence[Plan],
        locked: Sequence[Record],
        link: str,
    ) -> dict[UUID, JobId]:
        """Insert new runs, and return their ids by uid."""
        if not plans:
            return {}
        now, transaction = locked[0]["now"], locked[0]["transaction"]
        named = {(plan.identity.namespace, terms.pool) for plan in plans for terms in plan.terms}
        found = await connection.fetch(
            functions.call("ensure_pools", 2),
            [namespace for namespace, _ in named],
            [name for _, name in named],
        )
        pools = {(row["namespace"], row["name"]): row["id"] for row in found}
        first = ids.mint_base(now, self._rng)
        placed: list[tuple[JobId, Plan]] = []
        for plan in plans:
            placed.append((first, plan))
            first = JobId(first + len(plan.nodes))
        await copy.copy_tables(connection, copy.tables(placed, pools, now, transaction))
        runs = {plan.identity.uid: run for run, plan in placed}
        await connection.execute(link, _array(runs.values()), _array(copy.scheduled_jobs(placed)))
        return runs

    async def delete_run(self, run: JobId) -> DeleteRefusal | None:
        refusal = await self._call_value("delete_run", run)
        if refusal is not None:
            return DeleteRefusal(refusal)
        while not await self._call_value("delete_run_step", run, _DELETE_STEP):
            pass
        return None

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        token = secrets.token_urlsafe()
        await self._call("ensure_pool", namespace, name, token, lease_seconds)
        return token


def _raise_unless_duplicate(error: errors.StoreDataError, _: float) -> None:
    # Another submission in the same millisecond drew overlapping ids, or stored this very object;
    # the next call moves on, or finds it.
    if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
        raise error


def _name(plan: Plan) -> dict[str, str]:
    who = plan.identity
    return {"namespace": who.namespace, "kind": who.kind, "name": who.name}


def _find_existing(
    plans: Sequence[Plan], locked: Sequence[Record], *, supersedes: bool
) -> Iterator[_Existing | None]:
    """Return for each plan the run or the earlier plan that it repeats; None for a new one."""
    by_uid: dict[UUID, _Existing] = {}
    by_name: dict[tuple[str, ...], Plan] = {}
    for plan, row in zip(plans, locked, strict=True):
        uid, name = plan.identity.uid, tuple(_name(plan).values())
        known = by_uid.get(uid) or _stored_run(row, "known")
        digest = by_name[name].digest() if name in by_name else row["digest"]
        is_cancelled = name not in by_name and bool(row["unfinished_cancelled"])
        if known is None and repeats(
            plan, digest, is_cancelled=is_cancelled, supersedes=supersedes
        ):
            known = by_name.get(name) or _stored_run(row, "unfinished")
        if known is None:
            by_uid[uid] = by_name[name] = plan
        yield known


def _stored_run(row: Record, column: str) -> SubmittedRun | None:
    if row[column] is None:
        return None
    return SubmittedRun(row[column], is_new=False, is_suspended=row[f"{column}_suspended"])


def _array(jobs: Iterable[JobId]) -> str:
    return f"{{{','.join(map(str, jobs))}}}"

"""The interface for submissions and for changes of a whole run.

A submission is one transaction of three steps: `submit_lock_names` locks the names and finds
existing runs, COPY stores the rows of the new ones (`copy`), and `submit_link_runs` links them to
other runs and queues what waits for nothing.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

from workron.core import errors, ids
from workron.core.ids import JobId
from workron.core.plan import Plan, repeats
from workron.store import types
from workron.store.postgres import copy, functions
from workron.store.postgres.database import PostgresDatabase
from workron.store.postgres.notify import NOTIFY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from asyncpg import Record
    from asyncpg.pool import PoolConnectionProxy


_TRIES: Final = 8
# Sent as text: in each new session the driver would look up what an array of numbers is, which
# takes four times as long as the linking.
_LINK_RUNS: Final = "SELECT workron.submit_link_runs($1::text::bigint[], $2::text::bigint[])"
_LINK_RUNS_AND_NOTIFY: Final = f"{_LINK_RUNS}, {NOTIFY}"

_Existing: TypeAlias = types.SubmittedRun | Plan
"""A stored run, or an earlier plan of the same submission."""


class PostgresSubmitStore(PostgresDatabase):
    """`api.SubmitStore`."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[types.SubmittedRun]:
        """Store all plans, or none."""
        notifies = self._notifier.is_idle

        async def work(connection: PoolConnectionProxy) -> list[types.SubmittedRun]:
            async with connection.transaction():
                link = _LINK_RUNS_AND_NOTIFY if notifies else _LINK_RUNS
                return await self._submit(connection, plans, link, supersedes=supersedes)

        for tries_left in reversed(range(_TRIES)):
            try:
                submitted = await self._database.run(work)
            except errors.StoreDataError as refusal:
                # Another submission in the same millisecond drew overlapping ids, or stored this
                # very object; the next try moves on, or finds it.
                if not (tries_left and isinstance(refusal.__cause__, asyncpg.UniqueViolationError)):
                    raise
            else:
                (self._notifier.after_notify if notifies else self._notifier.notify)()
                return submitted
        raise AssertionError("the last try either returns or raises")

    async def _submit(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan], link: str, *, supersedes: bool
    ) -> list[types.SubmittedRun]:
        reserved = await self._lock_names(connection, plans)
        existing = list(_find_existing(plans, reserved, supersedes=supersedes))
        new = [plan for plan, found in zip(plans, existing, strict=True) if found is None]
        ids_of_new = await self._store(connection, new, reserved, link)
        runs = {plan.identity.uid: run for plan, run in zip(new, ids_of_new, strict=True)}
        return [
            found
            if isinstance(found, types.SubmittedRun)
            else _submitted(found or plan, runs, is_new=found is None)
            for plan, found in zip(plans, existing, strict=True)
        ]

    async def _lock_names(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan]
    ) -> Sequence[Record]:
        reserved: Sequence[Record] = await connection.fetch(
            functions.call("submit_lock_names", 2),
            json.dumps([_name_of(plan) for plan in plans]),
            json.dumps([name for plan in plans for name in _external_names(plan)]),
        )
        return reserved

    async def _store(
        self,
        connection: PoolConnectionProxy,
        plans: Sequence[Plan],
        reserved: Sequence[Record],
        link: str,
    ) -> list[JobId]:
        if not plans:
            return []
        now = reserved[0]["now"]
        pools = await self._ensure_pools(connection, plans)
        first = ids.mint_base(now, self._rng)
        placed: list[tuple[JobId, Plan]] = []
        for plan in plans:
            placed.append((first, plan))
            first = JobId(first + len(plan.nodes))
        await copy.copy_tables(connection, copy.tables(placed, pools, now))
        runs = [run for run, _ in placed]
        await connection.execute(link, _array(runs), _array(copy.scheduled_jobs(placed)))
        return runs

    async def _ensure_pools(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan]
    ) -> dict[tuple[str, str], int]:
        pools = {(plan.identity.namespace, terms.pool) for plan in plans for terms in plan.terms}
        found = await connection.fetch(
            functions.call("ensure_pools", 2),
            [namespace for namespace, _ in pools],
            [name for _, name in pools],
        )
        return {(row["namespace"], row["name"]): row["id"] for row in found}

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Create the pool if needed, and return a new token for its workers."""
        token = secrets.token_urlsafe()
        await self._call("ensure_pool", namespace, name, token, lease_seconds)
        return token


def _find_existing(
    plans: Sequence[Plan], reserved: Sequence[Record], *, supersedes: bool
) -> Iterator[_Existing | None]:
    """Return for each plan the run or the earlier plan that it repeats; None for a new one."""
    by_uid: dict[UUID, _Existing] = {}
    by_name: dict[tuple[str, str, str], Plan] = {}
    for plan, row in zip(plans, reserved, strict=True):
        identity = plan.identity
        name = identity.namespace, identity.kind, identity.name
        known = by_uid.get(identity.uid, _stored_run(row, "known"))
        unfinished = by_name.get(name, _stored_run(row, "unfinished"))
        digest = by_name[name].digest if name in by_name else row["digest"]
        if known is None and repeats(plan, digest, supersedes=supersedes):
            known = unfinished
        if known is None:
            by_uid[identity.uid] = by_name[name] = plan
        yield known


def _array(jobs: Iterable[JobId]) -> str:
    return f"{{{','.join(map(str, jobs))}}}"


def _submitted(plan: Plan, runs: Mapping[UUID, JobId], *, is_new: bool) -> types.SubmittedRun:
    return types.SubmittedRun(
        runs[plan.identity.uid], is_new=is_new, is_suspended=plan.is_suspended
    )


def _stored_run(row: Record, column: str) -> types.SubmittedRun | None:
    if row[column] is None:
        return None
    is_suspended = row[f"{column}_suspended"]
    return types.SubmittedRun(JobId(row[column]), is_new=False, is_suspended=is_suspended)


def _name_of(plan: Plan) -> dict[str, Any]:
    identity = plan.identity
    return {
        "namespace": identity.namespace,
        "kind": identity.kind,
        "name": identity.name,
        "uid": str(identity.uid),
    }


def _external_names(plan: Plan) -> Iterable[dict[str, Any]]:
    namespace = plan.identity.namespace
    return (
        {"namespace": namespace, "kind": upstream.kind, "name": upstream.name}
        for upstream in plan.external
    )

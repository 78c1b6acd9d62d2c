"""The door for what people and the operator ask: submit, cancel, hold, resume."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

from workron.core import errors, ids
from workron.core.ids import JobId
from workron.core.plan import ExistingRuns, Plan, find_existing
from workron.store import types
from workron.store.postgres import copy, functions
from workron.store.postgres.notify import NOTIFY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from asyncpg import Record
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.clock import Rng
    from workron.store.postgres.notify import Notifier
    from workron.store.postgres.pool import ConnectionPool


_STEP: Final = 1000


class BulkUpdates:
    """Those that callers of one store drive."""

    def __init__(self, database: ConnectionPool, ring: Callable[[], None]) -> None:
        self._database = database
        self._ring = ring

    async def finish(self, run: JobId) -> None:
        """Go on until nothing is left to do."""
        step = "SELECT workron.sweep_step($1, $2)"
        while not await self._database.fetch_value(step, run, _STEP):
            pass
        self._ring()


_TRIES: Final = 8
# The driver knows what a text is. What an array of numbers is it asks in each new session, and that
# takes four times as long as all that is to be bound.
_BIND: Final = "SELECT workron.submit_bind($1::text::bigint[], $2::text::bigint[])"
_BIND_AND_RING: Final = f"{_BIND}, {NOTIFY}"

_Place: TypeAlias = types.SubmittedRun | Plan


class PostgresSubmitStore:
    """Submissions, and changes of a whole run."""

    def __init__(self, database: ConnectionPool, rng: Rng, bell: Notifier) -> None:
        self._database = database
        self._sweeps = BulkUpdates(database, bell.ring)
        self._rng = rng
        self._bell = bell

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[types.SubmittedRun]:
        """Store all plans, or none."""
        rings = self._bell.is_resting

        async def work(connection: PoolConnectionProxy) -> list[types.SubmittedRun]:
            async with connection.transaction():
                bind = _BIND_AND_RING if rings else _BIND
                return await self._submit(connection, plans, bind, supersedes=supersedes)

        for tries_left in reversed(range(_TRIES)):
            try:
                submitted = await self._database.run(work)
            except errors.StoreDataError as refusal:
                # Another submission of the same millisecond drew overlapping ids, or brought this
                # very one; both show when it is tried again.
                if not (tries_left and isinstance(refusal.__cause__, asyncpg.UniqueViolationError)):
                    raise
            else:
                (self._bell.has_rung if rings else self._bell.ring)()
                return submitted
        raise AssertionError("the last try either returns or raises")

    async def _submit(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan], bind: str, *, supersedes: bool
    ) -> list[types.SubmittedRun]:
        reserved = await self._reserve(connection, plans)
        places = list(_places(plans, reserved, supersedes=supersedes))
        fresh = [plan for plan, place in zip(plans, places, strict=True) if place is None]
        bases = await self._store(connection, fresh, reserved, bind)
        runs = {plan.identity.uid: run for plan, run in zip(fresh, bases, strict=True)}
        return [
            place
            if isinstance(place, types.SubmittedRun)
            else _submitted(place or plan, runs, is_new=place is None)
            for plan, place in zip(plans, places, strict=True)
        ]

    async def _reserve(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan]
    ) -> Sequence[Record]:
        reserved: Sequence[Record] = await connection.fetch(
            "SELECT * FROM workron.submit_reserve($1, $2)",
            json.dumps([_names(plan) for plan in plans]),
            json.dumps([name for plan in plans for name in _awaited(plan)]),
        )
        return reserved

    async def _store(
        self,
        connection: PoolConnectionProxy,
        plans: Sequence[Plan],
        reserved: Sequence[Record],
        bind: str,
    ) -> list[JobId]:
        if not plans:
            return []
        now = reserved[0]["now"]
        pools = await self._pools(connection, plans)
        base = ids.mint_base(now, self._rng)
        placed: list[tuple[JobId, Plan]] = []
        for one in plans:
            placed.append((base, one))
            base = JobId(base + len(one.nodes))
        await copy.copy_tables(connection, copy.tables(placed, pools, now))
        bases = [first for first, _ in placed]
        await connection.execute(bind, _array(bases), _array(copy.idle(placed)))
        return bases

    async def _pools(
        self, connection: PoolConnectionProxy, plans: Sequence[Plan]
    ) -> dict[tuple[str, str], int]:
        wanted = {(one.identity.namespace, terms.pool) for one in plans for terms in one.terms}
        found = await connection.fetch(
            "SELECT * FROM workron.pools($1, $2)",
            [namespace for namespace, _ in wanted],
            [name for _, name in wanted],
        )
        return {(row["namespace"], row["name"]): row["id"] for row in found}

    async def cancel(self, run: JobId) -> bool:
        """End all of a run that is not running, mark what runs."""
        return await self._sweep("cancel", run)

    async def suspend(self, run: JobId) -> bool:
        """Suspend all of a run that is not running."""
        return await self._sweep("hold", run)

    async def resume(self, run: JobId) -> bool:
        """Undo `hold`, or a submission as suspended."""
        return await self._sweep("resume", run)

    async def _sweep(self, verb: str, run: JobId) -> bool:
        if not await self._database.fetch_value(functions.query(verb), run):
            return False
        await self._sweeps.finish(run)
        return True

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Make the pool if it is new, and answer a token that admits workers to it."""
        token = secrets.token_urlsafe()
        await self._database.fetch(
            "SELECT workron.ensure_pool($1, $2, $3, $4)", namespace, name, token, lease_seconds
        )
        return token


def _places(
    plans: Sequence[Plan], reserved: Sequence[Record], *, supersedes: bool
) -> Iterator[_Place | None]:
    """Give for each plan what stands for it: a run, or an earlier plan; None: it is new."""
    known: dict[UUID, _Place] = {}
    named: dict[tuple[str, str, str], Plan] = {}
    for plan, row in zip(plans, reserved, strict=True):
        who = plan.identity
        name = who.namespace, who.kind, who.name
        standing: ExistingRuns[_Place] = ExistingRuns(
            known=known.get(who.uid, _stored(row, "known")),
            unfinished=named.get(name, _stored(row, "unfinished")),
            digest=named[name].digest() if name in named else row["digest"],
        )
        place = find_existing(plan, standing, supersedes=supersedes)
        if place is None:
            known[who.uid] = named[name] = plan
        yield place


def _array(jobs: Iterable[JobId]) -> str:
    return f"{{{','.join(map(str, jobs))}}}"


def _submitted(plan: Plan, runs: Mapping[UUID, JobId], *, is_new: bool) -> types.SubmittedRun:
    return types.SubmittedRun(
        runs[plan.identity.uid], is_new=is_new, is_suspended=plan.is_suspended
    )


def _stored(row: Record, column: str) -> types.SubmittedRun | None:
    if row[column] is None:
        return None
    return types.SubmittedRun(JobId(row[column]), is_new=False, is_suspended=row[f"{column}_held"])


def _names(one: Plan) -> dict[str, Any]:
    identity = one.identity
    return {
        "namespace": identity.namespace,
        "kind": identity.kind,
        "name": identity.name,
        "uid": str(identity.uid),
    }


def _awaited(one: Plan) -> Iterable[dict[str, Any]]:
    return (
        {"namespace": one.identity.namespace, "kind": outside.kind, "name": outside.name}
        for outside in one.external
    )

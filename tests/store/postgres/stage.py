"""Actors on one database, whose transactions a test interleaves without sleeping.

An actor is a store on a single connection: its changes between `begin` and `commit` are invisible
to others, and locked. `Stage.start` starts a call of a second actor and returns when it waits for a
lock or has ended. `Stage.without` removes a lock from the function that has it, in this database
only, so that a test can show why the lock is needed.
"""

import asyncio
import dataclasses
import random
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from tests.store.behaviour import plans
from tests.store.behaviour.harness import state_of
from tests.store.behaviour.worker import MANY, Worker, mint_boot
from workron.core.ids import JobId, SessionKey
from workron.core.lease import HeartbeatVersion
from workron.core.plan import Plan
from workron.store import types
from workron.store.postgres import driver_errors, functions
from workron.store.postgres.notify import Notifier
from workron.store.postgres.pool import ConnectionPool
from workron.store.postgres.store import PostgresStore
from workron.store.wakeup import Wakeup

_T = TypeVar("_T")

_MOST_CHECKS = 20_000
_GUARD = re.compile(
    r" FOR (KEY SHARE|SHARE|NO KEY UPDATE|UPDATE)( SKIP LOCKED)?"
    r"| AND uuid_eq\(r\.claim, t\.claim\) AND int8eq\(r\.fence, t\.fence\)"
    r" AND int8eq\(r\.worker, _worker\.id\)"
    r"| ORDER BY job, number"
)
_TABLES = ("waiting", "ready", "deferred", "running", "done")


class SingleConnectionPool(ConnectionPool):
    """One connection instead of a pool; a call that deadlocks is not repeated."""

    def __init__(self, connection: asyncpg.Connection, url: str) -> None:
        self.connection = connection
        self.url = url

    async def run(self, work: Callable[[PoolConnectionProxy], Awaitable[_T]]) -> _T:
        try:
            return await work(cast("PoolConnectionProxy", self.connection))
        except asyncpg.DeadlockDetectedError:
            raise
        except driver_errors.DRIVER as cause:
            if driver_errors.is_transient(cause):
                return await self.run(work)
            raise driver_errors.translate(cause, self.url) from cause


class _SilentNotifier(Notifier):
    is_idle = False

    def notify(self, worker: SessionKey | None = None) -> None:
        """Send nothing, so that only the test wakes other stores."""


class Actor(PostgresStore):
    """A store on one connection, whose transactions the test begins and commits."""

    def __init__(self, connection: asyncpg.Connection, url: str) -> None:
        line = SingleConnectionPool(connection, url)
        super().__init__(line, line, random.Random())
        self.connection = connection
        self.pid = connection.get_server_pid()
        self.before_storing: Callable[[], Awaitable[None]] = _go_on
        self._notifier = _SilentNotifier(line, Wakeup())

    async def _store(self, *given: Any) -> dict[UUID, JobId]:
        await self.before_storing()
        return await super()._store(*given)

    async def begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def heartbeat_version(self, worker: Worker) -> HeartbeatVersion:
        signs = {sighting.worker: sighting.version for sighting in await self.list_heartbeats()}
        return signs[worker.session.worker]

    async def forbid(self, *ways: str) -> None:
        """Disable some kinds of scans or joins for this actor's plans."""
        for way in ways:
            await self.connection.execute(f"SET enable_{way} = off")

    async def wait_for_work(self, timeout_seconds: float, worker: SessionKey | None = None) -> None:
        raise NotImplementedError

    async def listen(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        await self.connection.close()


async def _go_on() -> None:
    """Let a submission store what it has reserved."""


@dataclasses.dataclass
class WorkerActor(Worker):
    """A worker whose transactions the test begins and commits."""

    store: Actor

    async def begin(self) -> None:
        await self.store.begin()

    async def commit(self) -> None:
        await self.store.commit()


class Stage:
    """A database, the actors on it, and one actor that only reads."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._actors: list[Actor] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def open(self) -> None:
        self.watcher = await self.actor()
        self.sql = self.watcher.connection
        self.token = await self.watcher.ensure_pool(plans.NAMESPACE, "default")

    async def actor(self) -> Actor:
        connection = await asyncpg.connect(self.dsn)
        # A deadlock that a test provokes is found sooner.
        await connection.execute("SET deadlock_timeout = '20ms'")
        self._actors.append(Actor(connection, self.dsn))
        return self._actors[-1]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for actor in self._actors:
            actor.connection.terminate()

    async def start(
        self, who: Actor | WorkerActor, call: Coroutine[Any, Any, _T]
    ) -> asyncio.Task[_T]:
        """Start a call, and return when it waits for a lock or has ended."""
        actor = who.store if isinstance(who, WorkerActor) else who
        task = asyncio.create_task(call)
        self._tasks.append(task)
        for _ in range(_MOST_CHECKS):
            if task.done() or await self._is_stuck(actor):
                return task
        raise AssertionError("the call neither waits for a lock nor ends")

    async def _is_stuck(self, actor: Actor) -> bool:
        return bool(
            await self.sql.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", actor.pid)
        )

    async def without(self, guard: str) -> None:
        """Install every function that has this guard, without the guard."""
        mark = f"-- guard: {guard}"
        texts = [text for text in functions.function_sources().values() if mark in text]
        assert texts, f"no function has a line with {mark!r}"
        for text in texts:
            await self.sql.execute(
                "\n".join(_without_guard(line, mark) for line in text.splitlines())
            )

    async def replace(self, verb: str, old: str, new: str) -> None:
        """Install one function, with its single match of `old` replaced."""
        text, count = re.subn(old, new, functions.function_sources()[verb], flags=re.DOTALL)
        assert count == 1, f"{old!r} is in {verb} {count} times"
        await self.sql.execute(text)

    async def worker(self, name: str = "worker") -> WorkerActor:
        """Register a worker with an actor of its own."""
        actor = await self.actor()
        return WorkerActor(actor, await self.register(actor, name))

    async def register(
        self, by: Actor, name: str, *, boot: UUID | None = None, token: str | None = None
    ) -> types.Session:
        about = (token or self.token, name, boot or mint_boot())
        return await by.register(types.Registration(*about, slots=MANY))

    async def twin(self, hand: WorkerActor) -> WorkerActor:
        """Return the same worker with a second actor."""
        return WorkerActor(await self.actor(), hand.session)

    async def submit(self, *wanted: Plan) -> JobId:
        return (await self.watcher.submit(wanted))[0].run

    async def states(self, run: JobId) -> dict[str, str]:
        """Return the state of each job, such as `Skipped/NotNeeded`."""
        return {row.name: state_of(row) for row in await self.watcher.list_jobs(run)}

    async def settle(self) -> None:
        while await self.watcher.propagate(MANY):
            pass

    async def misplaced_jobs(self) -> list[int]:
        """List the jobs that are not in exactly one table."""
        places = " UNION ALL ".join(f"SELECT job FROM workron.{place}" for place in _TABLES)
        rows = await self.sql.fetch(
            f"SELECT id FROM workron.job LEFT JOIN ({places}) p ON p.job = id "
            "GROUP BY id HAVING count(p.job) <> 1"
        )
        return [row["id"] for row in rows]

    async def count_stranded(self) -> int:
        """Count the jobs that wait forever after all ends were propagated."""
        await self.settle()
        assert not await self.misplaced_jobs()
        return (await self.watcher.audit(MANY)).missed


def _without_guard(line: str, mark: str) -> str:
    if mark not in line:
        return line
    weaker, count = _GUARD.subn("", line)
    assert count == 1, f"this line guards nothing: {line}"
    return weaker

"""The workers of this process: one agent for each pool, all of them sharing the slots.

Made by `run`, for whatever pools its files name, as there are no pods to choose, and by `worker`
for one.
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.cli import gc_tuning, system_clock
from workron.core import errors
from workron.scheduling import maintainer
from workron.store import connect
from workron.store.types import Registration
from workron_runner import process_reaper
from workron_worker import identity, meter
from workron_worker.agent import Agent
from workron_worker.config import AgentDependencies, Slots, accept_any_session, no_listener
from workron_worker.runner_client import RunnerExecutor
from workron_worker.runner_connection import ChildRunners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from workron.store.api import Store, WorkerStore
    from workron.store.types import ClaimedJob, Session, WorkerHeartbeat
    from workron_worker.config import AgentConfig
    from workron_worker.executor import OnOutput
    from workron_worker.meter import WorkerMeter
    from workron_worker.runner_connection import Runners


_WHILE_A_FILE_IS_WRITTEN: Final = timedelta(minutes=1)
"""A large submission of another process holds a SQLite file for seconds, in which nobody can beat;
who dies here is known to be dead without a lease."""
_ALWAYS: Final = timedelta(days=365)
"""Nobody else can ever have what is claimed in memory."""


def lease_of(url: str) -> float | None:
    """Say how long claims outlive the last beat of a worker here; None: as the pool has it."""
    if connect.is_memory(url):
        return _ALWAYS.total_seconds()
    return _WHILE_A_FILE_IS_WRITTEN.total_seconds() if connect.is_file(url) else None


async def tokens_of(store: Store, pools: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Make the pools, given by namespace and name, and take a token of each."""
    lease = lease_of(store.url)
    return [await store.ensure_pool(*pool, lease_seconds=lease) for pool in pools]


def need_temporary_folder() -> None:
    """Raise InputError where there is no place for the folders of commands."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        looked = str(error.strerror).rpartition(" in ")[2]
        raise errors.InputError(
            "commands need a writable temporary directory, and there is none here (looked at"
            f" {looked}): set TMPDIR to one, or give the container one with `--tmpfs /tmp:exec`"
        ) from None


def executor_of(
    boot: UUID, runners: Runners | None = None, meter: WorkerMeter = meter.NO_METER
) -> RunnerExecutor:
    """Make what runs the commands of a worker; by default it starts a runner of its own."""
    return RunnerExecutor(
        grace=system_clock.KILL_GRACE, boot=boot, runners=runners or ChildRunners(), meter=meter
    )


class LocalWorkers:
    """The agents, and the executor that they share."""

    def __init__(
        self,
        store: WorkerStore,
        executor: RunnerExecutor,
        slots: int,
        *,
        rhythm: AgentConfig | None = None,
        listener: Callable[[ClaimedJob], OnOutput | None] | None = None,
        meter: WorkerMeter = meter.NO_METER,
    ) -> None:
        self._boot = executor.boot
        self._rhythm = rhythm
        self._executor = executor
        self._around = AgentDependencies(
            door=store,
            executor=self._executor,
            slots=Slots(slots),
            clock=system_clock.CLOCK,
            rng=system_clock.RNG,
            wait_for_work=store.wait_for_work,
            listener=listener or no_listener,
            meter=meter,
        )
        self._agents: list[Agent] = []

    def hire(
        self,
        tokens: Iterable[str],
        check: Callable[[Session], None] = accept_any_session,
        name: str | None = None,
    ) -> None:
        """Make an agent for each pool, given by a token of it; `name` is else this process's."""
        slots = self._around.slots.count
        for token in tokens:
            registration = Registration(token, name or identity.own_name(), self._boot, slots)
            self._agents.append(Agent(self._around, registration, self._rhythm, check))

    async def run(self) -> None:
        """Work until drained."""
        tasks = [asyncio.create_task(agent.run()) for agent in self._agents]
        try:
            with gc_tuning.rare_collection():
                for ended in asyncio.as_completed(tasks):
                    await ended
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def close(self) -> None:
        """Leave nothing behind on this machine."""
        self._executor.close()

    @property
    def running(self) -> int:
        """How many commands run."""
        return sum(len(agent.running) for agent in self._agents)

    def names(self) -> Sequence[str]:
        """Name the commands that run, as other commands take the names."""
        return sorted(_path(claimed) for agent in self._agents for claimed in agent.running)

    def drain(self) -> None:
        """Claim nothing any more."""
        for agent in self._agents:
            agent.drain()

    def kill(self) -> None:
        """End what runs and hand it back."""
        for agent in self._agents:
            agent.kill()


def _path(claimed: ClaimedJob) -> str:
    if claimed.name == claimed.run and claimed.index is None:
        return claimed.run
    index = "" if claimed.index is None else f"/{claimed.index}"
    return f"{claimed.run}/{claimed.name}{index}"


async def recover(store: Store) -> Sequence[str]:
    """Do it, and answer what is to be said about it."""
    lines: list[str] = []

    async def is_dead(worker: WorkerHeartbeat) -> bool:
        if not identity.is_gone(worker.name):
            return False
        swept = await asyncio.to_thread(process_reaper.end_orphans, worker.boot)
        if not swept.is_clear:
            lines.append(_unclear(worker))
        elif swept.ended:
            lines.append(f"ended {_processes(swept.ended)} of a worker that was killed")
        return swept.is_clear

    for worker in await maintainer.reap_proven(store, is_dead):
        # The maintainer of that process held the office under the same id.
        await store.resign(worker.boot)
    return lines


def _unclear(worker: WorkerHeartbeat) -> str:
    if process_reaper.can_be_found():
        what = "some of its processes cannot be ended"
    else:
        what = "this system does not tell which processes it left"
    return f"a killed worker ({worker.name}) is given up only after its lease: {what}"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"

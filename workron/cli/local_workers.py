"""The workers of this process: one agent for each pool, which share the slots and the executor.

`run` has an agent for each pool that its files name, `worker` has one. Before they start,
`reap_dead_workers` finds workers of this machine whose process is dead, ends what is left of their
commands, and requeues their claims without waiting for the lease.
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workron.cli import gc_tuning, system_clock
from workron.core import errors
from workron.store import connect
from workron.store.types import Registration
from workron_runner import boot_cleanup
from workron_worker import identity
from workron_worker.agent import Agent
from workron_worker.config import AgentDependencies, Slots
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_client import RunnerExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from workron.store.api import Store, WorkerStore
    from workron.store.types import ClaimedJob, Session
    from workron_worker.config import AgentConfig
    from workron_worker.executor import OnOutput


_FILE_LEASE: Final = timedelta(minutes=1)
"""A large submission locks a SQLite file for seconds, and no heartbeat can be written meanwhile."""
_MEMORY_LEASE: Final = timedelta(days=365)
"""Only this process sees a store in memory, so no other process can claim its jobs."""


async def ensure_pools(store: Store, pools: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Create the pools, given by namespace and name, if missing; return a token for each."""
    lease = None
    if connect.is_memory(store.url):
        lease = _MEMORY_LEASE.total_seconds()
    elif connect.is_file(store.url):
        lease = _FILE_LEASE.total_seconds()
    return [await store.ensure_pool(*pool, lease_seconds=lease) for pool in pools]


def require_temporary_folder() -> None:
    """Raise InputError without a folder for the working directories of commands."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        searched = str(error.strerror).rpartition(" in ")[2]
        raise errors.InputError(
            f"no writable temporary directory found (searched {searched}); set TMPDIR, or start the"
            " container with `--tmpfs /tmp:exec`"
        ) from None


class LocalWorkers:
    """The agents of this process and their executor."""

    def __init__(  # noqa: PLR0913 - all but three are optional
        self,
        store: WorkerStore,
        executor: RunnerExecutor,
        slots: int,
        *,
        config: AgentConfig | None = None,
        listener: Callable[[ClaimedJob], OnOutput | None] | None = None,
        variables: Callable[[ClaimedJob], Mapping[str, str]] = lambda _: {},
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._boot = executor.boot
        self._config = config
        self._executor = executor
        self._dependencies = AgentDependencies(
            store=store,
            executor=executor,
            slots=Slots(slots),
            clock=system_clock.CLOCK,
            rng=system_clock.RNG,
            listener=listener,
            variables=variables,
            metrics=metrics or WorkerMetrics(),
        )
        self._agents: list[Agent] = []

    def add_agents(
        self,
        tokens: Iterable[str],
        check: Callable[[Session], None] | None = None,
        name: str | None = None,
    ) -> None:
        """Add an agent for each pool, given by its token; the default name is this process's."""
        slots = self._dependencies.slots.count
        for token in tokens:
            registration = Registration(token, name or identity.process_name(), self._boot, slots)
            self._agents.append(Agent(self._dependencies, registration, self._config, check))

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
        """Stop the runner and remove its folders."""
        self._executor.close()

    @property
    def running(self) -> int:
        """Number of running commands."""
        return sum(len(agent.running) for agent in self._agents)

    def names(self) -> Sequence[str]:
        """Names of the running jobs, as commands accept them."""
        return sorted(_job_path(claimed) for agent in self._agents for claimed in agent.running)

    def drain(self) -> None:
        """Claim no more jobs; running ones finish."""
        for agent in self._agents:
            agent.drain()

    def kill(self) -> None:
        """Stop running commands and requeue their jobs."""
        for agent in self._agents:
            agent.kill()


def _job_path(claimed: ClaimedJob) -> str:
    if claimed.name == claimed.run and claimed.index is None:
        return claimed.run
    index = "" if claimed.index is None else f"/{claimed.index}"
    return f"{claimed.run}/{claimed.name}{index}"


async def reap_dead_workers(store: Store) -> Sequence[str]:
    """Reap workers of this machine that are provably dead; return messages about them."""
    messages: list[str] = []
    for worker in await store.list_heartbeats():
        if not identity.is_dead(worker.name):
            continue
        ended = await asyncio.to_thread(boot_cleanup.clean_up_boot, worker.boot)
        if not ended.is_complete:
            what = (
                "some of its processes cannot be ended"
                if boot_cleanup.can_read_environments()
                else "this system cannot find its processes"
            )
            messages.append(
                f"the jobs of dead worker {worker.name} are requeued when its lease expires: {what}"
            )
            continue
        if ended.killed:
            processes = "1 process" if ended.killed == 1 else f"{ended.killed} processes"
            messages.append(f"ended {processes} of a dead worker")
        # This is not a loss of the job, and cannot loop: a user has to start the next run.
        await store.reap(worker.worker, version=None, charge_losses=False)
        # The maintainer of the dead process was elected under the same id.
        await store.resign(worker.boot)
    return messages

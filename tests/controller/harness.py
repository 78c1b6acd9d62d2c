"""A whole controller over a store and against the fake API server."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from tests.controller import cluster
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, Kind
from workron.cli import system_clock
from workron.core import ids
from workron.scheduling.maintainer import Maintainer
from workron.store import connect
from workron.store.api import Store
from workron.store.types import Registration, Session
from workron_controller.kube.auth import ApiAccess
from workron_controller.kube.client import ApiClient
from workron_controller.kube.leader_election import ElectionTiming, LeaderElection, LeaseLock
from workron_controller.manager import ControllerConfig, ControllerDependencies, Manager
from workron_controller.workerpools.config import PoolConfig

RNG = random.Random(1)
"""Time is real here: Kopf and the controller wait for each other over real connections."""


@dataclass
class ControllerHarness:
    api: FakeApi
    store: Store
    session: Session

    def phase(self, name: str, kind: Kind = JOB) -> str:
        found = self.api.find(kind, name) or {}
        return str(found.get("status", {}).get("phase", ""))

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    async def run_worker(self) -> None:
        """Run all ready jobs until it is cancelled."""
        while True:
            for one in await cluster.claimed(self.store, self.session, 10):
                await cluster.ended(self.store, self.session, one, output=b"done\n")
            await asyncio.sleep(0.01)

    async def wait_for_states(self, namespace: str, state: str) -> None:
        """Wait until all runs of a namespace are in this state."""
        while {head.job.state for head in await self.store.list_run_summaries(namespace)} != {
            state
        }:
            await asyncio.sleep(0.01)

    def status_writes(self) -> list[str]:
        return [
            str(request.name)
            for request in self.api.requests.writes
            if request.subresource == "status"
        ]


@contextlib.asynccontextmanager
async def opened(api: FakeApi, url: str) -> AsyncIterator[ControllerHarness]:
    """Open a store with a worker of the default pool."""
    store = await connect.connect(url, clock=system_clock.CLOCK, rng=RNG)
    token = await store.ensure_pool("default", "default")
    session = await store.register(Registration(token, "worker", uuid.UUID(int=1), slots=10))
    yield ControllerHarness(api, store, session)
    await store.close()


@contextlib.asynccontextmanager
async def running(
    harness: ControllerHarness,
    access: ApiAccess,
    identity: str = "one",
    config: ControllerConfig | None = None,
) -> AsyncIterator[Manager]:
    """Run a controller; it must not fail meanwhile."""
    clock = system_clock.CLOCK
    async with ApiClient(access, seconds=5) as server:
        timing = ElectionTiming(
            lease_seconds=2,
            renew_deadline=1.5,
            renew_interval=0.2,
            retry_interval=0.1,
            request_timeout=1,
        )
        election = LeaderElection(
            LeaseLock(server, "default", "workron", identity), clock, RNG, timing
        )
        maintainer = Maintainer(harness.store, clock, ids.mint_uuid(RNG))
        pools = PoolConfig("ours:1")
        deps = ControllerDependencies(
            pools, harness.store, server, access, election, maintainer, clock, RNG
        )
        controller = Manager(deps, config or ControllerConfig())
        task = asyncio.create_task(controller.run())
        try:
            yield controller
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def working(harness: ControllerHarness) -> AsyncIterator[None]:
    task = asyncio.create_task(harness.run_worker())
    try:
        yield
    finally:
        task.cancel()

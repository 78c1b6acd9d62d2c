"""The whole operator as it runs, over a store and against the fake API server."""

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
"""Time is real here: Kopf and the operator wait for each other over real connections."""


@dataclass
class Scene:
    api: FakeApi
    store: Store
    session: Session

    def phase(self, name: str, kind: Kind = JOB) -> str:
        found = self.api.find(kind, name) or {}
        return str(found.get("status", {}).get("phase", ""))

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    async def work(self) -> None:
        """Run all that is ready, again and again."""
        while True:
            for one in await cluster.claimed(self.store, self.session, 10):
                await cluster.ended(self.store, self.session, one, output=b"done\n")
            await asyncio.sleep(0.01)

    async def all_stand(self, namespace: str, state: str) -> None:
        """Return when all jobs of a namespace stand so."""
        while {head.job.state for head in await self.store.list_run_summaries(namespace)} != {
            state
        }:
            await asyncio.sleep(0.01)

    def status_writes(self) -> list[str]:
        return [
            str(asked.name) for asked in self.api.requests.writes if asked.subresource == "status"
        ]


@contextlib.asynccontextmanager
async def opened(api: FakeApi, url: str) -> AsyncIterator[Scene]:
    """Open a store, and have a worker be of its pool that jobs are in who name none."""
    store = await connect.connect(url, clock=system_clock.CLOCK, rng=RNG)
    token = await store.ensure_pool("default", "default")
    session = await store.register(Registration(token, "worker", uuid.UUID(int=1), slots=10))
    yield Scene(api, store, session)
    await store.close()


@contextlib.asynccontextmanager
async def running(
    scene: Scene, access: ApiAccess, who: str = "one", config: ControllerConfig | None = None
) -> AsyncIterator[Manager]:
    """Run an operator, and look that it goes on."""
    clock = system_clock.CLOCK
    async with ApiClient(access, seconds=5) as server:
        terms = ElectionTiming(
            lease_seconds=2,
            renew_deadline=1.5,
            renew_interval=0.2,
            retry_interval=0.1,
            request_timeout=1,
        )
        election = LeaderElection(LeaseLock(server, "default", "workron", who), clock, RNG, terms)
        maintainer = Maintainer(scene.store, clock, ids.mint_uuid(RNG))
        pools = PoolConfig("ours:1")
        deps = ControllerDependencies(
            pools, scene.store, server, access, election, maintainer, clock, RNG
        )
        operator = Manager(deps, config or ControllerConfig())
        task = asyncio.create_task(operator.run())
        try:
            yield operator
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def worked(scene: Scene) -> AsyncIterator[None]:
    task = asyncio.create_task(scene.work())
    try:
        yield
    finally:
        task.cancel()

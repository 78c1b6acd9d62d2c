"""All parts of the operator, put together and kept going.

Every replica takes in; only the leader tells, since two who write the same are twice the writes and
nothing else. Whatever ends a part ends the operator, and the cluster begins it anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron_controller.api.retrying import Retrying
from workron_controller.cluster import Cluster
from workron_controller.intake.carrier import Carrier
from workron_controller.intake.compare import Comparison
from workron_controller.intake.doorbell import Doorbell
from workron_controller.intake.hearing import Ear
from workron_controller.intake.inbox import Inbox
from workron_controller.objects import Objects
from workron_controller.pools import tending
from workron_controller.pools.budget import Budget
from workron_controller.pools.keeper import Keeper
from workron_controller.telling.farewell import Farewell
from workron_controller.telling.herald import Herald
from workron_controller.telling.look import Look
from workron_controller.telling.outbox import Outbox
from workron_controller.telling.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from workron.core.ports import Clock, Rng
    from workron.scheduling.maintain import Maintainer
    from workron.store.protocol import Store
    from workron_controller.api.access import Access
    from workron_controller.api.server import Server, Write
    from workron_controller.leader.election import Election
    from workron_controller.pools.settings import Settings

_LOOK_SECONDS: Final = 5.0
"""Pools are looked at again soon, so nobody insists on one look."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What it looks after, and how fast it may write."""

    namespaces: Collection[str] = ()
    """None: all."""
    rate: float = 200.0
    """Statuses a second."""
    connections: int | None = None
    """How many of the database's workers may have; None: three of four."""


@dataclass(frozen=True, slots=True)
class Around:
    """What it works with."""

    pools: Settings
    store: Store
    server: Server
    access: Access
    election: Election
    maintainer: Maintainer
    clock: Clock
    rng: Rng


class Operator:
    """One replica."""

    def __init__(self, around: Around, scope: Scope) -> None:
        self._around = around
        self.began_at = around.clock.monotonic()
        self.objects = Objects()
        store, clock = around.store, around.clock
        self.inbox = Inbox(clock)
        ear = Ear(self.objects, self.inbox)
        self.misses = ear.misses
        retrying = Retrying(clock, around.rng)
        cluster = Cluster(around.server, retrying, scope.namespaces)
        self.doorbell = Doorbell(ear, around.access, scope.namespaces, clock, around.rng)
        self.comparison = Comparison(cluster, store, ear, clock, around.rng)
        self.carrier = Carrier(store, self.inbox, self.objects)
        self.outbox = Outbox(scope.rate, burst=scope.rate)
        self.herald = Herald(around.server, retrying, clock)
        self.writer = Writer(cluster.tell, self.outbox, self.objects, clock, self.herald.leave)
        self.keeper = self._keeper(scope)
        self.look = Look(store, self.objects, self.writer.put, self.keeper.hint, clock)
        self.farewell = Farewell(store, cluster.delete, self.objects, clock)

    def _keeper(self, scope: Scope) -> Keeper:
        around = self._around
        retrying = Retrying(around.clock, around.rng, seconds=_LOOK_SECONDS)
        return Keeper(
            tending.Around(
                api=around.server,
                retrying=retrying,
                store=around.store,
                budget=Budget(scope.connections),
                settings=around.pools,
                namespaces=scope.namespaces,
                clock=around.clock,
                leave=self.herald.leave,
            )
        )

    @property
    def is_leading(self) -> bool:
        """Whether it is this one that tells."""
        return self._around.election.is_leading

    @property
    def writes(self) -> Mapping[Write, int]:
        """Count what was asked of the API server that changes something."""
        return self._around.server.writes

    async def run(self) -> None:
        """Work until it is cancelled; then hand over at once."""
        around = self._around
        async with asyncio.TaskGroup() as parts:
            for part in (
                around.election.hold(),
                around.maintainer.run(around.store.wait_for_work),
                self.doorbell.run(),
                self.comparison.run(),
                self.carrier.run(),
                self._lead(),
            ):
                parts.create_task(part)

    async def _lead(self) -> None:
        """Do what only one should do, for as long as this one is the one."""
        election = self._around.election
        while True:
            await election.wait(leading=True)
            self.outbox.clear()
            self.objects.doubt()
            work = [asyncio.create_task(part.run()) for part in self._leaders]
            over = asyncio.create_task(election.wait(leading=False))
            try:
                done, _ = await asyncio.wait([*work, over], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (*work, over):
                    task.cancel()
                await asyncio.wait([*work, over])
            for task in done - {over}:
                task.result()

    @property
    def _leaders(self) -> tuple[Look, Writer, Herald, Farewell, Keeper]:
        return self.look, self.writer, self.herald, self.farewell, self.keeper

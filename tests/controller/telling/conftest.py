"""Objects that were heard of, and what is written into their statuses."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.controller import cluster
from tests.controller.cluster import Raw
from tests.controller.hand_time import HandTime
from workron.core.plan import Kind
from workron.store.protocol import Store
from workron_controller.api import errors
from workron_controller.intake.carrier import Carrier
from workron_controller.intake.hearing import Ear
from workron_controller.objects import Seen, Why
from workron_controller.telling.farewell import Farewell
from workron_controller.telling.look import Look
from workron_controller.telling.notices import Notice
from workron_controller.telling.outbox import Letter, Outbox
from workron_controller.telling.writer import Writer


class Scene:
    """Objects, a store, and an API server that notes what is written, or does not take it."""

    def __init__(self, store: Store, ear: Ear, time: HandTime) -> None:
        self.store = store
        self.ear = ear
        self.clock = time
        self.written: list[Mapping[str, Any]] = []
        self.trouble: errors.ApiError | None = None
        self.hints: dict[tuple[str, str], Why] = {}
        self.outbox = Outbox(rate=1000, burst=1000)
        self.notices: list[Notice] = []
        leave = self.notices.append
        self.writer = Writer(self._write, self.outbox, ear.objects, time, leave)
        hint = lambda *place: self.hints.get(place)  # noqa: E731 - it is one
        self.looking = Look(store, ear.objects, self.writer.put, hint, time)
        self.tries = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.deleted: list[str] = []
        self.farewell = Farewell(store, self._delete, ear.objects, time)

    async def _write(self, seen: Seen, said: Mapping[str, Any]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.meanwhile()
        await self.looking.look()
        self.written.append(said)
        # A watch may be quicker than the answer.
        seen.status = said

    async def _delete(self, seen: Seen) -> None:
        self.deleted.append(seen.name)

    async def see(self, raw: Raw) -> Seen:
        self.ear.hear(Kind(raw["kind"]), raw)
        carrier = Carrier(self.store, self.ear.inbox, self.ear.objects)
        await carrier.carry(await self.ear.inbox.take(10, 1 << 20))
        seen = self.ear.objects.get(cluster.uid_of(raw))
        assert seen is not None
        return seen

    async def look(self, seconds: float = 2) -> list[Mapping[str, Any]]:
        """Look, send what is to be sent, and give what was written."""
        self.clock.turn(seconds)
        self.written = []
        await self.looking.look()
        while isinstance(letter := self.outbox.take(self.clock.monotonic()), Letter):
            self.tries += 1
            await self.writer.deliver(letter)
            if self.trouble is not None:
                break
        return self.written


@pytest.fixture
def scene(store: Store, ear: Ear, time: HandTime) -> Scene:
    return Scene(store, ear, time)

"""What was seen and is not carried into the store yet: the newest edition of each object.

Filled by watches and lists, which must never wait; so it is bounded, and who finds it full has the
object listed again later. Emptied by `carrier`.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from workron.core.clock import Clock
    from workron.core.plan import Kind


MAX_QUEUED_OBJECTS: Final = 20_000
_MOST_BYTES: Final = 64 << 20
"""An object may have 1.5 MB, so that a bound on their number alone would be none."""


@dataclass(frozen=True, slots=True)
class QueuedObject:
    """One object as it was seen, or that it is gone."""

    uid: UUID
    kind: Kind
    text: bytes | None
    """Of its JSON: read, it would take several times as much. None: it is gone from the cluster."""

    @property
    def size(self) -> int:
        """How much of an inbox it takes."""
        return len(self.text or b"")

    def read(self) -> Mapping[str, Any]:
        """Give the object as it was seen."""
        read: Mapping[str, Any] = json.loads(self.text or b"{}")
        return read


class Workqueue:
    """The newest news of each object, in the order in which objects first came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news: dict[UUID, QueuedObject] = {}
        self._since: dict[UUID, float] = {}
        self._in_hand: dict[UUID, float] = {}
        """What was taken last, and since when it had waited: it is carried when more is taken."""
        self._bytes = 0
        self._has_come = asyncio.Event()
        self.has_overflown = asyncio.Event()
        """Set when something was turned away; who lists all objects anew clears it before."""

    def __len__(self) -> int:
        return len(self._news)

    @property
    def lag(self) -> float:
        """Tell for how long the first has waited of what is not carried yet."""
        times = [*self._since.values(), *self._in_hand.values()]
        return self._clock.monotonic() - min(times) if times else 0.0

    def put(self, news: QueuedObject) -> None:
        """Take it in place of what is there of the object, or turn it away."""
        self._put(news, self._clock.monotonic())

    def _put(self, news: QueuedObject, since: float) -> None:
        replaced = self._news.get(news.uid)
        size = self._bytes + news.size - (replaced.size if replaced else 0)
        if size > _MOST_BYTES or (replaced is None and len(self._news) >= MAX_QUEUED_OBJECTS):
            self.has_overflown.set()
            return
        self._news[news.uid] = news
        self._since.setdefault(news.uid, since)
        self._bytes = size
        self._has_come.set()

    async def take(self, most: int, most_bytes: int) -> Sequence[QueuedObject]:
        """Wait until there is something, and take the first of it; at least one."""
        self._in_hand = {}
        while not self._news:
            self._has_come.clear()
            await self._has_come.wait()
        taken: list[QueuedObject] = []
        room = most_bytes
        for news in list(self._news.values())[:most]:
            if taken and news.size > room:
                break
            room -= news.size
            taken.append(self._news.pop(news.uid))
        self._bytes -= sum(news.size for news in taken)
        self._in_hand = {news.uid: self._since.pop(news.uid) for news in taken}
        return taken

    def put_back(self, some: Sequence[QueuedObject]) -> None:
        """Take what could not be carried out, unless something newer has come meanwhile."""
        for news in some:
            if news.uid not in self._news:
                self._put(news, self._in_hand.get(news.uid, self._clock.monotonic()))

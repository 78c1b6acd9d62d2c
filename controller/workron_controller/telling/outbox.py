"""Which status is written next, and when: ends first, and no object too often. Pure.

Filled by `look` with what each object is to say, of which only the newest counts; emptied by
`writer`. The rate is that of all objects together, with a little room for a burst.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uuid import UUID

    from workron_controller.telling.status import Status

_APART_SECONDS: Final = 1.0
"""Between two writes to one object, unless it has ended."""


@dataclass(frozen=True, slots=True)
class Letter:
    """What one object is to say."""

    uid: UUID
    status: Status
    is_end: bool


class Outbox:
    """Letters that are not sent yet."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._counted_at = 0.0
        self._ends: OrderedDict[UUID, Letter] = OrderedDict()
        self._others: OrderedDict[UUID, Letter] = OrderedDict()
        self._not_before: OrderedDict[UUID, float] = OrderedDict()
        self._held: dict[UUID, tuple[float, Letter]] = {}
        self._due: list[tuple[float, UUID]] = []
        """A heap of those that are held, and of some that are not any more."""

    def __len__(self) -> int:
        return len(self._ends) + len(self._others) + len(self._held)

    @property
    def held(self) -> int:
        """Count those that were refused, and are tried again at times."""
        return len(self._held)

    def is_held(self, uid: UUID) -> bool:
        """Tell whether an object has to wait, as what it had to say was refused."""
        return uid in self._held

    def put(self, letter: Letter) -> None:
        """Have an object say this, and not what it was to say before."""
        until, held = self._held.get(letter.uid, (0.0, None))
        if held is not None and (held.is_end or not letter.is_end):
            self._held[letter.uid] = until, letter
            return
        # An end comes once, and is waited for: what was refused before it may be taken now.
        self._held.pop(letter.uid, None)
        was = self._ends.pop(letter.uid, None)
        if letter.is_end or was is not None:
            self._others.pop(letter.uid, None)
            self._ends[letter.uid] = letter
        else:
            self._others[letter.uid] = letter

    def put_back(self, letter: Letter) -> None:
        """Have it sent again, unless the object has something newer to say."""
        if not self._has(letter.uid):
            self.put(letter)

    def hold(self, letter: Letter, until: float) -> None:
        """Send this again no sooner than then, or what the object has to say by then."""
        newer = self._ends.get(letter.uid) or self._others.get(letter.uid)
        if newer is not None and newer.is_end and not letter.is_end:
            return
        self.drop(letter.uid)
        self._held[letter.uid] = until, newer or letter
        heapq.heappush(self._due, (until, letter.uid))

    def drop(self, uid: UUID) -> None:
        """Forget an object."""
        for waiting in (self._ends, self._others, self._held, self._not_before):
            waiting.pop(uid, None)

    def clear(self) -> None:
        """Forget all: another replica has told since."""
        for waiting in (self._ends, self._others, self._held, self._due):
            waiting.clear()

    def take(self, now: float) -> Letter | float:
        """Give the letter that may be sent now, or say for how long there is none."""
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._let_go(now)
        letter = self._first(now)
        if isinstance(letter, Letter):
            self._tokens -= 1
            self._not_before[letter.uid] = now + _APART_SECONDS
            self._not_before.move_to_end(letter.uid)
        return letter

    def put_off(self, seconds: float, now: float) -> None:
        """Send nothing for so long: the API server asked for that."""
        self._counted_at = max(self._counted_at, now + seconds)
        self._tokens = min(self._tokens, 0)

    def _has(self, uid: UUID) -> bool:
        return uid in self._ends or uid in self._others or uid in self._held

    def _let_go(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            until, uid = heapq.heappop(self._due)
            if uid in self._held and self._held[uid][0] == until:
                self.put(self._held.pop(uid)[1])

    def _first(self, now: float) -> Letter | float:
        while self._not_before and next(iter(self._not_before.values())) <= now:
            self._not_before.popitem(last=False)
        if self._ends:
            return self._ends.popitem(last=False)[1]
        soonest = self._due[0][0] if self._due else float("inf")
        for uid in self._others:
            at = self._not_before.get(uid, 0.0)
            if at <= now:
                return self._others.pop(uid)
            soonest = min(soonest, at)
        return soonest - now

"""Which status is written next, and when: ends first, and no object too often. Pure.

Filled by `look` with what each object is to say, of which only the newest counts; emptied by
`writer`. The rate is that of all objects together, with a little room for a burst.
"""

from __future__ import annotations

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

    def __len__(self) -> int:
        return len(self._ends) + len(self._others)

    def put(self, letter: Letter) -> None:
        """Have an object say this, and not what it was to say before."""
        was = self._ends.pop(letter.uid, None)
        if letter.is_end or was is not None:
            self._others.pop(letter.uid, None)
            self._ends[letter.uid] = letter
        else:
            self._others[letter.uid] = letter

    def put_back(self, letter: Letter) -> None:
        """Have it sent again, unless the object has something newer to say."""
        if letter.uid not in self._ends and letter.uid not in self._others:
            self.put(letter)

    def drop(self, uid: UUID) -> None:
        """Forget an object."""
        for waiting in (self._ends, self._others):
            waiting.pop(uid, None)
        self._not_before.pop(uid, None)

    def clear(self) -> None:
        """Forget all: another replica has told since."""
        self._ends.clear()
        self._others.clear()

    def take(self, now: float) -> Letter | float:
        """Give the letter that may be sent now, or say for how long there is none."""
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
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

    def _first(self, now: float) -> Letter | float:
        while self._not_before and next(iter(self._not_before.values())) <= now:
            self._not_before.popitem(last=False)
        if self._ends:
            return self._ends.popitem(last=False)[1]
        soonest = float("inf")
        for uid in self._others:
            at = self._not_before.get(uid, 0.0)
            if at <= now:
                return self._others.pop(uid)
            soonest = min(soonest, at)
        return soonest - now
